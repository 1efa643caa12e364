"""A run and a calibration of one server match; of two, the field that differs is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from breakeven.cost.calibration import Calibration
from breakeven.errors import UsageError
from breakeven.forecast.match import check_same_server
from breakeven.trace.meta import RunMeta, ServerInfo
from tests.unit.cost.test_calibration import CALIBRATION
from tests.unit.trace import builders

VLLM = ServerInfo("vllm", "0.32.0", {"max_model_len": 4096})
LLAMA = ServerInfo("llama.cpp", "b0-unknown", None)
"""As an embedded engine describes itself."""


def run_meta(server: ServerInfo = VLLM, model: str | None = "m") -> RunMeta:
    return builders.meta(server=server, model=model)


def calibration(server: ServerInfo = VLLM, **changes: Any) -> Calibration:
    return replace(CALIBRATION, server=server, **changes)


def test_one_server_matches_itself_wherever_it_listens():
    meta = replace(run_meta(), url="http://10.0.0.1:9000/v1")
    assert check_same_server(meta, calibration(url="http://127.0.0.1:8000/v1")) == ()


def test_embedded_engines_of_one_model_match():
    """A trial's has one slot and its context, a calibration's has several that share theirs."""
    one_slot = replace(LLAMA, flags={"max_model_len": 4096})
    many_slots = replace(LLAMA, flags={"max_model_len": 512})
    found = check_same_server(run_meta(one_slot, "smollm2"), calibration(many_slots, model="smollm2"))
    assert found == ()
    assert check_same_server(run_meta(LLAMA, "tiny"), calibration(LLAMA, model="tiny")) == ()


@pytest.mark.parametrize(
    ("server", "model", "field", "both"),
    [
        (replace(VLLM, engine="sglang"), "m", "engine", ("'vllm'", "'sglang'")),
        (replace(VLLM, version="0.16.0"), "m", "version", ("'0.32.0'", "'0.16.0'")),
        (VLLM, "other", "model", ("'m'", "'other'")),
        (replace(VLLM, flags={"quantization": "fp8"}), "m", "flag quantization", ("'awq'", "'fp8'")),
    ],
)
def test_what_differs_is_named_with_both_values(
    server: ServerInfo, model: str, field: str, both: tuple[str, str]
):
    theirs = replace(VLLM, flags={"max_model_len": 4096, "--quantization": "awq"})
    with pytest.raises(UsageError) as caught:
        check_same_server(run_meta(server, model), calibration(theirs))
    message = str(caught.value)
    assert f"{field} is {both[0]} there and {both[1]} here" in message
    assert "breakeven calibrate URL" in message and "--model X --hardware Y" in message


@pytest.mark.parametrize(
    "flag",
    [
        "port",
        "--host",
        "max-num-seqs",
        "parallel",
        "log_level",
        "disable-log-stats",
        "--metrics",
        "speculative-config",
        "--spec-type",
        "model_draft",
    ],
)
def test_flags_that_change_no_step_may_differ(flag: str):
    mine, theirs = (replace(VLLM, flags={flag: value}) for value in (1, 2))
    assert check_same_server(run_meta(mine), calibration(theirs)) == ()


@pytest.mark.parametrize(
    ("server", "model", "field"),
    [
        (replace(VLLM, version=None), "m", "version"),
        (replace(VLLM, engine=None), "m", "engine"),
        (VLLM, None, "model"),
        (replace(VLLM, flags={"tensor_parallel_size": 2}), "m", "flag tensor_parallel_size"),
    ],
)
def test_what_one_side_does_not_say_is_a_warning(server: ServerInfo, model: str | None, field: str):
    (warning,) = check_same_server(run_meta(server, model), calibration())
    assert f"not compared in {field}" in warning


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/models/smollm2.gguf", "smollm2", True),
        ("/a/m.gguf", "/b/m.gguf", True),
        ("Qwen/Qwen3-8B", "Qwen3-8B", True),
        ("Qwen/Qwen3-8B", "other/Qwen3-8B", False),
        ("Qwen3-8B", "Qwen3-4B", False),
        ("llama-3.1", "llama-3.2", False),
    ],
)
def test_models_by_their_names(one: str, other: str, same: bool):
    for mine, theirs in ((one, other), (other, one)):
        if same:
            assert check_same_server(run_meta(model=mine), calibration(model=theirs)) == ()
        else:
            with pytest.raises(UsageError, match="model is"):
                check_same_server(run_meta(model=mine), calibration(model=theirs))
