"""One look at a server over real sockets."""

from breakeven.client.endpoint import Endpoint
from breakeven.servers.attached.probe import look
from breakeven.servers.fake.server import FakeServer


async def test_a_server_that_answers():
    async with FakeServer() as server:
        assert (await look(Endpoint(server.url))).answers


async def test_a_server_that_wants_a_key_answers():
    async with FakeServer(api_key="sk-x") as server:
        assert (await look(Endpoint(server.url))).answers


async def test_a_server_that_is_gone():
    async with FakeServer() as server:
        url = server.url
    seen = await look(Endpoint(url))
    assert not seen.answers
    assert "nothing answers" in seen.detail
