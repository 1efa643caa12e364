"""Recorded outputs that copy more or less, and terms that are easy to reckon with."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from breakeven.cost.step import StepCost
from breakeven.guard.settings import GuardSettings
from breakeven.guard.simulate.looked import Looked, look
from breakeven.guard.simulate.records import NO_EPSILON
from breakeven.guard.simulate.terms import Terms
from breakeven.replay.grid import default_grid
from breakeven.replay.sources import Source, open_source
from tests.unit.forecast.costs import FREE, Line

KINDS = {"copy": 0.95, "mixed": 0.6, "free": 0.1}
"""By category: how often an output goes on copying what stands before it."""


def an_output(seed: int, tokens: int, copies: float, words: int = 60) -> tuple[list[int], list[int]]:
    """A prompt and an output of it: runs that stand before, and new words."""
    rng = random.Random(seed)
    prompt = [rng.randrange(words) for _ in range(80)]
    ids = list(prompt)
    at = 0
    while len(ids) < len(prompt) + tokens:
        if rng.random() < copies:
            ids.append(ids[at])
            at += 1
        else:
            ids.append(rng.randrange(words))
            at = rng.randrange(len(ids) - 1)
    return prompt, ids[len(prompt) :]


def write_record(path: Path, requests: int = 12, tokens: int = 160) -> Path:
    """As many requests of each of KINDS, one after the other, of several lengths."""
    lines = []
    for i in range(requests):
        kind = list(KINDS)[i % len(KINDS)]
        prompt, output = an_output(i, tokens + 7 * i, KINDS[kind])
        row = {
            "id": f"r{i}",
            "category": kind,
            "prompt_token_ids": prompt,
            "output_token_ids": output,
        }
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines) + "\n")
    return path


def record(folder: Path, requests: int = 12, tokens: int = 160) -> Source:
    return open_source(write_record(folder / "record.jsonl", requests, tokens))


def looked(folder: Path, **changes: Any) -> Looked:
    return look(record(folder), replace(GuardSettings(), **changes), "prefill")


def terms(
    cost: StepCost | None = None,
    ks: Sequence[int] = (1, 3, 6),
    epsilons: tuple[float, ...] = (0.01, 0.05, NO_EPSILON),
    **changes: Any,
) -> Terms:
    """A step of 1 + 0.2 plain steps for each drafted token, and lookups that cost nothing."""
    grid = default_grid(("vllm-ngram",), ks, ((1, 3), (2, 4)))
    made = Terms(cost or Line(0.008, 0.002), "a line", FREE, "vllm", grid, GuardSettings(), epsilons, (1,))
    return replace(made, **changes)
