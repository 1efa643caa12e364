"""Degenerate output: replies that end in a loop, each of whose tokens a drafter guesses."""

from __future__ import annotations

from collections.abc import Sequence

from breakeven.diagnose.causes.cause import Cause
from breakeven.diagnose.causes.sides import BASELINE, answered, sentence, sides, told
from breakeven.diagnose.evidence import Evidence, Replies
from breakeven.diagnose.ratios import acceptance_rate, draft_share, draft_tokens
from breakeven.explain.records import Finding
from breakeven.units import count, share

LOOPS_DRAFTED = 0.05
"""Of all drafted tokens. Loops are accepted whole, so that they raise an acceptance rate by at most this
share: below it by less than acceptance differs between one set of prompts and the next, …"""
MANY_LOOPS_DRAFTED = 0.2
"""… and above this by enough to turn a loss into a gain."""


def looping_output(evidence: Evidence) -> Finding | None:
    """Replies that repeat a few tokens to their end: an acceptance that holds them is not of real text."""
    parts = [(name, seen, drafted_by_loops(evidence, _part(seen))) for name, seen, _ in answered(evidence)]
    found = [one for one in parts if one[2] >= LOOPS_DRAFTED]
    if not found:
        return None
    loops = sentence("; ".join(_said(*one) for one in found))
    return Finding(
        "degenerate_output",
        "Replies that loop inflate acceptance",
        f"{loops}. A drafter guesses every token of a loop. {_where(evidence, [name for name, *_ in found])}",
        "high" if max(part for *_, part in found) >= MANY_LOOPS_DRAFTED else "medium",
        "breakeven measure --url <url> --prompts <prompts> --temperature 0.7",
        "See what is accepted of replies that end by themselves. A template or a quantisation that does not "
        "fit the model makes it loop, too.",
    )


def drafted_by_loops(evidence: Evidence, x: float) -> float:
    """Of all drafted tokens those in loops, which are a share `x` of the output: at least, where not all is
    known.

    A loop drafts k tokens in every step and has them accepted, so that it takes x / (k + 1) steps; other text
    takes (1 − x) / (1 + f·k·a), of which a share f drafts. Without f and a, other text is taken to draft and
    to be accepted as loops are, which makes the answer x.
    """
    share_of_steps, rate, k = draft_share(evidence), acceptance_rate(evidence), draft_tokens(evidence)
    if not x or k is None:
        return x
    f = 1.0 if share_of_steps is None else share_of_steps.high
    a = 1.0 if rate is None else rate.low
    in_loops, in_text = x * k / (k + 1), (1 - x) * f * k / (1 + f * k * a)
    return in_loops / (in_loops + in_text)


def _part(seen: Replies) -> float:
    """Of the tokens that are in loops; of the replies, where their tokens were not counted."""
    if seen.checked_tokens:
        return min(seen.looping_tokens / seen.checked_tokens, 1.0)
    return len(seen.looping) / seen.checked_for_loops if seen.checked_for_loops else 0.0


def _said(name: str, seen: Replies, drafted: float) -> str:
    ends = f"{len(seen.looping)} of {seen.checked_for_loops} replies of {name} end in a loop{_periods(seen)}"
    tokens = f"{share(_part(seen))} of its tokens and " if seen.checked_tokens else ""
    return f"{ends}, {tokens}at least {share(drafted)} of what is drafted"


def _where(evidence: Evidence, names: Sequence[str]) -> str:
    """Which figures hold those replies."""
    counted = names != [BASELINE]
    left_out = counted and evidence.replies is not None and evidence.replies.count_drafts
    sources = (None if left_out else evidence.counters, *evidence.other_sources) if counted else ()
    held = [one.source for one in sources if one is not None and one.source]
    held += ["the replay"] if evidence.replayed is not None else []
    holders = " and ".join(dict.fromkeys(held)) or "whatever else counts this text"
    said = f"they are in {holders}, and what that says is not of real text"
    return f"Counts of the replies leave them out; {said}" if left_out else sentence(said)


def _periods(seen: Replies) -> str:
    if seen.loop_periods is None:
        return ""
    short, long = seen.loop_periods
    if short == long:
        return f" of {short} token" + ("" if short == 1 else "s")
    return f" of {short} to {long} tokens"


def nan_output(evidence: Evidence) -> Finding | None:
    """The log tells of values that are no numbers: what is drafted and accepted then is no text."""
    found = [(side.name, *told(side.log, "nan")) for side in sides(evidence)]
    said = [f"{count(lines, 'line')} in the log of {name} ({first})" for name, lines, first in found if lines]
    if not said:
        return None
    return Finding(
        "nan_output",
        "The server computes values that are no numbers",
        f"{sentence('; '.join(said))}. Such output is garbage, and its acceptance says nothing of real text",
        "medium",
        "breakeven measure --url <url> --prompts <prompts> --max-tokens 64",
        "Read a few replies. A quantisation or kernel that does not fit the device gives NaN, with "
        "speculation and without.",
    )


CAUSES: tuple[Cause, ...] = (looping_output, nan_output)
