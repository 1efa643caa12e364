"""What a server says of itself: engine and version, as far as it says."""

from __future__ import annotations

from typing import Any

import orjson

from breakeven.client.endpoint import Endpoint
from breakeven.client.fetch import QUICK_TIMEOUTS, get_text
from breakeven.client.transport import Pool
from breakeven.errors import ConnectFailed, HttpError, ProtocolError, StreamError, TimedOut
from breakeven.trace.meta import ServerInfo

OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp"}
"""`owned_by` of a model card, by engine."""


async def identify(pool: Pool, endpoint: Endpoint) -> ServerInfo:
    """Engine and version where the server tells them; never an error, nor a long wait."""
    try:
        return await _identify(pool, endpoint)
    except (ConnectFailed, TimedOut):
        return ServerInfo()


async def _identify(pool: Pool, endpoint: Endpoint) -> ServerInfo:
    version = await _json(pool, endpoint, "/version")
    if isinstance(version.get("version"), str):
        return ServerInfo("vllm", version["version"], await _limits(pool, endpoint))
    props = await _json(pool, endpoint, "/props")
    if "build_info" in props or "default_generation_settings" in props:
        return ServerInfo("llama.cpp", _text(props.get("build_info")))
    info = await _json(pool, endpoint, "/get_server_info")
    if isinstance(info.get("version"), str):
        return ServerInfo("sglang", info["version"])
    return ServerInfo(await _owner(pool, endpoint))


async def _limits(pool: Pool, endpoint: Endpoint) -> dict[str, int] | None:
    """The flag of vLLM that its model card repeats: it cuts drafts."""
    cards = [card for card in await _cards(pool, endpoint) if card.get("id") == endpoint.model]
    length = cards[0].get("max_model_len") if cards else None
    return {"max_model_len": length} if type(length) is int else None


async def _owner(pool: Pool, endpoint: Endpoint) -> str | None:
    """The engine that /v1/models names, for servers behind a gateway that passes only /v1 on."""
    owners = [card.get("owned_by") for card in await _cards(pool, endpoint)]
    return next((engine for owner, engine in OWNERS.items() if owner in owners), None)


async def _cards(pool: Pool, endpoint: Endpoint) -> list[dict[str, Any]]:
    models = (await _json(pool, endpoint, "/v1/models")).get("data")
    return [card for card in models if isinstance(card, dict)] if isinstance(models, list) else []


async def _json(pool: Pool, endpoint: Endpoint, path: str) -> dict[str, Any]:
    try:
        answer = orjson.loads(await get_text(pool, endpoint, path, QUICK_TIMEOUTS))
    except (HttpError, ProtocolError, StreamError, orjson.JSONDecodeError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
