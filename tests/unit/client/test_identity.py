"""What a server is taken to be, by what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from breakeven.client import identity
from breakeven.client.endpoint import Endpoint
from breakeven.client.identity import identify
from breakeven.errors import HttpError
from breakeven.trace.meta import ServerInfo

CARD = {"id": "tiny", "object": "model", "owned_by": "vllm", "max_model_len": 512}
LORA = {"id": "adapter", "object": "model", "owned_by": "sglang", "max_model_len": None}


@pytest.mark.parametrize(
    ("answers", "server"),
    [
        (
            {"/version": {"version": "0.32.0"}, "/v1/models": {"data": [{"id": "other"}, CARD]}},
            ServerInfo("vllm", "0.32.0", {"max_model_len": 512}),
        ),
        ({"/version": {"version": "0.32.0"}}, ServerInfo("vllm", "0.32.0")),
        (
            {"/version": {"version": "0.32.0"}, "/v1/models": {"data": [CARD | {"max_model_len": "512"}, 7]}},
            ServerInfo("vllm", "0.32.0"),
        ),
        (
            {"/version": {"version": "0.32.0"}, "/v1/models": {"data": [CARD | {"id": "other"}]}},
            ServerInfo("vllm", "0.32.0"),
        ),
        (
            {"/get_server_info": {"version": "0.5.23"}, "/v1/models": {"data": [CARD, LORA]}},
            ServerInfo("sglang", "0.5.23", {"max_model_len": 512}),
        ),
        ({"/get_server_info": {"version": "0.5.23"}}, ServerInfo("sglang", "0.5.23")),
        (
            {
                "/version": {"version": "1.2.0"},
                "/v1/models": {"data": [{"id": "m", "owned_by": "tensorrt_llm"}]},
            },
            ServerInfo("tensorrt-llm", "1.2.0"),
        ),
        ({"/v1/models": {"data": [CARD]}}, ServerInfo("vllm", None, {"max_model_len": 512})),
        ({"/v1/models": {"data": [LORA]}}, ServerInfo("sglang")),
        ({"/v1/models": {"data": {"id": "tiny"}}}, ServerInfo()),
        ({"/props": {"build_info": "b1"}}, ServerInfo("llama.cpp", "b1")),
        (
            {
                "/props": {
                    "build_info": "b1",
                    "default_generation_settings": {"n_ctx": 4096},
                    "total_slots": 4,
                }
            },
            ServerInfo("llama.cpp", "b1", {"max_model_len": 4096}),
        ),
        ({"/props": {"default_generation_settings": {"n_ctx": 0}}}, ServerInfo("llama.cpp")),
        ({"/props": {"default_generation_settings": {"n_ctx": True}}}, ServerInfo("llama.cpp")),
        ({"/props": {"default_generation_settings": []}}, ServerInfo("llama.cpp")),
    ],
)
async def test_servers_are_known_by_their_answers(
    monkeypatch: pytest.MonkeyPatch, answers: Mapping[str, Any], server: ServerInfo
) -> None:
    async def get_text(_pool: Any, _endpoint: Any, path: str, _timeouts: Any) -> str:
        if path not in answers:
            raise HttpError(404, "", "")
        return orjson.dumps(answers[path]).decode()

    monkeypatch.setattr(identity, "get_text", get_text)
    assert await identify(None, Endpoint("http://127.0.0.1:1", model="tiny")) == server  # type: ignore[arg-type]
