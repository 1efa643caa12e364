from __future__ import annotations

from typing import Any

import orjson
import pytest

from breakeven.client.endpoint import Endpoint
from breakeven.client.openai import preflight
from breakeven.client.transport import Pool
from breakeven.errors import ConnectFailed, HttpError, ProtocolError, UsageError
from tests.unit.client.replies import http


def models(*names: str) -> bytes:
    return http(
        orjson.dumps({"object": "list", "data": [{"id": name} for name in names]}), 200, "application/json"
    )


async def checked(url: str, model: str | None = None) -> Endpoint:
    async with Pool() as pool:
        return await preflight(pool, Endpoint(url, model=model))


async def test_the_only_model_is_taken(raw_server: Any) -> None:
    async with raw_server([models("llama")]) as server:
        assert (await checked(server.url)).model == "llama"
        assert (await checked(server.url, "llama")).model == "llama"


async def test_several_models_must_be_chosen_from(raw_server: Any) -> None:
    async with raw_server([models("llama", "qwen")]) as server:
        with pytest.raises(UsageError, match="--model with one of llama, qwen"):
            await checked(server.url)
        assert (await checked(server.url, "qwen")).model == "qwen"


async def test_a_model_that_is_not_there(raw_server: Any) -> None:
    async with raw_server([models(*(f"m{i}" for i in range(25)))]) as server:
        with pytest.raises(UsageError, match=r"no model 'gpt'.*m0, m1.*and 5 more"):
            await checked(server.url, "gpt")
    async with raw_server([models()]) as server:
        with pytest.raises(UsageError, match="lists no model"):
            await checked(server.url)


async def test_without_a_list_the_model_must_be_named(raw_server: Any) -> None:
    async with raw_server([http(b"", 404)]) as server:
        with pytest.raises(UsageError, match="--model NAME"):
            await checked(server.url)
        assert (await checked(server.url, "any")).model == "any"


@pytest.mark.parametrize("body", [b"<html><title>Hi</title></html>", b"hello", b'{"data": 5}', b"5", b"null"])
async def test_what_is_no_openai_server(raw_server: Any, body: bytes) -> None:
    async with raw_server([http(body, 200, "text/html")]) as server:
        with pytest.raises(ProtocolError, match=f"{server.url}/v1/models.*check the URL"):
            await checked(server.url)


async def test_a_refused_key_and_a_dead_server(raw_server: Any) -> None:
    async with raw_server([http(b"{}", 401)]) as server:
        with pytest.raises(HttpError, match="--api-key-env NAME or --api-key-file FILE"):
            await checked(server.url)
    with pytest.raises(ConnectFailed, match="start the server, or check the URL"):
        await checked("http://127.0.0.1:1")


@pytest.mark.parametrize("body", [b'["llama"]', b'{"data": ["llama"]}', b'[{"name": "llama"}, "llama"]'])
async def test_a_list_of_bare_names_is_one(raw_server: Any, body: bytes) -> None:
    async with raw_server([http(body, 200, "application/json")]) as server:
        assert (await checked(server.url)).model == "llama"


async def test_a_key_that_may_not_list_may_still_ask(raw_server: Any) -> None:
    async with raw_server([http(b'{"error": "missing scope"}', 403, "application/json")]) as server:
        assert (await checked(server.url, "gpt")).model == "gpt"
        with pytest.raises(HttpError, match="missing scope"):
            await checked(server.url)
