"""Pays: whether speculation makes a server faster now, from the counts of a window and a calibration.

In a step of c sequences each drafts with the probability f, the draft share, and then D tokens, the mean of
the window: see mean_step of forecast/decode.py for r, the plain steps of as many sequences that it takes. It
gives 1 + f·a tokens to each, a the accepted tokens of a draft, and the speedup is (1 + f·a) / r (Leviathan et
al. 2023, for a drafter that drafts on a share of steps), the mean over what readings found c to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import mean, stdev
from typing import Literal

from breakeven.acceptance.counters import LEAST_DRAFTS, SpecCounters
from breakeven.acceptance.steps import decode_steps
from breakeven.compare.student import t_quantile
from breakeven.cost.drafting import DraftingCost
from breakeven.cost.step import Step, StepCost
from breakeven.forecast.decode import MOST_DRAFT_TOKENS, MOST_STEP_TOKENS, mean_step, relative_cost
from breakeven.forecast.records import outcome
from breakeven.interval import Interval
from breakeven.units import count
from breakeven.watch.window import Counted
from breakeven.watch.yardstick import Yardstick

Answer = Literal["pays", "costs", "undecided", "not derivable"]
_ANSWERS: dict[str, Answer] = {"faster": "pays", "slower": "costs", "undecided": "undecided"}
LEAST_READINGS = 3
"""From which the error of their mean can be told from their spread."""
NO_CALIBRATION = "what a step costs is not known: type  --calibration FILE"


@dataclass(frozen=True, slots=True)
class Speculation:
    """Whether it pays, and what that was made from. None is not known."""

    answer: Answer
    why: str = ""
    """Why it is not derivable, a phrase; empty where it is."""
    speedup: Interval | None = None
    step_ratio: Interval | None = None
    """r, a mean step in plain steps of as many sequences."""
    drafted_per_draft: float | None = None
    accepted_per_draft: float | None = None
    sequences: float | None = None
    """In a step, the mean of the readings that found any."""
    notes: tuple[str, ...] = ()
    """What qualifies the speedup, each a sentence."""


@dataclass(frozen=True, slots=True)
class Drafts:
    """How the sequences of a window drafted."""

    share: Interval
    """f: of the decode steps, those that drafted."""
    drafted: float
    """D: tokens of a draft."""
    accepted: float
    """a: of them."""
    per_step: float | None = None
    """Emitted tokens of a step, where they are counted: what the end of a reply cut off is not in it."""

    def tokens(self, share: float) -> float:
        """That a step gives."""
        return 1 + share * self.accepted if self.per_step is None else self.per_step


def speculation(
    counted: Counted | None, yardstick: Yardstick | None, engine: str, model: str | None
) -> Speculation:
    """Of one server's window."""
    if counted is None:
        return _not_derivable("one reading so far")
    if counted.counters is None:
        return _not_derivable("the server counts no drafts: speculation is off, or its page does not tell")
    found = drafts_of(counted, None if yardstick is None else yardstick.k)
    if isinstance(found, str):
        return _not_derivable(found)
    if yardstick is None:
        return _unjudged(found, counted, NO_CALIBRATION)
    other = yardstick.why_not_of(engine, model)
    why = other or _why_too_few(counted.counters) or _why_no_step(found, counted.running)
    if why is not None:
        return _unjudged(found, counted, why)
    return _judged(found, counted, yardstick, engine)


def drafts_of(counted: Counted, k: int | None = None) -> Drafts | str:
    """Or why they are not known. `k` are the tokens of each draft, for a server that does not count them."""
    counters = counted.counters or SpecCounters()
    drafts, drafted, accepted = counters.drafts, counters.drafted_tokens, _accepted(counters)
    if drafted is None and drafts is not None and k is not None:
        drafted = drafts * k
    if drafts is None or accepted is None:
        return "the server does not count drafts and accepted tokens alike"
    if drafted is None:
        return (
            "the server does not count drafted tokens: type  --calibration FILE --k N  with those of a draft"
        )
    if drafts == 0 or drafted == 0:
        return "nothing was drafted in this window"
    steps = decode_steps(counters, counted.load)
    if steps is None:
        return "neither decode steps nor output tokens are counted: how rare drafts are is not known"
    share = Interval(*(drafts / max(n, drafts) for n in (steps.estimate, steps.high, steps.low)))
    per_step = None if counters.emitted_tokens is None else counters.tokens_per_step
    return Drafts(share, drafted / drafts, accepted / drafts, per_step)


def _accepted(counters: SpecCounters) -> int | None:
    """As counted; else what the steps emitted beyond one token each."""
    if counters.accepted_tokens is not None or counters.emitted_tokens is None or counters.steps is None:
        return counters.accepted_tokens
    return max(counters.emitted_tokens - counters.steps, 0)


def _why_too_few(counters: SpecCounters) -> str | None:
    drafts = counters.drafts or 0
    if drafts >= LEAST_DRAFTS:
        return None
    return f"{count(drafts, 'draft')} in this window, and {LEAST_DRAFTS} tell: type a longer --window"


def _why_no_step(drafts: Drafts, running: Sequence[float]) -> str | None:
    if not running:
        return "no reading found a request in the batch: type a shorter --interval or a longer --window"
    if drafts.drafted > MOST_DRAFT_TOKENS:
        return f"drafts of {drafts.drafted:.0f} tokens are longer than any drafter's"
    if max(running) * (1 + ceil(drafts.drafted)) > MOST_STEP_TOKENS:
        return (
            f"{max(running):.0f} sequences that draft {drafts.drafted:.0f} tokens are more than a step holds"
        )
    return None


def _judged(drafts: Drafts, counted: Counted, yardstick: Yardstick, engine: str) -> Speculation:
    batches = [max(round(n), 1) for n in counted.running]
    drafting = yardstick.drafting(engine)
    speedup, ratio = speedup_of(drafts, batches, yardstick.cost, drafting)
    most = Step(1 + drafts.drafted, max(batches))
    notes = (*yardstick.cost.warnings(most), f"drafting: {drafting.source}")
    return Speculation(
        answer=_ANSWERS[outcome(speedup)],
        speedup=speedup,
        step_ratio=ratio,
        drafted_per_draft=drafts.drafted,
        accepted_per_draft=drafts.accepted,
        sequences=mean(counted.running),
        notes=notes,
    )


def speedup_of(
    drafts: Drafts, batches: Sequence[int], cost: StepCost, drafting: DraftingCost
) -> tuple[Interval, Interval]:
    """The speedup and r, each the mean over readings with its interval; `batches` are the sequences that
    readings found in a step.

    The interval holds the cost's own, what is not known of drafting, the bounds of the draft share, and the
    readings: 95 % of the error of their mean, or all of them where there are fewer than LEAST_READINGS.
    """
    by_batch = {c: _in_batch(drafts, c, cost, drafting) for c in set(batches)}
    speedups, ratios = zip(*(by_batch[c] for c in batches), strict=True)
    return _over_readings(speedups, 0.0), _over_readings(ratios, 1.0)


def _in_batch(
    drafts: Drafts, sequences: int, cost: StepCost, drafting: DraftingCost
) -> tuple[Interval, Interval]:
    """The speedup and r among so many sequences."""
    relative = relative_cost(cost, sequences, ceil(drafts.drafted), 0.0)
    shares = (drafts.share.estimate, drafts.share.low, drafts.share.high)
    ratios = [mean_step(relative, drafting, share, drafts.drafted) for share in shares]
    pairs = list(zip(map(drafts.tokens, shares), ratios, strict=True))
    speedup = Interval(
        pairs[0][0] / ratios[0].estimate,
        min(tokens / ratio.high for tokens, ratio in pairs),
        max(tokens / ratio.low for tokens, ratio in pairs),
    )
    return speedup, Interval(
        ratios[0].estimate, min(one.low for one in ratios), max(one.high for one in ratios)
    )


def _over_readings(found: Sequence[Interval], least: float) -> Interval:
    """The mean. Its interval is wider by the error of a mean of so few, by Student's t."""
    middle, n = mean(one.estimate for one in found), len(found)
    if n < LEAST_READINGS:
        return Interval(middle, min(one.low for one in found), max(one.high for one in found))
    error = t_quantile(0.025, n - 1) * stdev(one.estimate for one in found) / n**0.5
    low = mean(one.low for one in found) - error
    return Interval(middle, max(low, least), mean(one.high for one in found) + error)


def _unjudged(drafts: Drafts, counted: Counted, why: str) -> Speculation:
    return Speculation(
        "not derivable",
        why,
        drafted_per_draft=drafts.drafted,
        accepted_per_draft=drafts.accepted,
        sequences=mean(counted.running) if counted.running else None,
    )


def _not_derivable(why: str) -> Speculation:
    return Speculation("not derivable", why)
