"""The plots of an explanation: a step taken apart, and what drafting should have given by draft share."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.explain.records import Explained, Observation, Prediction
from breakeven.interval import Interval
from breakeven.report.bars import Bar, Bars, Piece, drawn_bars, interval_ms, stacked
from breakeven.report.curves import Chart, Points, chart
from breakeven.report.explain_words import ms
from breakeven.report.plots import interval_text
from breakeven.report.svg import Linear, Log, padded_ratio
from breakeven.units import milliseconds, ratio, share

LONGEST = 3.0
"""Candidate TPOTs: a leftover may be longer than that where next to nothing is known, and is cut there."""


def taken_apart(one: Explained) -> Bars:
    """From the measured plain step to the measured TPOT with speculation, and what is left between them.

    The leftover begins where the plain step ends: solid as far as it is certain, hatched to its most.
    """
    plain_s = one.observation.baseline_tpot_s
    bars = [_plain(one), _drafted(one), *_predicted(one), _measured(one.observation), _left_over(one)]
    return drawn_bars(bars, plain_s, "; ".join(bar.text for bar in bars))


def _plain(one: Explained) -> Bar:
    seconds = one.observation.baseline_tpot_s
    said = f"{milliseconds(seconds)} ms"
    parts = {part.name: part.baseline_s for part in one.parts}
    return Bar("plain step", tuple(stacked(parts, {})), f"plain step {said}", said)


def _drafted(one: Explained) -> Bar:
    """A step that verifies a draft."""
    plain_s, verify = one.observation.baseline_tpot_s, one.verify_s
    total = Interval(plain_s + verify.estimate, plain_s + verify.low, plain_s + verify.high)
    parts = {part.name: part.baseline_s for part in one.parts}
    added = {part.name: part.added_s.estimate for part in one.parts}
    said = f"drafted step {interval_ms(total)} ms, verification adds {interval_ms(verify)} ms"
    value = f"{milliseconds(total.estimate)} ms"
    return Bar("drafted step", tuple(stacked(parts, added)), said, value, total)


def _predicted(one: Explained) -> Iterator[Bar]:
    """TPOT at the least and at the greatest share of drafted steps above 0 that was predicted."""
    drafting = [each for each in one.predictions if each.draft_share > 0]
    ends = (drafting[0], drafting[-1]) if len(drafting) > 1 else drafting
    for each in ends:
        tpot = tpot_of(one.observation, each)
        label = f"per token at {each.draft_share:.0%}".replace("%", " %")
        said = f"predicted at a draft share of {share(each.draft_share)}: {interval_ms(tpot)} ms a token"
        piece = Piece("predicted", 0.0, tpot.estimate, "whole")
        yield Bar(label, (piece,), said, f"{milliseconds(tpot.estimate)} ms", tpot)


def tpot_of(one: Observation, prediction: Prediction) -> Interval:
    """Seconds a token that a predicted speedup amounts to."""
    plain_s, speedup = one.baseline_tpot_s, prediction.speedup
    return Interval(plain_s / speedup.estimate, plain_s / speedup.high, plain_s / speedup.low)


def _measured(one: Observation) -> Bar:
    seconds = one.candidate_tpot_s
    said = f"{milliseconds(seconds)} ms"
    return Bar("measured", (Piece("measured", 0.0, seconds, "whole"),), f"measured {said} a token", said)


def _left_over(one: Explained) -> Bar:
    plain_s, (least, most) = one.observation.baseline_tpot_s, one.unexplained_s
    certain = max(least, min(0.0, most))
    edge = LONGEST * one.observation.candidate_tpot_s
    hatched = (min(plain_s + least, edge), min(plain_s + most, edge))
    said = f"{unexplained_ms(one)} ms a step"
    pieces = (Piece("unexplained", plain_s, plain_s + certain, "left"),) if certain else ()
    return Bar("unexplained", pieces, f"unexplained {said}", said, hatched=hatched)


def unexplained_ms(one: Explained) -> str:
    """`1.20 to 35.10`, without the unit."""
    return " to ".join(map(ms, one.unexplained_s))


def by_draft_share(one: Explained) -> Chart | None:
    """The predicted speedup by draft share, beside the observed one; None without predictions."""
    if not one.predictions:
        return None
    predicted = Points(
        "predicted",
        tuple((100 * each.draft_share, each.speedup) for each in one.predictions),
        tuple(
            f"draft share {share(each.draft_share)}: {interval_text(each.speedup)}"
            for each in one.predictions
        ),
    )
    observed = one.observed_speedup
    speedups = [each.speedup for each in one.predictions]
    ends = [end for speedup in speedups for end in (speedup.low, speedup.high)]
    return chart(
        "draft share, %",
        Linear(-4, 106),
        Log(*padded_ratio([1.0, observed, *ends])),
        (predicted,),
        [(1.0, "break-even"), (observed, f"observed {ratio(observed)}")],
        f"observed {ratio(observed)}; predicted {interval_text(speedups[-1])} at a draft share of "
        f"{share(one.predictions[-1].draft_share)}",
    )
