"""Diagnoses to be shown: of a healthy server, of a slow one, of one that says nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.acceptance.logs.summary import LogPeriod, LogSummary
from breakeven.acceptance.record import DECILES, Acceptance
from breakeven.acceptance.stated import stated
from breakeven.diagnose.diagnosis import Diagnosis
from breakeven.diagnose.evidence import Drafting, Evidence, Replayed, Setting, Traffic
from breakeven.explain.explain import explain
from breakeven.explain.records import Finding
from tests.unit.explain.cases import kimi

COUNTERS = SpecCounters(2400, 1600, 6400, 3200, (1300, 900, 600, 400), "vLLM /metrics")
FINDING = Finding(
    "async_scheduling",
    "Async scheduling is off in the candidate only",
    "the log says: Async scheduling not supported",
    "high",
    "grep -i 'async scheduling' vllm.log",
    "Look for `will be disabled`.",
    (0.001, 0.0025),
)


def evidence(**changes: Any) -> Evidence:
    made = Evidence(Drafting("ngram", 4, 2, 4), "vllm", "0.32.0", COUNTERS, stated(COUNTERS))
    return replace(made, **changes)


def replayed() -> Replayed:
    histogram = np.array([[0, 0, 800], [4, 1, 700], [4, 4, 900]], np.int64)
    acceptance = Acceptance(3, 6803, 6800, histogram, np.zeros((DECILES, 4), np.int64))
    return Replayed(Setting(4, 2, 4, acceptance, 0.8), (Setting(2, 2, 4, acceptance, 0.7),))


def log(**changes: Any) -> LogSummary:
    period = LogPeriod("11-29 11:18:25", COUNTERS)
    made = LogSummary("vllm", "vLLM 0.11 or later", 145, 9, COUNTERS, stated(COUNTERS), period, period, ())
    return replace(made, **changes)


def slow(**changes: Any) -> Diagnosis:
    """The published experiment, with a log, a replay and one finding."""
    case = kimi()
    made = evidence(
        drafting=Drafting("ngram", 5, 4, 4),
        log=log(),
        observations=case.observations,
        case=case,
        explanation=explain(case),
        replayed=replayed(),
        notes=("a note",),
    )
    return Diagnosis(
        replace(made, **changes), (FINDING, replace(FINDING, id="b", confidence="low", step_s=None))
    )


def live(tokens: int = 4000, drafted: int = 6400) -> Diagnosis:
    """A server that was looked at for half a minute."""
    counters = COUNTERS if drafted else SpecCounters(3000, 0, 0, 0, (), "vLLM /metrics")
    load = Load(requests=12, output_tokens=tokens, running=2, waiting=0, kv_usage=0.25, token_s=(31.2, 2400))
    seen = evidence(counters=counters, stated=stated(counters), traffic=Traffic(load, None, None, 30.0))
    return Diagnosis(seen, ())


def silent() -> Diagnosis:
    """Nothing is known of it."""
    return Diagnosis(Evidence(), (), {"acceptance_rate": "type  --url URL"})
