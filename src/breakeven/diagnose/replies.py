"""Replies of a run: what they are like, in one pass over its requests."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import geometric_mean, median
from typing import NamedTuple

import numpy as np

from breakeven.acceptance.load import Load
from breakeven.compare.confounders import cached_of_prompt
from breakeven.compare.degenerate import is_checked, loop_of
from breakeven.diagnose.evidence import Replies
from breakeven.latency import request_latency
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import Run, RunMeta

EARLY_PROMPTS = 4
"""First prompts whose first replies are the early ones; more at a higher concurrency, as many as start at
once. What is compiled or loaded on demand is so for the first requests of each shape."""
LATE_REQUESTS = 3
"""Replies, at least, that the early ones are compared with: one may be slow by chance."""
UNPAIRED_REQUESTS = 8
"""The same where no prompt was repeated. Were the order of 4 + 8 replies chance, the first four would be the
slowest four in 1 of 495 runs."""
STALL_S = 0.5
"""A step takes less on any server that is worth speeding up, and compiling a kernel seldom does."""
STALL_MEDIANS = 20
"""Steps of one reply differ by their draft and by the prefill of a neighbour, not by so much."""


def replies(run: Run) -> Replies:
    """Raises RunFormatError where the run is damaged."""
    seen = _Seen()
    for trace in run.traces():
        seen.add(trace)
    return seen.replies(run.meta)


class Timed(NamedTuple):
    """A reply with a TPOT."""

    sent_ns: int
    prompt_id: str
    category: str
    tpot_s: float


@dataclass(slots=True)
class _Seen:
    """What one pass gathers."""

    requests: int = 0
    failed: int = 0
    looping: list[str] = field(default_factory=list)
    periods: list[int] = field(default_factory=list)
    checked: int = 0
    looping_tokens: float = 0
    checked_tokens: int = 0
    truncated: int = 0
    max_tokens: int = 0
    cached: int = 0
    prompt: int = 0
    count_drafts: bool = False
    timed: list[Timed] = field(default_factory=list)
    longest_gaps_s: array[float] = field(default_factory=lambda: array("d"))
    usual_gaps_s: array[float] = field(default_factory=lambda: array("d"))

    def add(self, trace: RequestTrace) -> None:
        self.requests += 1
        self.max_tokens = max(self.max_tokens, trace.max_tokens)
        if trace.error is not None:
            self.failed += 1
            return
        self.count_drafts |= trace.speculation is not None
        latency = request_latency(trace)
        self.truncated += latency.truncated_in_reasoning
        self._add_loop(trace, latency.output_tokens or 0)
        self._add_gaps(gaps_s(trace))
        if latency.tpot_s:
            self.timed.append(Timed(trace.sent_ns, trace.prompt_id, trace.category, latency.tpot_s))
        cached, prompt = cached_of_prompt(trace) or (0, 0)
        self.cached += cached
        self.prompt += prompt

    def _add_loop(self, trace: RequestTrace, tokens: int) -> None:
        if not is_checked(trace):
            return
        self.checked += 1
        self.checked_tokens += tokens
        if (loop := loop_of(trace)) is not None:
            self.looping.append(trace.id)
            self.periods.append(loop.period_tokens)
            self.looping_tokens += loop.share * tokens

    def _add_gaps(self, gaps: Sequence[float]) -> None:
        if usual := usual_gap_s(gaps):
            self.longest_gaps_s.append(max(gaps))
            self.usual_gaps_s.append(usual)

    def replies(self, meta: RunMeta) -> Replies:
        early = warm_up(self.timed, meta.schedule.concurrency or 1)
        usual = median(self.usual_gaps_s) if self.usual_gaps_s else None
        return Replies(
            requests=self.requests,
            failed=self.failed,
            looping=tuple(self.looping),
            checked_for_loops=self.checked,
            looping_tokens=round(self.looping_tokens),
            checked_tokens=self.checked_tokens,
            loop_periods=(min(self.periods), max(self.periods)) if self.periods else None,
            count_drafts=self.count_drafts,
            truncated_in_reasoning=self.truncated,
            max_tokens=self.max_tokens or None,
            early_tpot_s=early.early_s,
            late_tpot_s=early.late_s,
            early_requests=early.requests,
            early_same_prompts=early.same_prompts,
            longest_gap_s=max(self.longest_gaps_s, default=None),
            median_gap_s=usual,
            stalled=0 if usual is None else stalled(self.longest_gaps_s, usual),
            client_reasons=client_reasons(meta),
            prefix_hit_rate=self._prefix_hit_rate(meta.load),
        )

    def _prefix_hit_rate(self, load: Load | None) -> float | None:
        """As the replies say, else as the server's page does of the same time."""
        if self.prompt:
            return self.cached / self.prompt
        return None if load is None else load.prefix_hit_rate


def gaps_s(trace: RequestTrace) -> list[float]:
    """Between each two reads of a reply that brought tokens. [reads − 1]"""
    return [
        (after.read_ns - before.read_ns) / 1e9
        for before, after in pairwise(trace.events)
        if after.read_id != before.read_id
    ]


def usual_gap_s(gaps: Sequence[float]) -> float | None:
    """The gap that the middle of their summed time falls into, when they are put in order; None for none.

    Half of the time goes by in gaps at most as long. The plain median would be of the gaps within an accepted
    draft where tokens of one step are read one by one.
    """
    ordered = np.sort(np.asarray(gaps, np.float64))
    passed = np.cumsum(ordered)
    if not len(ordered) or passed[-1] <= 0:
        return None
    return float(ordered[np.searchsorted(passed, passed[-1] / 2)])


def stalled(longest_gaps_s: Iterable[float], usual_s: float) -> int:
    """Replies with a gap of STALL_S at least, and of STALL_MEDIANS usual ones."""
    least = max(STALL_S, STALL_MEDIANS * usual_s)
    return sum(gap >= least for gap in longest_gaps_s)


class WarmUp(NamedTuple):
    """Early requests beside late ones; the seconds are geometric means, None where there are too few."""

    early_s: float | None = None
    late_s: float | None = None
    requests: int = 0
    same_prompts: bool = True


def warm_up(timed: Iterable[Timed], concurrency: int) -> WarmUp:
    """The first replies beside later ones to the same prompts; where none was repeated, by their ranks."""
    ordered = sorted(timed)
    by_prompt: defaultdict[str, list[float]] = defaultdict(list)
    for one in ordered:
        by_prompt[one.prompt_id].append(one.tpot_s)
    n = max(EARLY_PROMPTS, concurrency)
    repeated = {prompt: speeds for prompt, speeds in by_prompt.items() if len(speeds) > 1}
    return _on_same_prompts(repeated, n) if repeated else _by_rank(ordered, n)


def _on_same_prompts(by_prompt: Mapping[str, Sequence[float]], n: int) -> WarmUp:
    """`by_prompt` holds TPOTs in the order in which they were sent, prompts in that of their first."""
    first = list(by_prompt.values())[:n]
    if sum(len(speeds) - 1 for speeds in first) < LATE_REQUESTS:
        return WarmUp()
    late_s = geometric_mean(geometric_mean(speeds[1:]) for speeds in first)
    return WarmUp(geometric_mean(speeds[0] for speeds in first), late_s, len(first))


def _by_rank(ordered: Sequence[Timed], n: int) -> WarmUp:
    """Only where every one of the first was slower than all others: prompts differ in speed by themselves."""
    first, categories = ordered[:n], {one.category for one in ordered[:n]}
    others = [one.tpot_s for one in ordered[n:] if one.category in categories]
    if len(others) < max(UNPAIRED_REQUESTS, 2 * n) or min(one.tpot_s for one in first) <= max(others):
        return WarmUp()
    return WarmUp(geometric_mean(one.tpot_s for one in first), geometric_mean(others), n, False)


def client_reasons(meta: RunMeta) -> tuple[str, ...]:
    """Why the run's self-check fails, as it says; none where it passed, or was never made."""
    return tuple((meta.self_check or {}).get("reasons", ()))
