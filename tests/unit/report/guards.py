"""Simulated guards made by hand, for what is said and drawn of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from breakeven.acceptance.counters import SpecCounters
from breakeven.guard.settings import GuardSettings
from breakeven.guard.simulate.records import (
    NO_EPSILON,
    AtConcurrency,
    AtEpsilon,
    Kind,
    Played,
    Request,
    Simulation,
    Speed,
)
from breakeven.replay.records import Origin

ORIGIN = Origin("runs/measure-1", "run", 0.0, engine="vllm")
CATEGORIES = ("coding", "chat")


def played(kind: Kind, name: str, speedup: float, worst: float, **changes: Any) -> Played:
    """Two requests: that of coding gains, that of chat is the worst."""
    rows = (Request("c1", "coding", 400, speedup**2 / worst), Request("t1", "chat", 100, worst))
    speeds = [Speed(row.speedup, row.speedup, row) for row in rows]
    total = 500 / sum(row.emitted_tokens / row.speedup for row in rows)
    made = Played(
        kind,
        name,
        {},
        "",
        Speed(speedup, total, rows[1]),
        dict(zip(CATEGORIES, speeds, strict=True)),
        SpecCounters(400, 100, 300, 150, (80, 70), "replay"),
        rows,
    )
    return replace(made, **changes)


def fixed(k: int, speedup: float, worst: float) -> Played:
    settings = {"k": k, "min_n": 2, "max_n": 4}
    return played(
        "fixed", f"vllm-ngram k={k} n=2–4", speedup, worst, settings=settings, flags=f"--flags-of {k}"
    )


def simulation(**changes: Any) -> Simulation:
    made = Simulation(
        origin=ORIGIN,
        engine="vllm",
        has_seam=True,
        first_token="prefill",
        requests=2,
        output_tokens=502,
        categories=CATEGORIES,
        cost_source="measured",
        cost_words="The concurrency curve of the server itself.",
        drafting_words="lookup: nothing",
        idle=0.0,
        settings=GuardSettings(),
        fixed=(fixed(3, 1.25, 0.9), fixed(1, 1.2, 0.95), fixed(8, 1.1, 0.76)),
        guard=played("guard", "guard", 1.24, 0.985),
        by_epsilon=(
            AtEpsilon(NO_EPSILON, played("guard", "guard", 1.26, 0.93)),
            AtEpsilon(0.05, played("guard", "guard", 1.25, 0.96)),
            AtEpsilon(0.01, played("guard", "guard", 1.2, 0.992)),
        ),
        test_and_set=played("test-and-set", "test-and-set", 1.15, 0.95),
        oracle=played("oracle", "oracle", 1.4, 1.01),
        by_concurrency=(
            AtConcurrency(4, played("guard", "guard", 1.1, 0.99), {"DRAFTED": 90, "NO_MATCH": 310}, None),
        ),
        skipped={},
        warnings=("the record is short",),
        elapsed_s=1.5,
    )
    return replace(made, **changes)
