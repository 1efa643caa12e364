"""Memory: a KV cache that is full, and a prefix cache that finds less than without speculation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from breakeven.acceptance.load import Load
from breakeven.compare.confounders import CACHE_SHARE
from breakeven.diagnose.causes.cause import Cause
from breakeven.diagnose.causes.left_over import suspicion
from breakeven.diagnose.causes.sides import Side, reports, sentence, sides, told
from breakeven.diagnose.evidence import Evidence
from breakeven.explain.records import Confidence, Finding
from breakeven.units import count, share

FULL = 0.95
"""Of the KV cache. Engines admit requests until the next blocks do not fit, and preempt a little before 1."""
MANY_PREEMPTIONS = 0.05
"""Per finished request, or report of a log. Each computes its tokens anew, so that fewer cost no more than
runs differ by."""
PRESSURE = ("preemption", "kv_cache_full")
"""Events of a log."""


def kv_cache_pressure(evidence: Evidence) -> Finding | None:
    """Requests put out of the batch for lack of KV cache: drafts and a drafter's own cache take room.

    A few are no cause where steps are known to take as long as they should.
    """
    found = [(side, said) for side in sides(evidence) if (said := _pressure(side))]
    confidence = _confidence([side for side, _ in found])
    if not found or (confidence == "low" and suspicion(evidence) == "no"):
        return None
    is_full = any(_is_full(side) for side, _ in found)
    return Finding(
        "kv_cache_pressure",
        "The KV cache is full" if is_full else "Requests were preempted",
        f"{sentence('; '.join(f'{side.name}: {said}' for side, said in found))}. A request that is preempted "
        "computes its cache anew, and those that wait leave the batch smaller",
        confidence,
        "grep -iE 'preempt|KV cache size|maximum concurrency' <baseline-log> <candidate-log>",
        "See how much less cache speculation leaves. Fewer sequences at once, a shorter context or a smaller "
        "window keep within it.",
    )


def _pressure(side: Side) -> str:
    """What shows it, in words; empty for nothing. Requests may wait for a place in the batch alone."""
    load, (lines, first) = _load(side), told(side.log, *PRESSURE)
    signs = []
    if load.preemptions:
        signs.append(f"{count(load.preemptions, 'preemption')} counted")
    elif lines:
        signs.append(f"{count(lines, 'line')} of its log tell of it ({first})")
    if load.kv_usage is not None and load.kv_usage >= FULL:
        signs.append(f"{share(load.kv_usage)} of the cache in use")
        signs += [f"{load.waiting:g} waiting"] if load.waiting else []
    return ", ".join(signs)


def _confidence(pressed: Sequence[Side]) -> Confidence:
    """High where many requests were preempted; low where few were, or the cache is full and nobody waits."""
    loads = [_load(side) for side in pressed]
    if any(_preempts_often(load) for load in loads):
        return "high"
    waits = any(load.waiting and (load.kv_usage or 0) >= FULL for load in loads)
    uncounted = any(load.preemptions and load.requests is None for load in loads)
    return "medium" if waits or uncounted or any(_tells_often(side) for side in pressed) else "low"


def _is_full(side: Side) -> bool:
    """By its usage, or by a line that says so."""
    return (_load(side).kv_usage or 0) >= FULL or told(side.log, "kv_cache_full")[0] > 0


def _tells_often(side: Side) -> bool:
    """Lines of its log on it, beside all its reports; the page's count is not among them."""
    lines, _ = told(side.log, *PRESSURE)
    return not _load(side).preemptions and lines > 0 and lines >= MANY_PREEMPTIONS * reports(side.log)


def _preempts_often(load: Load) -> bool:
    """Not known, and so not said, where one of the two is not counted."""
    if not load.preemptions or load.requests is None:
        return False
    return load.preemptions >= MANY_PREEMPTIONS * load.requests


def _load(side: Side) -> Load:
    """What its page says, with the fullest that its log tells of."""
    load = Load() if side.traffic is None else side.traffic.load
    status = side.log.status if side.log is not None else None
    if status is None:
        return load
    usage = _most(load.kv_usage, status.most_kv_usage)
    return replace(load, kv_usage=usage, waiting=_most(load.waiting, status.most_waiting))


def _most(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


def fewer_prefix_hits(evidence: Evidence) -> Finding | None:
    """The prefix cache found less with speculation: longer prefills, of which some run in steps of others."""
    rates = _hit_rates(evidence)
    if rates is None or rates[0] - rates[1] <= CACHE_SHARE:
        return None
    before, after, source = rates
    return Finding(
        "fewer_prefix_hits",
        "The prefix cache finds less with speculation",
        f"{share(before)} of prompt tokens were in the cache without speculation, {share(after)} with it, as "
        f"{source} tell. The others are computed: time to first token shows it, and TPOT where prefills "
        "share steps with decoding",
        "low" if source == LOGS else "medium",
        "breakeven measure --url <url> --prompts <prompts> --warmup 8",
        "See whether the two meet once both caches are warm. If not, the drafter's cache takes the room, or "
        "the engine does not share the last block of a prompt under speculation.",
    )


LOGS = "the logs"


def _hit_rates(evidence: Evidence) -> tuple[float, float, str] | None:
    """Without and with speculation, of the first source that tells both: the same requests come first, then
    all that was served in the window, then whatever time the logs are of."""
    runs = evidence.baseline_replies, evidence.replies
    loads = evidence.baseline_traffic, evidence.traffic
    logs = evidence.baseline_log, evidence.log
    by_source = {
        "the replies": [None if one is None else one.prefix_hit_rate for one in runs],
        "the servers' pages": [None if one is None else one.load.prefix_hit_rate for one in loads],
        LOGS: [None if one is None or one.status is None else one.status.prefix_hit_rate for one in logs],
    }
    for source, (before, after) in by_source.items():
        if before is not None and after is not None:
            return before, after, source
    return None


CAUSES: tuple[Cause, ...] = (kv_cache_pressure, fewer_prefix_hits)
