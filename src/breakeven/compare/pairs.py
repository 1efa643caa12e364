"""Replies of two runs, and which of them answer the same request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from breakeven.compare.bootstrap import Array
from breakeven.errors import UsageError
from breakeven.latency import RequestLatency, request_latency
from breakeven.trace.records import RequestTrace

Key = tuple[str, int]
"""Prompt id and repeat."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One request's trace and its derived figures."""

    trace: RequestTrace
    latency: RequestLatency

    @property
    def tpot_s(self) -> float | None:
        """None also for a failed request."""
        return self.latency.tpot_s


Replies = Mapping[Key, Reply]


@dataclass(frozen=True, slots=True)
class Pairs:
    """TPOTs in seconds of the requests that both sides answered: shape (prompts, repeats), NaN where one is
    missing.

    Rows are the prompts with at least one pair, in the baseline's order; columns the repeats with any.
    """

    prompt_ids: tuple[str, ...]
    categories: tuple[str, ...]
    baseline_tpot_s: Array
    candidate_tpot_s: Array

    @property
    def log_ratios(self) -> Array:
        """log(baseline / candidate): above 0 the candidate is faster."""
        ratios: Array = np.log(self.baseline_tpot_s) - np.log(self.candidate_tpot_s)
        return ratios

    @property
    def counts(self) -> tuple[int, ...]:
        """Pairs of each prompt."""
        return tuple(int(n) for n in (~np.isnan(self.baseline_tpot_s)).sum(axis=1))


def replies(traces: Iterable[RequestTrace], side: str) -> Replies:
    """A side's replies by prompt and repeat.

    Raises UsageError if two traces answer the same request: such a run cannot be paired.
    """
    found: dict[Key, Reply] = {}
    for trace in traces:
        key = (trace.prompt_id, trace.repeat)
        if key in found:
            raise UsageError(
                f"the {side} run holds request {trace.id} twice: compare runs with unique requests"
            )
        found[key] = Reply(trace, request_latency(trace))
    return found


def pair(baseline: Replies, candidate: Replies) -> Pairs:
    """The requests with a TPOT on both sides."""
    keys = [
        key
        for key, reply in baseline.items()
        if reply.tpot_s is not None and key in candidate and candidate[key].tpot_s is not None
    ]
    rows = {prompt_id: row for row, prompt_id in enumerate(dict.fromkeys(prompt_id for prompt_id, _ in keys))}
    columns = {repeat: column for column, repeat in enumerate(sorted({repeat for _, repeat in keys}))}
    categories = {prompt_id: baseline[prompt_id, repeat].trace.category for prompt_id, repeat in keys}
    tables = np.full((2, len(rows), len(columns)), np.nan)
    for side, table in zip((baseline, candidate), tables, strict=True):
        for prompt_id, repeat in keys:
            table[rows[prompt_id], columns[repeat]] = side[prompt_id, repeat].tpot_s
    return Pairs(tuple(rows), tuple(categories[prompt_id] for prompt_id in rows), *tables)


def complete_repeats(baseline: Replies, candidate: Replies) -> int:
    """Repeats in which both sides were asked every prompt, whether or not an answer came."""
    prompts = {prompt_id for prompt_id, _ in (*baseline, *candidate)}
    repeats = {repeat for _, repeat in baseline}
    return sum(
        all((prompt_id, repeat) in side for prompt_id in prompts for side in (baseline, candidate))
        for repeat in repeats
    )
