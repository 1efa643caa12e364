"""What the guard itself takes: deciding and accounting by batch size, and looking matches up by context.

    python benchmarks/guard_decision.py

Decisions: a batch of c requests, each with a match and a draft of 10 tokens in every step, of which as many
are right as drawn. Timed are `Policy.decide` and `Policy.observe` of STEPS steps with a known step cost; per
request and step.

Index: one context of random tokens with repeats, to which one token after another is added, and whose longest
match is asked each time, as after a plain step. Per token, over TOKENS tokens added at 1,000 and at 100,000
tokens of context.

Each figure is the median of REPEATS, and the largest beside it. Prints them and writes
results/guard_decision.json.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson

from breakeven.drafters.compiler import COMPILED
from breakeven.guard.known_times import KnownTimes
from breakeven.guard.match_index import LongestMatch, Match
from breakeven.guard.policy import Policy
from breakeven.guard.settings import GuardSettings
from breakeven.guard.told_steps import MOST_TOKENS

RESULT = Path(__file__).parent / "results" / "guard_decision.json"
BATCHES = (1, 2, 4, 8, 16, 32, 64)
CONTEXTS = (1_000, 100_000)
STEPS, TOKENS, REPEATS = 2_000, 1_000, 5
SIZES = np.arange(MOST_TOKENS + 1)
TIMES = KnownTimes([0.01 + 1e-4 * np.maximum(SIZES, c) for c in range(1, max(BATCHES) + 1)])
"""A draft token takes a hundredth of a plain step. What is decided matters little for how long it takes."""
VOCABULARY = 1_000


def policy_us(sequences: int) -> Callable[[], tuple[float, float]]:
    """Deciding and observing, of one request and step."""
    policy = Policy(GuardSettings(), TIMES)
    states = [policy.begin() for _ in range(sequences)]
    draw = np.random.default_rng(1)
    draft = np.arange(10, dtype=np.int32)
    lengths = draw.integers(1, 33, (STEPS, sequences)).tolist()
    matches = [[Match(length, 500, draft) for length in step] for step in lengths]
    right = (draw.geometric(0.3, (STEPS, sequences)) - 1).tolist()
    wrong = np.full(1, 99, np.int32)

    def run() -> tuple[float, float]:
        deciding = observing = 0.0
        for i in range(STEPS):
            began = time.perf_counter()
            ks = policy.decide(states, matches[i]).ks
            deciding += time.perf_counter() - began
            emitted = [np.concatenate([draft[:n], wrong]) for n in map(min, ks, right[i])]
            began = time.perf_counter()
            policy.observe(states, emitted)
            observing += time.perf_counter() - began
        return deciding / STEPS / sequences * 1e6, observing / STEPS / sequences * 1e6

    return run


def index_us(context: int) -> Callable[[], tuple[float]]:
    """Of one token."""
    ids = repeating(context + TOKENS)

    def run() -> tuple[float]:
        index = LongestMatch(1, 32, context + TOKENS)
        index.append(ids[:context])
        began = time.perf_counter()
        for at in range(context, context + TOKENS):
            index.append(ids[at : at + 1])
            index.match(10)
        return ((time.perf_counter() - began) / TOKENS * 1e6,)

    return run


def repeating(tokens: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Runs of some 20 tokens that stood before, and as many new ones."""
    draw = np.random.default_rng(2)
    ids = draw.integers(0, VOCABULARY, tokens).astype(np.int32)
    at = 40
    while at < tokens:
        run = int(draw.integers(1, 40))
        begin = int(draw.integers(0, at))
        copied = ids[begin : min(begin + run, at)]
        ids[at : at + len(copied)] = copied[: tokens - at]
        at += 2 * run
    return ids


def timed(run: Callable[[], tuple[float, ...]], *names: str) -> dict[str, dict[str, float]]:
    """By name, in the order of what is run."""
    run()
    found = [run() for _ in range(REPEATS)]
    return {
        name: {"median_us": round(median(values), 3), "largest_us": round(max(values), 3)}
        for name, values in zip(names, zip(*found, strict=True), strict=True)
    }


def main() -> None:
    decisions = {c: timed(policy_us(c), "decide", "observe") for c in BATCHES}
    lookups = {n: timed(index_us(n), "append and match") for n in CONTEXTS}
    for c, found in decisions.items():
        for name, one in found.items():
            print(f"{name:8} {c:3} requests: {one['median_us']:7.2f} µs per request and step")
    for n, found in lookups.items():
        for name, one in found.items():
            print(f"{name}, {n:7,} tokens of context: {one['median_us']:7.2f} µs per token")
    result = {
        "breakeven": version("breakeven"),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "compiled": COMPILED,
        "decision_us_per_request_and_step": {str(c): one for c, one in decisions.items()},
        "index_us_per_token": {str(n): one for n, one in lookups.items()},
    }
    RESULT.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


if __name__ == "__main__":
    main()
