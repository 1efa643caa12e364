"""Timeline: when each decode step of a reply is done, and how many tokens it gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from breakeven.acceptance.counters import SpecCounters
from breakeven.servers.fake.script import Noise, Script, Speculation

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The truth about one reply. Step 0 is the prefill, which gives the first n_first tokens."""

    due_s: tuple[float, ...]
    """When each step is done, since the reply's start. [steps + 1]"""
    tokens: tuple[int, ...]
    """Tokens that each step gives. [steps + 1]"""
    drafted: tuple[int, ...]
    """Tokens drafted in each decode step. [steps]"""
    accepted: tuple[int, ...]
    """Of them, those that were accepted and emitted. [steps]"""

    @property
    def counters(self) -> SpecCounters:
        """Counts of the reply: the prefill is no step."""
        window = max(self.drafted, default=0)
        if not window:
            return SpecCounters(len(self.drafted), 0, 0, 0, (), source="fake server")
        return SpecCounters(
            steps=len(self.drafted),
            drafts=sum(1 for count in self.drafted if count),
            drafted_tokens=sum(self.drafted),
            accepted_tokens=sum(self.accepted),
            accepted_per_position=tuple(sum(1 for a in self.accepted if a > i) for i in range(window)),
            source="fake server",
        )

    @property
    def tpot_s(self) -> float | None:
        """(last − first) / tokens after the first step; None without such tokens."""
        after = sum(self.tokens[1:])
        return (self.due_s[-1] - self.due_s[0]) / after if after else None


class Drift:
    """The slow factor that all requests of one server share, as a function of the server's age."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self._numbers = np.random.default_rng(noise.seed if noise.drift_seed is None else noise.drift_seed)
        self._path = [noise.ar1_sigma * float(self._numbers.standard_normal())]

    def factor(self, age_s: Floats) -> Floats:
        """Factor on the step time at each age; the AR(1) part is constant within its step. [n] → [n]"""
        noise = self._noise
        linear = 1 + noise.drift_per_s * age_s
        if not noise.ar1_sigma:
            return linear
        cells = (age_s / noise.ar1_step_s).astype(int)
        self._extend(int(cells.max(initial=0)) + 1)
        slow: Floats = np.exp(np.asarray(self._path)[cells] - noise.ar1_sigma**2 / 2)
        return linear * slow

    def _extend(self, cells: int) -> None:
        rho = self._noise.ar1_rho
        fresh = self._noise.ar1_sigma * (1 - rho**2) ** 0.5
        while len(self._path) < cells:
            self._path.append(rho * self._path[-1] + fresh * float(self._numbers.standard_normal()))


def timeline(
    script: Script,
    n_tokens: int,
    key: bytes = b"",
    index: int = 0,
    age_s: float = 0.0,
    drift: Drift | None = None,
) -> Timeline:
    """When the tokens of one reply are ready.

    Which drafts are accepted depends on the prompt `key` alone, as greedy decoding would have it; noise is
    drawn for each request `index`. `age_s` is the server's age at the reply's start.
    """
    if script.noise is None:
        return _steady(script, n_tokens, key)
    return _timeline(script, n_tokens, key, index, age_s, drift)


@lru_cache(maxsize=256)
def _steady(script: Script, n_tokens: int, key: bytes) -> Timeline:
    return _timeline(script, n_tokens, key, 0, 0.0, None)


def _timeline(
    script: Script, n_tokens: int, key: bytes, index: int, age_s: float, drift: Drift | None
) -> Timeline:
    first = min(script.n_first, n_tokens)
    sizes, drafted, accepted = _steps(script, n_tokens - first, key)
    steps_s: Floats = np.full(len(sizes), script.tpot_s) * _cost(script.speculation, drafted)
    ttft_s = script.ttft_s
    if script.noise is not None:
        ttft_s, steps_s = _noisy(script.noise, ttft_s, steps_s, index, age_s, drift or Drift(script.noise))
    due_s = ttft_s + np.concatenate(([0.0], np.cumsum(steps_s)))
    tokens = (first, *sizes)
    return Timeline(_stalled(script, due_s, tokens), tokens, tuple(drafted), tuple(accepted))


def _steps(script: Script, n_tokens: int, key: bytes) -> tuple[list[int], list[int], list[int]]:
    speculation = script.speculation
    if speculation is None:
        return [1] * n_tokens, [0] * n_tokens, [0] * n_tokens
    chance = random.Random(f"{script.seed}:{key.hex()}:drafts").random  # noqa: S311
    drafted: list[int] = []
    accepted: list[int] = []
    left = n_tokens
    while left > 0:
        drafted.append(speculation.k if chance() < speculation.draft_share else 0)
        accepted.append(min(_accepted(drafted[-1], speculation.acceptance, chance), left - 1))
        left -= 1 + accepted[-1]
    return [1 + count for count in accepted], drafted, accepted


def _accepted(drafted: int, acceptance: float, chance: Callable[[], float]) -> int:
    for position in range(drafted):
        if chance() >= acceptance:
            return position
    return drafted


def _cost(speculation: Speculation | None, drafted: list[int]) -> Floats:
    """Each step's time in plain steps. [steps]"""
    if speculation is None:
        return np.ones(len(drafted))
    drafts = (np.asarray(drafted) > 0).astype(np.float64)
    return 1 + speculation.overhead + speculation.verify_cost * drafts


def _noisy(
    noise: Noise, ttft_s: float, steps_s: Floats, index: int, age_s: float, drift: Drift
) -> tuple[float, Floats]:
    numbers = np.random.default_rng((noise.seed, index))
    request = float(_lognormal(numbers, noise.request_sigma, 1)[0])
    ttft_s *= request
    age = age_s + ttft_s + np.concatenate(([0.0], np.cumsum(steps_s)))[:-1]
    steps_s = steps_s * request * drift.factor(age) * _lognormal(numbers, noise.token_sigma, len(steps_s))
    stalls = numbers.random(len(steps_s)) < noise.stall_probability
    return ttft_s, steps_s + stalls * numbers.exponential(noise.stall_s, len(steps_s))


def _lognormal(numbers: np.random.Generator, sigma: float, n: int) -> Floats:
    """Log-normal factors of mean 1: exp(σz − σ²/2)."""
    factors: Floats = numbers.lognormal(-(sigma**2) / 2, sigma, n)
    return factors


def _stalled(script: Script, due_s: Floats, tokens: tuple[int, ...]) -> tuple[float, ...]:
    if script.stall_at is not None:
        late = np.cumsum(tokens) > script.stall_at
        return tuple(np.where(late, due_s + script.stall_s, due_s).tolist())
    return tuple(due_s.tolist())
