"""What a server says of itself: engine and version, as far as it says."""

from __future__ import annotations

from typing import Any

import orjson

from breakeven.client.endpoint import Endpoint
from breakeven.client.openai import get_text
from breakeven.client.transport import Pool
from breakeven.errors import EndpointError


async def identify(pool: Pool, endpoint: Endpoint) -> dict[str, str]:
    """`engine` and `version` where the server tells them, else an empty dict; never an error."""
    version = await _json(pool, endpoint, "/version")
    if isinstance(version.get("version"), str):
        return {"engine": "vllm", "version": version["version"]}
    props = await _json(pool, endpoint, "/props")
    if "build_info" in props or "default_generation_settings" in props:
        return {"engine": "llama.cpp", "version": str(props.get("build_info", "unknown"))}
    info = await _json(pool, endpoint, "/get_server_info")
    if isinstance(info.get("version"), str):
        return {"engine": "sglang", "version": info["version"]}
    return {}


async def _json(pool: Pool, endpoint: Endpoint, path: str) -> dict[str, Any]:
    try:
        answer = orjson.loads(await get_text(pool, endpoint, path))
    except (EndpointError, orjson.JSONDecodeError):
        return {}
    return answer if isinstance(answer, dict) else {}
