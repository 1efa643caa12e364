"""Go, no-go or undecided, and why: each ground is judged alone, and the worst of them decides."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from breakeven.eagle.plan.asked import Asked
from breakeven.eagle.plan.ranges import quotient
from breakeven.eagle.plan.records import Outcome, Reached, Reason
from breakeven.eagle.plan.routes import Route
from breakeven.eagle.plan.runs import TrainingRun, with_as_few
from breakeven.forecast.phrases import inside
from breakeven.forecast.records import Needed, Published
from breakeven.interval import Interval
from breakeven.units import between, count, ratio

_OF_ALL: tuple[Outcome, ...] = ("no-go", "undecided", "go")
"""Worst first."""
_WIDE = 2
"""Most / fewest tokens of a sample from which on their number is called little known."""


def decided(reasons: Sequence[Reason]) -> Outcome:
    """The worst of them: one ground that forbids it is enough, and nothing is sure while one is open."""
    return min((one.outcome for one in reasons), key=_OF_ALL.index)


def judged(speedup: Interval, goal: float) -> Outcome:
    """Go where it is sure to pay and expected to reach the goal; no-go where it cannot reach it."""
    if speedup.high < goal:
        return "no-go"
    return "go" if speedup.low >= 1 and speedup.estimate >= goal else "undecided"


def reached(
    needed: Sequence[Needed], published: Sequence[Published], model: str, concurrency: int
) -> Reached | None:
    """At the window where the published lengths come nearest to what is needed for any goal.

    Lengths of this target's own heads, where there are any at one of the windows; else of all.
    """
    mine = [one for one in published if is_of(one, model)]
    windows = [one for one in needed if one.concurrency == concurrency]
    for lengths, own in ((mine, True), (published, False)):
        found = [one for one in (_at(window, lengths, own) for window in windows) if one is not None]
        if found:
            return max(found, key=lambda one: one.speedup.estimate)
    return None


def is_of(one: Published, model: str) -> bool:
    """`kimi-k2.7 NVFP4` is of kimi-k2.7."""
    return one.model.partition(" ")[0] == model


def _at(window: Needed, published: Sequence[Published], own: bool) -> Reached | None:
    lengths = [one.acceptance_length for one in published if one.k == window.k]
    if not lengths:
        return None
    had = Interval(median(lengths), min(lengths), max(lengths))
    must = window.acceptance_length[1.0]
    return Reached(window.k, window.concurrency, must, had, own, quotient(had, must))


def acceptance_reason(found: Reached | None, goal: float) -> Reason:
    """Whether lengths like the published ones would pay."""
    if found is None:
        return Reason(
            "acceptance", "undecided", "no head's length is published at any of these windows: type --ks 2-6"
        )
    outcome = judged(found.speedup, goal)
    must, had = found.needed, found.lengths
    words = (
        f"at k={found.k} and concurrency {found.concurrency} break-even takes an acceptance length of "
        f"{must.estimate:.2f} ({between(must.low, must.high)}); {_whose(found)} reached "
        f"{between(had.low, had.high)}, which would be {inside(found.speedup)}; "
        f"{_against(outcome, found, goal)}"
    )
    return Reason("acceptance", outcome, words)


def _against(outcome: Outcome, found: Reached, goal: float) -> str:
    if outcome == "go":
        return f"by this cost sure to pay, and expected to reach {ratio(goal)}"
    if outcome == "undecided":
        return f"whether it reaches {ratio(goal)} and is sure to pay is open"
    if found.speedup.high < 1:
        return "no such head would break even"
    return f"no such head would reach {ratio(goal)}; --goal asks for less"


def data_reason(
    samples: int, needed: Sequence[Needed], concurrency: int, found: Reached | None, goal: float
) -> Reason:
    """Whether a head that was trained on as few samples would pay, at the window that its lengths are of.

    It rules nothing out where acceptance was judged at another: there its length is not known.
    """
    run = with_as_few(samples)
    if run is None or run.acceptance_low is None or run.acceptance_high is None:
        return Reason(
            "data",
            "undecided",
            f"{count(samples, 'sample')}: fewer than any published head with a known length was trained on",
        )
    said = f"{count(samples, 'sample')}: {_trained(run)} reached {_lengths(run)}"
    must = _break_even(run, needed, concurrency, found)
    if must is None:
        more = "" if run.k is None else f", and what that window takes here was not asked: type --ks {run.k}"
        return Reason("data", "undecided", said + more)
    speedup = quotient(_of(run.acceptance_low, run.acceptance_high, found), must)
    outcome, said = judged(speedup, goal), f"{said}, which would be {inside(speedup)} here"
    if outcome == "no-go" and found is not None and run.k not in (None, found.k):
        return Reason("data", "undecided", f"{said}; what it reaches at k={found.k} is not known")
    return Reason("data", outcome, said)


def _break_even(
    run: TrainingRun, needed: Sequence[Needed], concurrency: int, found: Reached | None
) -> Interval | None:
    """The length needed at the window that a run's lengths are of; as in `found` where that is not stated."""
    if run.k is None:
        return None if found is None else found.needed
    at = {one.k: one.acceptance_length[1.0] for one in needed if one.concurrency == concurrency}
    return at.get(run.k)


def _of(low: float, high: float, found: Reached | None) -> Interval:
    """A run's lengths. The median is known where it is the very head that `found` has; else the middle."""
    if found is not None and (low, high) == (found.lengths.low, found.lengths.high):
        return found.lengths
    return Interval((low + high) / 2, low, high)


def _trained(run: TrainingRun) -> str:
    window = "" if run.k is None else f" at k={run.k}"
    return f"a head of {run.model} on {run.samples or 0:,}{window}"


def _lengths(run: TrainingRun) -> str:
    return between(run.acceptance_low or 0.0, run.acceptance_high or 0.0)


def route_reason(routes: Sequence[Route]) -> Reason:
    """Whether any route is open."""
    ways = {answer: [one for one in routes if one.possible == answer] for answer in ("yes", "perhaps", "no")}
    outcome: Outcome = "go" if ways["yes"] else "undecided" if ways["perhaps"] else "no-go"
    shown = ways["yes"] or ways["perhaps"] or ways["no"]
    return Reason("memory and disk", outcome, "; ".join(f"{one.way}: {one.why}" for one in shown))


def hours_reason(asked: Asked, routes: Sequence[Route]) -> Reason | None:
    """Whether the hours of the cheapest open route are within the budget; None without a budget."""
    budget = asked.budget.gpu_hours
    open_ = [one for one in routes if one.possible != "no"] or list(routes)
    if budget is None:
        return None
    route = min(open_, key=lambda one: one.gpu_hours.estimate)
    need = route.gpu_hours
    outcome: Outcome = "go" if need.high <= budget else "no-go" if need.low > budget else "undecided"
    words = (
        f"{route.way} takes {need.estimate:,.0f} GPU hours ({need.low:,.0f} to {need.high:,.0f}) of the "
        f"{budget:,.0f} there are{_fewer(outcome, asked.data.samples, need.estimate, budget)}"
        f"{_narrower(outcome, asked)}"
    )
    return Reason("GPU hours", outcome, words)


def _fewer(outcome: Outcome, samples: int, need: float, budget: float) -> str:
    if outcome == "go" or need <= budget:
        return ""
    return f": by the estimate they are enough for {round(samples * budget / need):,} samples"


def _narrower(outcome: Outcome, asked: Asked) -> str:
    """What would narrow them, where the length of samples is what is least known."""
    tokens = asked.data.tokens_per_sample
    if outcome != "undecided" or tokens.high <= _WIDE * tokens.low:
        return ""
    return "; the length of samples is what is least known: name a RECORD, or type --tokens-per-sample"


def _whose(found: Reached) -> str:
    return "heads for this target" if found.own else "heads for other targets"
