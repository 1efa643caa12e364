"""Continuous batching against a naive simulation of it, which asks the cost itself and keeps lists."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.cost.drafting import DraftingCost
from breakeven.cost.step import Step
from breakeven.forecast.collected import SettingSteps
from breakeven.forecast.simulate import Batching
from tests.oracle.plain_python import digest_in_plain_python
from tests.unit.forecast.costs import Line, drafting, record

ROUNDING = 1e-11
"""Relative: the two add the same seconds in another order."""
MOST_DRAFT = 5
PREFILL_S = 2e-5


COST = Line(7e-3, 3e-5, 4e-8)
"""Which tables meet exactly."""
DRAFTING = drafting(step=3e-4, drafted=5e-4, token=1e-4)

STUDENT = (0.0, 12.7062047, 4.30265273, 3.18244631, 2.77644511, 2.57058184, 2.44691185, 2.36462425)
"""97.5 % quantiles by degrees of freedom, from printed tables."""


@dataclass
class Load:
    """Prompt tokens, and (drafted, accepted) of each step, by request."""

    prompts: list[int]
    steps: list[list[tuple[int, int]]]
    concurrency: int
    budget: int


def naive_seconds(load: Load, cost: DraftingCost | None) -> float:
    """Step by step: who is in the batch, what each does, what that takes."""
    waiting = [
        {"unread": prompt, "cached": 0, "steps": list(steps), "read": False}
        for prompt, steps in zip(load.prompts, load.steps, strict=True)
    ]
    batch: list[dict[str, Any]] = []
    seconds = 0.0
    while waiting or batch:
        decoding = [request for request in batch if request["read"]]
        drafts = [request["steps"][0][0] for request in decoding]
        cached = sum(request["cached"] for request in decoding)
        room = load.budget - sum(drafts) - len(decoding)
        prompt_tokens = 0
        while room > 0:
            reading = [request for request in batch if not request["read"]]
            if not reading and waiting and len(batch) < load.concurrency:
                reading = [waiting.pop(0)]
                batch += reading
            if not reading:
                break
            chunk = min(room, reading[0]["unread"])
            reading[0]["unread"] -= chunk
            reading[0]["cached"] += chunk
            reading[0]["read"] = reading[0]["unread"] == 0
            room -= chunk
            prompt_tokens += chunk
        for request in decoding:
            request["cached"] += request["steps"].pop(0)[1] + 1
        batch = [request for request in batch if not request["read"] or request["steps"]]
        seconds += step_seconds(drafts, cached) + PREFILL_S * prompt_tokens
        if cost is not None:
            seconds += cost.step_s.estimate + max(drafts, default=0) * cost.token_s.estimate
            seconds += cost.drafted_step_s.estimate if any(drafts) else 0.0
    return seconds


def step_seconds(drafts: list[int], cached: int) -> float:
    if not drafts:
        return COST.seconds(Step()).estimate
    sequences = len(drafts)
    return COST.seconds(Step(1 + sum(drafts) / sequences, sequences, cached / sequences)).estimate


def compiled(load: Load) -> tuple[Batching, SettingSteps]:
    requests, setting = record(load.steps)
    requests = replace(requests, prompt_tokens=np.array(load.prompts, np.int64))
    return Batching(requests, COST, load.concurrency, MOST_DRAFT, PREFILL_S, load.budget), setting


def plain(load: Load) -> Load:
    steps = [[(0, 0)] * sum(accepted + 1 for _, accepted in steps) for steps in load.steps]
    return Load(load.prompts, steps, load.concurrency, load.budget)


pairs = st.integers(0, MOST_DRAFT).flatmap(
    lambda drafted: st.tuples(st.just(drafted), st.integers(0, drafted))
)
requests = st.tuples(st.integers(0, 40), st.lists(pairs, max_size=8))


@st.composite
def load_of(draw: st.DrawFn) -> Load:
    found = draw(st.lists(requests, min_size=1, max_size=10))
    prompts, steps = zip(*found, strict=True)
    return Load(list(prompts), list(steps), draw(st.integers(1, 7)), draw(st.integers(1, 60)))


@settings(max_examples=200, deadline=None)
@given(load_of())
def test_equal_to_the_naive_simulation(load: Load) -> None:
    batching, steps = compiled(load)
    assert batching.plain_s == pytest.approx(naive_seconds(plain(load), None), rel=ROUNDING)
    assert batching.seconds(steps, DRAFTING) == pytest.approx(naive_seconds(load, DRAFTING), rel=ROUNDING)


@settings(max_examples=50, deadline=None)
@given(load_of())
def test_the_jackknife_serves_the_others_alone(load: Load) -> None:
    """Each of its simulations is that of a load which never had the group's requests."""
    batching, steps = compiled(load)
    groups = min(8, len(load.prompts))
    logs = []
    for group in range(groups) if len(load.prompts) > 1 else ():
        kept = [r for r in range(len(load.prompts)) if r % groups != group]
        rest = Load(
            [load.prompts[r] for r in kept], [load.steps[r] for r in kept], load.concurrency, load.budget
        )
        logs.append(np.log(naive_seconds(plain(rest), None) / naive_seconds(rest, DRAFTING)))
    spread = np.sqrt((groups - 1) * np.var(logs)) if logs else 0.0
    found = batching.speedup(steps, DRAFTING)
    half = np.log(found.high / found.estimate)
    assert half == pytest.approx(STUDENT[groups - 1] * spread, rel=1e-6, abs=1e-9)
    assert np.log(found.estimate / found.low) == pytest.approx(half, abs=1e-9)


def digest() -> list[list[str]]:
    """Exact seconds of some loads."""
    rng = random.Random(3)
    found = []
    for _ in range(20):
        n = rng.randint(1, 9)
        steps = [
            [(d := rng.choice((0, 0, 1, 3)), rng.randint(0, d)) for _ in range(rng.randint(0, 30))]
            for _ in range(n)
        ]
        load = Load([rng.randint(0, 60) for _ in range(n)], steps, rng.randint(1, 6), rng.randint(8, 60))
        batching, setting = compiled(load)
        found.append([batching.plain_s.hex(), batching.seconds(setting, DRAFTING).hex()])
    return found


def test_plain_python_gives_the_same() -> None:
    found = digest_in_plain_python(__name__)
    assert found == digest()
