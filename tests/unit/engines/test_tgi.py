"""TGI's command line and log."""

from __future__ import annotations

import pytest

from breakeven.engines.dialect import Address, Phase
from breakeven.engines.speculation import SpeculationConfig
from breakeven.engines.tgi import Tgi
from breakeven.errors import UsageError

SERVE = ("text-generation-launcher", "--model-id", "m")


def test_flags() -> None:
    assert Tgi().flags(SpeculationConfig("ngram", 3)) == ("--speculate", "3")
    assert Tgi().speculation((*SERVE, "--speculate=3")) == SpeculationConfig("ngram", 3)
    assert Tgi().speculation((*SERVE, "--speculate", "0")) is None


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (SpeculationConfig("ngram"), "type --k 5"),
        (SpeculationConfig("ngram", 3, 2, 4), "leave out --min-n"),
        (SpeculationConfig("ngram", 3, options={"a": 1}), "leave out --set"),
        (SpeculationConfig("eagle3", 3), "TGI has no eagle3"),
    ],
)
def test_refused(config: SpeculationConfig, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Tgi().flags(config)


def test_no_number() -> None:
    with pytest.raises(UsageError, match="takes a whole number, not 'two'"):
        Tgi().speculation((*SERVE, "--speculate", "two"))


def test_address() -> None:
    # launcher/src/main.rs: 3000; its container image sets PORT=80.
    assert Tgi().address(SERVE, {}) == Address("0.0.0.0", 3000)
    assert Tgi().address(SERVE, {"PORT": "80", "HOSTNAME": "::"}) == Address("::", 80)
    assert Tgi().address((*SERVE, "-p", "81", "--hostname=h"), {"PORT": "80"}) == Address("h", 81)


def test_elsewhere_and_traps() -> None:
    assert Tgi().elsewhere(SERVE, {"SPECULATE": "0"}) is None
    assert "SPECULATE turns speculation on" in (Tgi().elsewhere(SERVE, {"SPECULATE": "2"}) or "")
    assert "Medusa" in Tgi().warnings(SpeculationConfig("ngram", 3), SERVE)[0]
    assert not Tgi().learns(SpeculationConfig("ngram", 3))


# Formats as in huggingface/text-generation-inference issues 2823 and 3181.
STAMP = "2024-12-11T10:04:00.802105Z  INFO "


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        (STAMP + "download: text_generation_launcher: Starting check and download process for m",
         Phase("starting")),
        (STAMP + "shard-manager: text_generation_launcher: Starting shard rank=0", Phase("loading weights")),
        (STAMP + "text_generation_router_v3: lib.rs:125: Warming up model", Phase("warming up")),
        (STAMP + "launcher: Cuda Graphs are enabled for sizes [2]", Phase("capturing graphs")),
        (STAMP + "text_generation_router::server: router/src/server.rs:2402: Connected", Phase("serving")),
        (STAMP + "text_generation_router::server: router/src/server.rs:637: Success", None),
    ],
)  # fmt: skip
def test_phase(line: str, phase: Phase | None) -> None:
    assert Tgi().phase(line) == phase


def test_facts_and_failure() -> None:
    log = [STAMP + "text_generation_launcher: Using Attention = flashinfer"]
    log += [STAMP + "text_generation_launcher: Cuda Graphs are enabled for sizes [32, 16, 8]"]
    assert Tgi().facts(log) == {"attention_backend": "flashinfer", "cuda_graphs": "32 16 8"}
    dead = STAMP.replace("INFO", "ERROR") + "text_generation_launcher: Shard 0 crashed"
    assert Tgi().failure([*log, dead]) == "Shard 0 crashed"
    assert Tgi().failure(["error: unexpected argument '--speculat' found"]) is not None
