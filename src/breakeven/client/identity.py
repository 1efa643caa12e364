"""What a server says of itself: engine, version and context size, as far as it says."""

from __future__ import annotations

from typing import Any

import orjson

from breakeven.client.endpoint import Endpoint
from breakeven.client.fetch import QUICK_TIMEOUTS, get_text
from breakeven.client.transport import Pool
from breakeven.errors import ConnectFailed, HttpError, ProtocolError, StreamError, TimedOut
from breakeven.trace.meta import ServerInfo

OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp", "tensorrt_llm": "tensorrt-llm"}
"""`owned_by` of a model card, by engine."""


async def identify(pool: Pool, endpoint: Endpoint) -> ServerInfo:
    """Engine and version where the server tells them; never an error, nor a long wait.

    The flag `max_model_len` is the most tokens of one sequence, whatever the engine calls it: it cuts drafts.
    """
    try:
        return await _identify(pool, endpoint)
    except (ConnectFailed, TimedOut):
        return ServerInfo()


async def _identify(pool: Pool, endpoint: Endpoint) -> ServerInfo:
    version = await _json(pool, endpoint, "/version")
    if isinstance(version.get("version"), str):
        cards = await _cards(pool, endpoint)
        engine = "tensorrt-llm" if _owner(cards) == "tensorrt-llm" else "vllm"
        return ServerInfo(engine, version["version"], _limits(cards, endpoint.model))
    props = await _json(pool, endpoint, "/props")
    if "build_info" in props or "default_generation_settings" in props:
        return ServerInfo("llama.cpp", _text(props.get("build_info")), _limits_of_slot(props))
    info = await _json(pool, endpoint, "/get_server_info")
    if isinstance(info.get("version"), str):
        return ServerInfo("sglang", info["version"], _limits(await _cards(pool, endpoint), endpoint.model))
    cards = await _cards(pool, endpoint)
    return ServerInfo(_owner(cards), None, _limits(cards, endpoint.model))


def _limits(cards: list[dict[str, Any]], model: str | None) -> dict[str, int] | None:
    """Of the model's card, as vLLM and SGLang give it."""
    lengths = [card.get("max_model_len") for card in cards if card.get("id") == model]
    return _max_model_len(lengths[0] if lengths else None)


def _limits_of_slot(props: dict[str, Any]) -> dict[str, int] | None:
    """llama.cpp's context is shared by its slots; what it tells here is the part of one."""
    settings = props.get("default_generation_settings")
    return _max_model_len(settings.get("n_ctx") if isinstance(settings, dict) else None)


def _max_model_len(tokens: Any) -> dict[str, int] | None:
    """None also for 0, which llama.cpp's router tells while it has no model loaded."""
    return {"max_model_len": tokens} if type(tokens) is int and tokens > 0 else None


def _owner(cards: list[dict[str, Any]]) -> str | None:
    """The engine that /v1/models names, for servers behind a gateway that passes only /v1 on."""
    owners = [card.get("owned_by") for card in cards]
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
