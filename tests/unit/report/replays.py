"""Replays and sweeps made by hand, for what is said and drawn of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.record import Acceptance, nothing
from breakeven.drafters.base import Drafter
from breakeven.drafters.registry import make_drafter
from breakeven.errors import UsageError
from breakeven.replay.records import Origin, Replay, RequestReplay, Sweep, SweepRow

FLAGS = '--speculative-config {"method": "ngram", "num_speculative_tokens": 5}'
GREEDY = Origin("runs/measure-1", "run", 0.0)


def acceptance(scale: int = 1, parts: bool = True) -> Acceptance:
    """20 steps, 8 drafts, 24 drafted and 12 accepted tokens in 3 requests, times `scale`."""
    histogram = np.array([(0, 0, 12), (1, 0, 1), (2, 1, 3), (3, 2, 3), (5, 3, 1)], np.int64)
    histogram[:, 2] *= scale
    deciles = np.array([[2, i % 2, 3 * (i % 2), i % 2] for i in range(10)], np.int64)
    both = {"reasoning": np.array([12, 2, 6, 1]), "answer": np.array([8, 6, 16, 11])} if parts else {}
    return Acceptance(3 * scale, 35 * scale, 32 * scale, histogram, deciles * scale,
                      {name: counts * scale for name, counts in both.items()})  # fmt: skip


def request(number: int, lengths: bool = False) -> RequestReplay:
    one = acceptance()
    accepted_lengths = np.array([0, 1, 3], np.int32) if lengths else None
    category = "even" if number % 2 == 0 else "odd"
    return RequestReplay(f"p{number}", category, 35, 32, one.counters, one.histogram, accepted_lengths)


def _known(drafter: str, settings: dict[str, Any]) -> tuple[str, bool]:
    """Engine and learning of a drafter; those of one's own for a name that is none."""
    try:
        made = make_drafter(drafter, settings)
    except UsageError:
        return Drafter.engine, Drafter.learns
    return made.engine, made.learns


def replayed(**changes: Any) -> Replay:
    """vllm-ngram on six requests in two categories."""
    whole = Replay(
        "vllm-ngram",
        {"k": 5, "min_n": 2, "max_n": 4},
        FLAGS,
        *_known(changes.get("drafter", "vllm-ngram"), changes.get("settings", {})),
        GREEDY,
        "prefill",
        total=acceptance() + acceptance(),
        by_category={"even": acceptance(), "odd": acceptance()},
        requests=tuple(request(number) for number in range(6)),
        skipped={"no tokens were generated": 2},
        warnings=("the ids of 3 requests were made again",),
        elapsed_s=0.5,
    )
    return replace(whole, **changes)


def no_steps() -> Replay:
    """One request of one token, which the prefill gives."""
    total = replace(nothing(), requests=1, output_tokens=1)
    one = RequestReplay("a", "", 1, 0, total.counters, np.zeros((0, 3), np.int64))
    return replayed(total=total, by_category={"": total}, requests=(one,), skipped={}, warnings=())


def row(drafter: str, tokens_per_step: float, rate: float, pareto: bool = False, **settings: Any) -> SweepRow:
    accepted = round((tokens_per_step - 1) * 1000)
    counters = SpecCounters(1000, 600, round(accepted / rate) if rate else 0, accepted, source="replay")
    flags = "" if drafter == "oracle" else f"--flags-of {drafter}"
    engine = {"vllm-ngram": "vllm", "trtllm-ngram": "tensorrt-llm"}.get(drafter, "own")
    learns = _known(drafter, settings)[1]
    return SweepRow(drafter, settings, flags, counters, tokens_per_step, engine, learns, pareto)


def swept(rows: tuple[SweepRow, ...] | None = None, **changes: Any) -> Sweep:
    """Two drafters over k and n ranges, a third with one setting; best first by tokens per step."""
    all_rows = ranked(_made()) if rows is None else rows
    whole = Sweep(GREEDY, "prefill", 6, 210, all_rows, {}, ("numba is not installed",), 1.5)
    return replace(whole, **changes)


def _made() -> list[SweepRow]:
    made = []
    for name, gain in (("vllm-ngram", 0.8), ("trtllm-ngram", 0.7)):
        for k in (1, 2, 4, 8, 12):
            for low, high, factor in ((2, 4, 1.1), (3, 5, 1.0)):
                rate = (0.9 - 0.03 * k) * 1.1 / factor
                made.append(row(name, 1 + gain * (1 - 0.6**k) * factor, rate, k=k, min_n=low, max_n=high))
    return [*made, row("sglang-ngram", 1.31, 0.12, k=12, match_type="bfs")]


def ranked(rows: list[SweepRow]) -> tuple[SweepRow, ...]:
    """Best first; on the front are those with an acceptance rate above that of all better rows."""
    ordered = sorted(rows, key=lambda one: -one.tokens_per_step)
    rates = [one.counters.acceptance_rate or 0.0 for one in ordered]
    return tuple(
        replace(one, pareto=rates[i] > max(rates[:i], default=-1.0)) for i, one in enumerate(ordered)
    )
