"""Counting: totals that fell, sources that disagree, and too few drafts for a rate."""

from __future__ import annotations

import math

from breakeven.acceptance.counters import LEAST_DRAFTS, SpecCounters
from breakeven.acceptance.stated import WORDS
from breakeven.diagnose.causes.sides import sentence
from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.ratios import has_enough_drafts
from breakeven.explain.records import Finding
from breakeven.units import count, share

COUNTS_APART = 0.05
"""Of the larger count: what a last draft, accepted beyond the end of a short reply, comes to."""
RATES_APART = 0.05
"""Between two acceptance rates. Lines of a log are of periods, whose counts begin and end elsewhere."""
LEAST_TOKENS = 200
"""Counts below it differ by so much for a draft or two."""
ENOUGH_STEPS = 500
"""In so many, it is known that drafts are rare, and the reason for that is worth more than their number."""


def counters_reset(evidence: Evidence) -> Finding | None:
    """A total that fell: the server started anew within the window."""
    in_log = evidence.log.resets if evidence.log is not None else 0
    if evidence.resets <= 0:
        return None
    times = count(evidence.resets, "time")
    between_readings = evidence.resets > in_log
    return Finding(
        "counters_reset",
        "The server was restarted within the window"
        if between_readings
        else "The log holds more than one start of the server",
        f"Totals that only rise fell {times}: what was counted before is lost, and no rate is taken across it"
        if between_readings
        else f"The log begins anew {times}: its sums are of servers that may have been set differently",
        "high" if between_readings else "low",
        "journalctl -u <unit> --since -1h",
        "See what ended the server, and measure again within one life of it.",
    )


def sources_disagree(evidence: Evidence) -> Finding | None:
    """Two sources counted the same time differently. Ratios that agree tell that only the window differs."""
    mine, others = evidence.counters, evidence.other_sources
    if mine is None:
        return None
    rates = [words for other in others if (words := _rates_apart(mine, other))]
    counts = [words for other in others if (words := _counts_apart(evidence, mine, other))]
    if not rates and not counts:
        return None
    return Finding(
        "sources_disagree",
        "Two sources count differently",
        f"{sentence('; '.join((*rates, *counts)))}. One that has more counts requests beside one's own "
        "(warm-up, other users, replies that broke off); one that has less lacks a rank, or a period not yet "
        "written",
        "medium" if rates else "low",
        "breakeven measure --url <url> --prompts <prompts>",
        "See whether they agree while nobody else asks. Counts in the replies themselves are to be believed.",
    )


def _rates_apart(mine: SpecCounters, other: SpecCounters) -> str:
    """Both acceptance rates in words, where they differ and are of enough tokens; else empty."""
    one, two = mine.acceptance_rate, other.acceptance_rate
    if one is None or two is None or abs(one - two) <= RATES_APART:
        return ""
    if min(mine.drafted_tokens or 0, other.drafted_tokens or 0) < LEAST_TOKENS:
        return ""
    return f"acceptance rate: {share(one)} by {mine.source}, {share(two)} by {other.source}"


def _counts_apart(evidence: Evidence, mine: SpecCounters, other: SpecCounters) -> str:
    """The first count that differs, in words; empty for none, and beside a log, which counts by periods."""
    logged = evidence.log.counters.source if evidence.log and evidence.log.counters else None
    if logged in (mine.source, other.source):
        return ""
    for name in ("drafted_tokens", "accepted_tokens", "drafts"):
        one, two = getattr(mine, name), getattr(other, name)
        if one is None or two is None or max(one, two) < LEAST_TOKENS:
            continue
        if abs(one - two) > COUNTS_APART * max(one, two):
            return f"{WORDS[name]}: {one:,} by {mine.source}, {two:,} by {other.source}"
    return ""


def few_drafts(evidence: Evidence) -> Finding | None:
    """Too few drafts for a rate: what is shown of acceptance may be chance.

    A share of n is known to within 0.98 / √n with 95 % confidence: the normal approximation, at a share of ½.
    """
    counters = evidence.counters
    if counters is None or not counters.drafted_tokens or has_enough_drafts(evidence):
        return None
    drafts = counters.drafts or max(counters.drafted_tokens // (evidence.drafting.k or 1), 1)
    rate = counters.acceptance_rate
    accepted = "" if rate is None else f", {share(rate)} accepted"
    return Finding(
        "few_drafts",
        "Too few drafts to conclude from",
        f"{'' if counters.drafts else 'About '}{count(drafts, 'draft')}{accepted}: so few tell a share to "
        f"within {98 / math.sqrt(drafts):.0f} percentage points at worst, and nothing is concluded from it",
        "low" if (counters.steps or 0) >= ENOUGH_STEPS else "medium",
        "breakeven measure --url <url> --prompts <prompts> --repeats 10",
        f"See the acceptance once {LEAST_DRAFTS} drafts were made. At a temperature of 0 take more prompts: "
        "repeats draft alike.",
    )
