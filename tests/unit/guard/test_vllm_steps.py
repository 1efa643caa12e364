"""GuardedSteps over many steps: what they are charged, and what is kept of requests that ended."""

from __future__ import annotations

import gc
import tracemalloc
from random import Random

import numpy as np
import pytest

from breakeven.guard._kernels import LONGEST_RUN
from breakeven.guard.probes import MOST_REST
from breakeven.guard.settings import GuardSettings
from breakeven.guard.vllm_steps import GuardedSteps, Limits
from tests.unit.guard.driving import curve
from tests.unit.guard.fake_vllm import WIDTH, FakeVllm

PLAIN_S = 0.01
CURVE = curve(lambda n: PLAIN_S * (0.99 + 0.01 * n), (1, 2, 4, 8, 16, 32, 64))
"""A draft token takes a hundredth of a plain step."""


class Clock:
    """Stands until it is moved on."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Served:
    """A server on a clock of its own, and what its steps saved in truth, in plain steps."""

    def __init__(self) -> None:
        self.clock, self.fake, self.drafts = Clock(), FakeVllm(), dict[int, list[int]]()
        self.steps = GuardedSteps(GuardSettings(), Limits(10, WIDTH, WIDTH), self.clock, curve=CURVE)
        self.saved = 0.0

    @property
    def error(self) -> float:
        """Plain steps by which the ledger is too high."""
        return self.steps.policy.counters.ledger - self.saved

    def step(self, factor: float = 1.0, stall: float = 0.0) -> int:
        """Tokens drafted in a step, which takes so many times as long if there are any, and a stall more."""
        self.fake.clear()
        drafted = sum(map(len, self.drafts.values()))
        cost = (1 + 0.01 * drafted) * factor if drafted else 1.0
        prompts = any(one.chunks for one in self.fake.batch)
        self.clock.now += PLAIN_S * (cost + stall)
        given = self.fake.step(self.drafts)
        proposed = self.steps.step(*given)
        self.drafts = {id(one): draft for one, draft in zip(self.fake.batch, proposed, strict=True)}
        if not prompts:
            self.saved += sum(len(new) - cost for new in given[0])
        return drafted


def copying(tokens: int = 900) -> Served:
    served, prompt = Served(), np.random.default_rng(1).permutation(tokens).tolist()
    served.fake.start(prompt, prompt)
    return served


def test_of_drafts_that_became_slow_one_step_is_charged_too_little() -> None:
    served = copying()
    for _ in range(20):
        served.step()
    before = served.error
    assert abs(before) < 0.5 and served.saved > 50
    slow = [served.step(factor=3.0) for _ in range(40)]
    assert 10 < sum(k > 0 for k in slow) < 30
    assert served.error - before == pytest.approx(2 * 1.1, abs=0.5)


def test_stalls_are_not_charged() -> None:
    served = copying()
    for step in range(70):
        served.step(stall=20.0 if step % 14 == 9 else 0.0)
    assert served.error == pytest.approx(0, abs=2) and served.saved > 300


def copies(served: Served, random: Random, steps: int, factor: float) -> int:
    """Tokens drafted in so many steps, for one short reply after another that copies its prompt."""
    drafted = 0
    for _ in range(steps):
        if not served.fake.batch:
            prompt = random.sample(range(5000), 60)
            served.fake.start(prompt, prompt * 2)
        served.fake.clear()
        drafted += served.step(factor)
    return drafted


def test_drafts_that_no_reply_could_bear_are_tried_again() -> None:
    """Though 2 % of 120 plain steps pay for no probe, by what was known of drafts last."""
    served, random = Served(), Random(1)
    assert copies(served, random, 200, 1.0) > 200
    copies(served, random, 400, 60.0)
    assert copies(served, random, 400, 60.0) == 0
    copies(served, random, 4 * MOST_REST, 1.0)
    assert copies(served, random, 200, 1.0) > 200


def many(served: Served, requests: int, random: Random) -> None:
    """Serve so many, four at a time: short ones, some of which loop, and some that go away."""
    begun, fake = 0, served.fake
    while begun < requests or fake.batch:
        while begun < requests and len(fake.batch) < 4:
            prompt = [random.randrange(5000) for _ in range(random.randint(2, 8))]
            looping = random.random() < 0.2
            fake.start(
                prompt, prompt[-1:] * 30 if looping else random.choices(prompt, k=random.randint(1, 6))
            )
            begun += 1
        served.step()
        if random.random() < 0.01:
            fake.preempt(random.choice(fake.batch))
        fake.clear()


def test_ten_thousand_requests_take_no_memory() -> None:
    """Between two moments when nothing runs, not so much as a pointer for each request is kept. Traced
    from the begin on, as what was there before and is replaced would count as new.
    """
    served, random = Served(), Random(3)
    tracemalloc.start()
    try:
        held = []
        for requests in (2_000, 10_000):
            many(served, requests, random)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert served.steps.policy.counters.drafted > 10_000
    assert held[1] - held[0] < 10_000 * 8


@pytest.mark.parametrize("period", [1, 3, 40, 100])
def test_a_reply_that_loops_for_5000_tokens_hardly_teaches_the_counts(period: int) -> None:
    served = Served()
    width = 8192
    served.steps = GuardedSteps(GuardSettings(), Limits(10, width, width), served.clock, curve=CURVE)
    text = np.resize(np.arange(100, 100 + period, dtype=np.int32), 5_000)
    ids, count, draft, drafted = np.zeros((1, width), np.int32), 8, list[int](), 0
    ids[0, :count] = np.arange(count)
    ids[0, count : count + len(text)] = text
    end = count + len(text)
    while count < end:
        right = 0
        while right < min(len(draft), end - count - 1) and draft[right] == ids[0, count + right]:
            right += 1
        drafted += len(draft)
        new = ids[0, count : count + right + 1].tolist()
        count += len(new)
        served.clock.now += PLAIN_S * (1 + 0.01 * len(draft))
        (draft,) = served.steps.step([new], np.array([count], np.int32), ids)
    assert drafted > 2_500
    trials = float(served.steps.policy.survival.counts[:, 0].sum())
    assert 0 < trials <= LONGEST_RUN + 1
