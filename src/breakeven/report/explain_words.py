"""An explanation in words: the sentences that the terminal and the page share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from breakeven.explain.records import Explained, Explanation
from breakeven.interval import Interval
from breakeven.report.text import named_build
from breakeven.units import between, change, milliseconds, ratio, shares

DEFINITIONS = {
    "unexplained": (
        "TPOT with speculation × (1 + draft share × k × acceptance) − plain step − draft share × cost of "
        "verifying, in ms per step"
    ),
    "predicted": (
        "plain step × (1 + draft share × k × acceptance) / (plain step + draft share × cost of verifying): "
        "no time for the drafter itself"
    ),
    "plain_step": "the baseline's TPOT at the same concurrency",
    "break_even_verify": "k × acceptance: plain steps that verifying may cost so that a draft pays",
}
MOST_NAMED = 6
"""Observations in a sentence; all are in the table."""
FORMULAS = (
    "unexplained = TPOT·(1 + f·k·a) − T − f·V, predicted = T·(1 + f·k·a) / (T + f·V)",
    "f draft share, a acceptance, T plain step, V cost of verifying",
)
"""Those of DEFINITIONS, short."""


def heading(made: Explanation) -> str:
    """What was measured on what."""
    device = f" on {made.hardware}" if made.hardware else ""
    engine = f", {named_build(made.engine)}" if made.engine else ""
    return f"{made.model or 'A model without a name'}{device}{engine}, {made.method} k={made.k}"


def answer(made: Explanation) -> str:
    """What was seen, and whether the model predicts a speedup at every draft share; or the refusal."""
    if made.refused:
        return f"{made.refused} Nothing is concluded from the two speeds."
    return f"Observed {_observed(made.explained)}; predicted: {_predicted(made.explained)}."


def _predicted(explained: Sequence[Explained]) -> str:
    outcomes = [one.outcome for one in explained]
    words = {"faster": "a speedup", "slower": "a slowdown", "either": "a speedup or a slowdown"}
    there = [outcome for outcome in words if outcome in outcomes]
    if len(there) > 1:
        counts = [f"{words[outcome]} for {outcomes.count(outcome)}" for outcome in there]
        return f"{', '.join(counts)} of {len(outcomes)}"
    if there in ([], ["either"]):
        return f"{words['either']}, by what is not known"
    return f"{words[there[0]]} at every draft share above 0"


def _observed(explained: Sequence[Explained]) -> str:
    speedups = [one.observed_speedup for one in explained]
    low, high = change(min(speedups)), change(max(speedups))
    return low if low == high else f"{low} to {high}"


def unexplained_sentence(made: Explanation) -> str | None:
    """What every step takes beyond the explanation, at least; None where nothing must be left over."""
    over = [one for one in made.explained if one.against_model == "slower"]
    if not over or made.refused:
        return None
    named = ", ".join(f"{one.unexplained_s[0] * 1e3:.1f} ({one.observation.name})" for one in over)
    if all(one.unexplained_s[0] == one.unexplained_s[1] for one in over):
        return f"Unexplained: {named} ms per step."
    when = {one.unexplained_at_least_when for one in over}
    even = f", even if {when.pop()}" if len(when) == 1 else ""
    return f"Unexplained: at least {named} ms per step{even}."


def explained_sentence(made: Explanation) -> str | None:
    """How many observations the model allows for; None where `unexplained_sentence` speaks for all."""
    explained = made.explained
    groups = {side: [one for one in explained if one.against_model == side] for side in ("faster", "slower")}
    within = len(explained) - sum(map(len, groups.values()))
    if made.refused or len(groups["slower"]) == len(explained):
        return None
    if within == len(explained):
        return "Nothing need be left over: what was observed lies within what the model allows."
    if len(explained) == 1:
        return "Faster than the model allows: the step took less time than the cheapest one possible."
    said = [
        f"{side} than the model allows in {_counted(ones, made)}" for side, ones in groups.items() if ones
    ]
    sentence = ", ".join([*said, *([f"within it in {within}"] if within else [])])
    return f"{sentence[0].upper()}{sentence[1:]}."


def _counted(ones: Sequence[Explained], made: Explanation) -> str:
    return f"{len(ones)} of {len(made.explained)} ({_names(ones)})"


def _names(ones: Sequence[Explained]) -> str:
    """The first of them, and how many more."""
    named = ", ".join(one.observation.name for one in ones[:MOST_NAMED])
    return named + (f" and {len(ones) - MOST_NAMED} more" if len(ones) > MOST_NAMED else "")


def verify_sentence(made: Explanation) -> str:
    """What verifying costs in plain steps, least and most over all observations, and what it may cost."""
    spans = [(one.verify_s, one.observation.baseline_tpot_s) for one in made.explained]
    low = min(cost.low / plain for cost, plain in spans)
    high = max(cost.high / plain for cost, plain in spans)
    cost = f"Verifying adds {between(low, high)} plain steps to a step that drafts{_mostly(made)}"
    known = [one.break_even_verify for one in made.explained if one.break_even_verify is not None]
    if len(known) < len(made.explained):
        return f"{cost}."
    even = between(min(low for low, _ in known), max(high for _, high in known))
    return f"{cost}; acceptance pays for {even}, k × acceptance."


def _mostly(made: Explanation) -> str:
    names = {part.name for part in made.waterfall if part.added_s.high > 0}
    of = {"experts": "experts", "all_reduce": "AllReduce", "step": "as measured"}
    said = [words for name, words in of.items() if name in names]
    return f" ({', '.join(said)})" if said else ""


def span_ms(cost: Interval) -> str:
    """`3.46 to 4.87`, without the unit."""
    low, high = ms(cost.low), ms(cost.high)
    return low if low == high else f"{low} to {high}"


def ms(seconds: float) -> str:
    """Of seconds, as `milliseconds`, with a minus sign for what is below 0, and none for a 0."""
    shown = milliseconds(abs(seconds))
    return f"−{shown}" if seconds < 0 and float(shown) else shown


def bounds_words(bounds: tuple[float, float] | None) -> str:
    """A share that may be a range, or not be known."""
    return "unknown" if bounds is None else shares(*bounds)


def speedup_words(speedup: Interval) -> str:
    """`1.11× to 1.51×`."""
    low, high = ratio(speedup.low), ratio(speedup.high)
    return low if low == high else f"{low} to {high}"


def notes(unknown: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is not known, by its name in words, and what would settle it."""
    for name, words in unknown.items():
        yield name.removesuffix("_ms").replace("_", " "), words
