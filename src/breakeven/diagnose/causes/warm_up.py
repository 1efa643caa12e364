"""Warm-up: compilation, capture of graphs or loading on demand, while requests were timed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from breakeven.diagnose.causes.left_over import suspicion
from breakeven.diagnose.causes.sides import BASELINE, Side, replies_words, reports, sentence, sides, told
from breakeven.diagnose.evidence import Evidence, Replies
from breakeven.engines.dialects import NAMES, dialect
from breakeven.engines.speculation import SpeculationConfig
from breakeven.explain.records import ORDER, Confidence, Finding
from breakeven.units import count, duration, ratio

SLOWER_AT_FIRST = 1.5
"""Early TPOT / late TPOT of the same prompts. Repeats of one prompt differ by a tenth or two, also where the
machine has other work."""
MUCH_SLOWER_AT_FIRST = 3.0
"""More than other work on the machine does by chance."""
FEW_STALLED = 0.25
"""Of the replies. Where more of them stop, and more than decode at once, the reason is one that lasts."""
MANY_LINES = 0.01
"""Per report of a log, below which compilation is a hiccup among them."""
COMPILING = ("late_compile", "late_graph_capture")
"""Events of a log, after the first request was served."""


class Sign(NamedTuple):
    """One thing that shows it, with how sure it alone makes it."""

    said: str
    confidence: Confidence


def warm_up_in_window(evidence: Evidence) -> Finding | None:
    """Told by the log, by early replies that are slower than later ones, or by a few that stood still."""
    found = [(side, signs) for side in sides(evidence) if (signs := tuple(_signs(evidence, side)))]
    if not found:
        return None
    said = "; ".join(f"{side.name}: {', '.join(sign.said for sign in signs)}" for side, signs in found)
    return Finding(
        "warm_up_in_window",
        "Warm-up or compilation inside the window",
        f"{sentence(said)}. Such time is spent once: speculation does not cost it at each step",
        min((_sureness(signs) for _, signs in found), key=ORDER.index),
        "breakeven measure --url <url> --prompts <prompts> --warmup 8 --repeats 3",
        "See whether the first requests are then as fast as the last.",
    )


def _sureness(signs: tuple[Sign, ...]) -> Confidence:
    """Two signs of one side make it sure, unless both are weak."""
    best = min((sign.confidence for sign in signs), key=ORDER.index)
    return "high" if len(signs) > 1 and best != "low" else best


def _signs(evidence: Evidence, side: Side) -> Iterator[Sign]:
    """Of the log where steps may take too long, and of the replies' times where these are the server's."""
    lines, first = told(side.log, *COMPILING)
    if lines and suspicion(evidence) != "no":
        words = f"{count(lines, 'line')} of its log on compiling while it served ({first})"
        yield Sign(words, "medium" if lines >= MANY_LINES * reports(side.log) else "low")
    if side.replies is None or side.replies.client_reasons:
        return
    slower = _slower_at_first(side.replies)
    if slower >= SLOWER_AT_FIRST and not _learns(evidence, side):
        yield Sign(_early_words(side.replies, slower), _early_confidence(side.replies, slower))
    if _has_stalled(evidence, side.replies):
        yield Sign(_stalled_words(side.replies), "medium" if (evidence.sequences or 1) <= 1 else "low")


def _slower_at_first(seen: Replies) -> float:
    """Early TPOT / late TPOT; 1 where they are not known."""
    return seen.early_tpot_s / seen.late_tpot_s if seen.early_tpot_s and seen.late_tpot_s else 1.0


def _early_confidence(seen: Replies, slower: float) -> Confidence:
    if not seen.early_same_prompts:
        return "low"
    return "high" if slower >= MUCH_SLOWER_AT_FIRST else "medium"


def _early_words(seen: Replies, slower: float) -> str:
    others = "later ones to the same prompts" if seen.early_same_prompts else "all others of their categories"
    early, late = duration(seen.early_tpot_s), duration(seen.late_tpot_s)
    first = f"TPOT of the first {replies_words(seen.early_requests)} {early}"
    return f"{first}, of {others} {late} ({ratio(slower)})"


def _learns(evidence: Evidence, side: Side) -> bool:
    """Whether the drafter knows a repeated prompt's reply, and is faster for that."""
    if side.name == BASELINE or evidence.engine is None or evidence.engine not in NAMES:
        return False
    return dialect(evidence.engine).learns(SpeculationConfig(evidence.drafting.method))


def _has_stalled(evidence: Evidence, seen: Replies) -> bool:
    """A stop hits the replies that are under way, once or twice."""
    return 0 < seen.stalled <= max(evidence.sequences or 1, FEW_STALLED * seen.requests)


def _stalled_words(seen: Replies) -> str:
    """Where several decode at once, a neighbour's long prefill stops them too."""
    return (
        f"{seen.stalled} of {replies_words(seen.requests)} stood still for up to "
        f"{duration(seen.longest_gap_s)}, where {duration(seen.median_gap_s)} between two reads is usual"
    )
