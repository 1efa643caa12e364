"""The guard's policy against a twin in plain Python, which counts every trial anew and tries every choice."""

from __future__ import annotations

import itertools
import json
import math
import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from breakeven.guard import policy as ours
from breakeven.guard._kernels import guard_requests
from breakeven.guard.match_index import Match
from breakeven.guard.policy import Policy, knobs_of, new_totals
from breakeven.guard.settings import GuardSettings
from breakeven.guard.survival import Survival
from tests.oracle.plain_python import digest_in_plain_python

LENGTHS = (
    (0, 1),
    (2, 2),
    (3, 3),
    (4, 4),
    (5, 5),
    (6, 6),
    (7, 7),
    (8, 8),
    (9, 12),
    (13, 16),
    (17, 24),
    (25, 10**9),
)
PRIORS = (0.23, 0.47, 0.57, 0.67, 0.70, 0.73, 0.76, 0.79, 0.83, 0.87, 0.87, 0.87)


def place(ranges: tuple[tuple[int, int], ...], value: int) -> int:
    return next(i for i, (low, high) in enumerate(ranges) if low <= value <= high)


def longest_match(ids: list[int], settings: GuardSettings) -> tuple[int, int]:
    """Tokens of the longest end of the context that stood before, and where it first ended; 0 without one."""
    for n in range(min(settings.most_match, len(ids) - 1), settings.least_match - 1, -1):
        for end in range(n, len(ids)):
            if ids[end - n : end] == ids[-n:]:
                return n, end
    return 0, 0


@dataclass
class TwinRequest:
    context: list[int]
    rest: list[int]
    saved: float = 0.0
    emitted: int = 0
    own: list[tuple[bool, float]] = field(default_factory=list)
    """Hit or not, and what was expected."""
    run: int = 0
    taught: int = 0

    def look(self, settings: GuardSettings) -> None:
        self.length, end = longest_match(self.context, settings)
        self.period = len(self.context) - end if self.length else 0
        self.draft = self.context[end:][: settings.most_tokens] if self.length else []


@dataclass
class Twin:
    settings: GuardSettings
    seconds: list[list[float]]
    """By sequences, and tokens of the step."""
    trials: list[tuple[int, bool]] = field(default_factory=list)
    """Row of LENGTHS, hit."""

    def chance(self, length: int) -> float:
        row = place(LENGTHS, length)
        seen = [hit for r, hit in self.trials if r == row]
        return (sum(seen) + ours.PRIOR_WEIGHT * PRIORS[row]) / (len(seen) + ours.PRIOR_WEIGHT)

    def survivals(self, one: TwinRequest) -> list[float]:
        fade = [ours.OWN_MEMORY**age for age in range(len(one.own) - 1, -1, -1)]
        hits = sum(f for f, (hit, _) in zip(fade, one.own, strict=True) if hit)
        misses = sum(f for f, (hit, _) in zip(fade, one.own, strict=True) if not hit)
        expected = sum(f * e for f, (_, e) in zip(fade, one.own, strict=True))
        unexpected = sum(f * (1 - e) for f, (_, e) in zip(fade, one.own, strict=True))
        w = ours.OWN_WEIGHT
        odds = (hits + w) / (expected + w) * (unexpected + w) / (misses + w)
        found, so_far = [], 1.0
        for j in range(len(one.draft)):
            o = odds * (p := self.chance(one.length + j)) / (1 - p)
            so_far *= o / (1 + o)
            found.append(so_far)
        return found

    def rate(self, one: TwinRequest) -> float:
        time = one.emitted - one.saved
        w = ours.RATE_WEIGHT
        return max(1, (one.emitted + w) / (time + w))

    def nets(self, batch: list[TwinRequest]) -> dict[tuple[int, ...], float]:
        """What every choice that is bearable is expected to gain."""
        c = len(batch)
        seconds = self.seconds[c]
        epsilon = self.settings.epsilon
        loss = math.inf if epsilon == math.inf else epsilon / (1 - epsilon)
        chances = [self.survivals(one) for one in batch]
        rate = sum(self.rate(one) for one in batch)
        found = {}
        for ks in itertools.product(*(range(len(one.draft) + 1) for one in batch)):
            waste = seconds[c + sum(ks)] / seconds[c] - 1
            if all(
                loss == math.inf
                or waste <= one.saved + loss * max(one.emitted + 1, self.settings.allowance_steps)
                for one in batch
            ):
                found[ks] = sum(sum(s[:k]) for s, k in zip(chances, ks, strict=True)) - rate * waste
        return found

    def step(self, batch: list[TwinRequest], ks: list[int]) -> list[list[int]]:
        """What the batch emits, and what is learned of it."""
        c = len(batch)
        cost = self.seconds[c][c + sum(ks)] / self.seconds[c][c]
        came = []
        for one, k in zip(batch, ks, strict=True):
            n = 0
            while n < k and n < len(one.rest) and one.draft[n] == one.rest[n]:
                n += 1
            tokens = one.rest[: n + 1]
            came.append(tokens)
            self.learn(one, tokens)
            one.saved += len(tokens) - cost
            one.emitted += len(tokens)
            one.context = one.context + tokens
            one.rest = one.rest[len(tokens) :]
        return came

    def learn(self, one: TwinRequest, tokens: list[int]) -> None:
        for j, token in enumerate(tokens):
            if j >= len(one.draft):
                one.run = one.run + 1 if one.draft else 0
                continue
            hit = one.draft[j] == token
            one.own.append((hit, self.chance(one.length + j)))
            if one.run < one.period and one.run < 64 and one.taught < 2048:
                self.trials.append((place(LENGTHS, one.length + j), hit))
                one.taught += 1
            one.run = one.run + 1 if hit else 0


def texts(seed: int, requests: int, tokens: int) -> list[TwinRequest]:
    """Prompts, and outputs that copy more or less of them."""
    rng = random.Random(seed)
    made = []
    for _ in range(requests):
        copies = rng.choice([0.0, 0.5, 0.8, 0.95, 1.0])
        ids = [rng.randrange(12) for _ in range(rng.randint(2, 30))]
        at, prompt = 0, len(ids)
        for _ in range(rng.randint(1, tokens)):
            at = at if rng.random() < copies else rng.randrange(len(ids))
            ids.append(ids[at] if rng.random() < 0.9 else rng.randrange(12))
            at += 1
        made.append(TwinRequest(ids[:prompt], ids[prompt:]))
    return made


def times(seed: int, sequences: int, most: int) -> list[list[float]]:
    """Seconds that rise unevenly, by sequences and tokens; entries below the sequences are the plain step."""
    rng = random.Random(seed)
    steep = rng.choice([0.0, 0.05, 0.3, 0.8])
    made: list[list[float]] = [[]]
    for c in range(1, sequences + 1):
        rises = [rng.choice([0.0, steep, steep * rng.random()]) for _ in range(c * most)]
        made.append([*[2.0] * (c + 1), *(2.0 * (1 + np.cumsum(rises))).tolist()])
    return made


class Times:
    def __init__(self, seconds: list[list[float]]) -> None:
        self._seconds = [np.array(one) for one in seconds]

    def seconds(self, most: int, sequences: int) -> np.ndarray:
        return self._seconds[sequences][: most + 1]

    def probe(self, sequences: int, most: int) -> int:
        return 0


def match_of(one: TwinRequest) -> Match:
    """As the policy takes it."""
    return Match(one.length, one.period, np.array(one.draft, np.int32))


@pytest.mark.parametrize("epsilon", [0.0, 0.02, 0.3, math.inf])
@pytest.mark.parametrize("sequences", [1, 2, 3])
def test_a_batch_is_decided_and_accounted_as_by_the_twin(epsilon: float, sequences: int):
    for seed in range(6):
        settings = GuardSettings(epsilon=epsilon, most_tokens=4, most_match=8, allowance_steps=4)
        seconds = times(seed, sequences, 4)
        policy, twin = Policy(settings, Times(seconds)), Twin(settings, seconds)
        waiting = texts(seed, 6, 60)
        running: list[tuple[TwinRequest, ours.RequestState]] = []
        while waiting or running:
            while waiting and len(running) < sequences:
                running.append((waiting.pop(), policy.begin()))
            batch, states = [one for one, _ in running], [state for _, state in running]
            for one in batch:
                one.look(settings)
            chosen = policy.decide(states, [match_of(one) for one in batch]).ks
            nets = twin.nets(batch)
            assert nets[chosen] >= max(nets.values()) - 1e-9
            came = twin.step(batch, list(chosen))
            policy.observe(states, [np.array(tokens, np.int32) for tokens in came])
            for one, state in running:
                assert policy.saved(state) == pytest.approx(one.saved)
                if not one.rest:
                    policy.end(state)
            running = [(one, state) for one, state in running if one.rest]
        assert policy.survival.counts[:, 0].sum() == len(twin.trials)
        assert policy.survival.counts[:, 1].sum() == sum(hit for _, hit in twin.trials)


def walked(seed: int, epsilon: float) -> tuple[list[int], list[int], list[int]]:
    """Of the loop over a record: positions, drafts, and each request's steps."""
    settings = GuardSettings(epsilon=epsilon, most_tokens=4, most_match=8, allowance_steps=4)
    columns: list[tuple[int, int, int, int]] = []
    begins = [0]
    for one in texts(seed, 8, 60):
        for p in range(len(one.rest)):
            here = TwinRequest(one.context + one.rest[:p], one.rest[p:])
            here.look(settings)
            pairs = list(zip(here.draft, here.rest, strict=False))
            right = next((j for j, (a, b) in enumerate(pairs) if a != b), len(pairs))
            columns.append((here.length, here.period, len(here.draft), right))
        begins.append(len(columns))
    arrays = [np.array(column, np.int32) for column in zip(*columns, strict=True)]
    at, drafted = np.zeros(len(columns), np.int64), np.zeros(len(columns), np.int32)
    steps = np.zeros(8, np.int64)
    n = guard_requests(
        *(*arrays, np.array(begins), 1, np.array(times(seed, 1, 4)[1]), Survival().counts),
        *(knobs_of(settings), at, drafted, steps, new_totals()),
    )
    return at[:n].tolist(), drafted[:n].tolist(), steps.tolist()


@pytest.mark.parametrize("epsilon", [0.02, math.inf])
def test_the_loop_over_a_record_is_the_policy(epsilon: float):
    for seed in range(5):
        settings = GuardSettings(epsilon=epsilon, most_tokens=4, most_match=8, allowance_steps=4)
        policy = Policy(settings, Times(times(seed, 1, 4)))
        drafted, steps = [], []
        for one in texts(seed, 8, 60):
            state, before = policy.begin(), len(drafted)
            one = TwinRequest(one.context + one.rest[:1], one.rest[1:])
            while one.rest:
                one.look(settings)
                k, n = policy.decide([state], [match_of(one)]).ks[0], 0
                while n < min(k, len(one.rest)) and one.draft[n] == one.rest[n]:
                    n += 1
                policy.observe([state], [np.array(one.rest[: n + 1], np.int32)])
                one = TwinRequest(one.context + one.rest[: n + 1], one.rest[n + 1 :])
                drafted.append(k)
            policy.end(state)
            steps.append(len(drafted) - before)
        assert walked(seed, epsilon)[1:] == (drafted, steps)


def digest() -> list[object]:
    """Of some records."""
    return [walked(seed, epsilon) for seed in range(6) for epsilon in (0.0, 0.02, math.inf)]


def test_plain_python_gives_the_same() -> None:
    found = digest_in_plain_python(__name__)
    assert found == json.loads(json.dumps(digest()))
