"""Where a server's totals are read."""

import pytest

from breakeven.acceptance.page import Page
from breakeven.client.endpoint import Endpoint
from breakeven.client.metrics import get_page
from breakeven.client.timeouts import Timeouts
from breakeven.client.transport import Pool
from breakeven.errors import HttpError
from breakeven.servers.fake import FakeServer
from breakeven.servers.fake.script import Answer
from tests.unit.acceptance.pages import golden, text_of


class Paged(FakeServer):
    """Has these pages, by path, and no others."""

    def __init__(self, pages: dict[str, str]) -> None:
        super().__init__()
        self.pages = pages

    def _page(self, path: str) -> Answer | None:
        return Answer(200, self.pages[path].encode(), "text/plain") if path in self.pages else None


async def page_of(**pages: str) -> Page | None:
    by_path = {f"/{name.replace('_', '/')}": text for name, text in pages.items()}
    async with Paged(by_path) as fake, Pool() as pool:
        return await get_page(pool, Endpoint(fake.url), Timeouts(5.0, 5.0, 5.0))


async def test_tensorrt_has_its_totals_elsewhere():
    found = await page_of(metrics=text_of("trtllm-iterations"), prometheus_metrics=text_of("trtllm"))
    assert found == golden("trtllm")


async def test_tensorrt_whose_totals_are_not_switched_on():
    assert await page_of(metrics=text_of("trtllm-iterations")) == golden("trtllm-iterations")


async def test_other_servers_have_one_page():
    assert await page_of(metrics=text_of("vllm-ngram"), prometheus_metrics="") == golden("vllm-ngram")
    assert await page_of(metrics="go_gc_seconds 1\n") is None


async def test_a_server_without_a_page():
    with pytest.raises(HttpError):
        await page_of()
