"""Side: what is known of one of the servers that are compared, or of the one that is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from breakeven.acceptance.logs.summary import LogSummary
from breakeven.diagnose.evidence import Evidence, Replies, Traffic

BASELINE = "the baseline"
MOST_CHARACTERS = 160
"""Of a line of a log within a sentence."""


class Side(NamedTuple):
    """`name` is for sentences: `the server` where there is no baseline."""

    name: str
    replies: Replies | None
    traffic: Traffic | None
    log: LogSummary | None


def sides(evidence: Evidence) -> tuple[Side, ...]:
    """The candidate, then the baseline if anything is known of one."""
    mine = (evidence.replies, evidence.traffic, evidence.log)
    baseline = (evidence.baseline_replies, evidence.baseline_traffic, evidence.baseline_log)
    if all(known is None for known in baseline):
        return (Side("the server", *mine),)
    return (Side("the candidate", *mine), Side(BASELINE, *baseline))


def answered(evidence: Evidence) -> Iterator[tuple[str, Replies, int]]:
    """Name, replies and how many of them did not fail, of the sides that have any."""
    for side in sides(evidence):
        if side.replies is not None and (n := side.replies.requests - side.replies.failed) > 0:
            yield side.name, side.replies, n


def told(log: LogSummary | None, *events: str) -> tuple[int, str]:
    """How many lines tell one of these EVENTS of acceptance/logs/lines.py, and the first of them, clipped."""
    found = [log.events[event] for event in events if log is not None and event in log.events]
    first = found[0][1] if found else ""
    clipped = first if len(first) <= MOST_CHARACTERS else first[: MOST_CHARACTERS - 1] + "…"
    return sum(lines for lines, _ in found), clipped


def reports(log: LogSummary | None) -> int:
    """How often the log tells of its work: so many lines of an event are few or many beside it."""
    if log is None:
        return 0
    return max(log.periods, 0 if log.status is None else log.status.times)


def sentence(text: str) -> str:
    """With a capital at its start."""
    return text[:1].upper() + text[1:]


def replies_words(n: int) -> str:
    """`1 reply`, `3 replies`."""
    return f"{n:,} repl{'y' if n == 1 else 'ies'}"
