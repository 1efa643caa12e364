"""What a server says of itself: engine and version, as far as it says."""

from __future__ import annotations

from typing import Any

import orjson

from breakeven.client.endpoint import Endpoint
from breakeven.client.openai import get_text
from breakeven.client.transport import Pool
from breakeven.errors import EndpointError
from breakeven.trace.meta import ServerInfo


async def identify(pool: Pool, endpoint: Endpoint) -> ServerInfo:
    """Engine and version where the server tells them; never an error."""
    version = await _json(pool, endpoint, "/version")
    if isinstance(version.get("version"), str):
        return ServerInfo("vllm", version["version"])
    props = await _json(pool, endpoint, "/props")
    if "build_info" in props or "default_generation_settings" in props:
        return ServerInfo("llama.cpp", _text(props.get("build_info")))
    info = await _json(pool, endpoint, "/get_server_info")
    if isinstance(info.get("version"), str):
        return ServerInfo("sglang", info["version"])
    return ServerInfo()


async def _json(pool: Pool, endpoint: Endpoint, path: str) -> dict[str, Any]:
    try:
        answer = orjson.loads(await get_text(pool, endpoint, path))
    except (EndpointError, orjson.JSONDecodeError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
