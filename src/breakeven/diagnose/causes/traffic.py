"""Traffic: work of others in the window, and ranks whose work is not counted."""

from __future__ import annotations

from typing import NamedTuple

from breakeven.diagnose.causes.cause import Cause
from breakeven.diagnose.causes.sides import sentence, sides
from breakeven.diagnose.evidence import Evidence, Traffic
from breakeven.explain.records import Finding
from breakeven.units import count, share

SLACK_REQUESTS = 1
"""A request may be counted as finished just after the reading that it belongs to."""
SLACK_TOKENS = 0.05
"""Of the tokens asked for: a server counts those of replies that broke off, and some beyond a reply's end."""
MUCH = 0.05
"""Of the work asked for. Beyond it, the figures are of a mixture."""


class Foreign(NamedTuple):
    """Work that nobody here asked for."""

    part: float
    """Of what was asked; 1 and more where it was as much."""
    said: str


def foreign_traffic(evidence: Evidence) -> Finding | None:
    """The server did more than was asked: its counters, and its speed, are of others' requests too."""
    found = [
        (side.name, work)
        for side in sides(evidence)
        if side.traffic is not None and (work := foreign(side.traffic)) is not None
    ]
    if not found:
        return None
    said = "; ".join(f"{name} {work.said}" for name, work in found)
    return Finding(
        "foreign_traffic",
        "Others used the server in the window",
        f"{sentence(said)}. The acceptance on its page is of their requests too, and they shared its steps",
        "high" if max(work.part for _, work in found) >= MUCH else "medium",
        "breakeven measure --url <url> --prompts <prompts>",
        "Measure while nobody else asks. Counts in the replies themselves are of one's own requests alone.",
    )


def foreign(traffic: Traffic) -> Foreign | None:
    """By requests where both are counted, else by tokens; None where only little more was done."""
    if traffic.requests is not None and traffic.load.requests is not None:
        return _foreign("requests", traffic.load.requests, traffic.requests, SLACK_REQUESTS)
    if traffic.output_tokens is not None and traffic.load.output_tokens is not None:
        slack = SLACK_TOKENS * traffic.output_tokens
        return _foreign("tokens", traffic.load.output_tokens, traffic.output_tokens, slack)
    return None


def _foreign(noun: str, done: int, asked: int, slack: float) -> Foreign | None:
    if done - asked <= slack:
        return None
    part = (done - asked) / max(asked, 1)
    verb = "finished" if noun == "requests" else "generated"
    return Foreign(part, f"{verb} {done:,} {noun} where {asked:,} were asked, {share(part)} more")


def silent_ranks(evidence: Evidence) -> Finding | None:
    """Data-parallel ranks that report nothing: their requests are in no count."""
    silent, ranks = evidence.silent_ranks, evidence.ranks
    if not 0 < silent < ranks:
        return None
    return Finding(
        "silent_ranks",
        "Some data-parallel ranks report no speculation",
        f"{silent} of {count(ranks, 'rank')} report{'s' if silent == 1 else ''} nothing or null. What is "
        f"shown is of the other {ranks - silent}, weighted by what each drafted: unknown is not 0",
        "high" if 2 * silent >= ranks else "medium",
        "curl -s <url>/metrics | grep -iE 'spec|accept'",
        "See which rank lacks the counters: one that was asked nothing has none yet, one that never drafts "
        "is set up otherwise.",
    )


CAUSES: tuple[Cause, ...] = (foreign_traffic, silent_ranks)
