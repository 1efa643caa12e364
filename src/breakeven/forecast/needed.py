"""What a drafter that drafts at every step must reach, and what one with known acceptance would give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from breakeven.acceptance.counters import SpecCounters
from breakeven.cost.drafting import DraftingCost
from breakeven.cost.step import Step, StepCost
from breakeven.errors import UsageError
from breakeven.forecast.records import TARGETS, BreakEven, Cell, ForecastRow, Needed
from breakeven.interval import Interval


def drafted_step(
    cost: StepCost, drafting: DraftingCost, k: int, sequences: int, context_tokens: float
) -> Interval:
    """A step in which every sequence drafts k tokens, in plain steps of as many sequences."""
    base = Step(1, sequences, context_tokens)
    verify = cost.relative(Step(1 + k, sequences, context_tokens), base)
    plain = cost.seconds(base)
    low, middle, high = (
        step + drafted + k * token
        for step, drafted, token in zip(
            *(_ends(one) for one in (drafting.step_s, drafting.drafted_step_s, drafting.token_s)), strict=True
        )
    )
    return Interval(
        verify.estimate + middle / plain.estimate,
        verify.low + low / plain.high,
        verify.high + high / plain.low,
    )


def _ends(interval: Interval) -> tuple[float, float, float]:
    return interval.low, interval.estimate, interval.high


def needed(
    cost: StepCost,
    drafting: DraftingCost,
    ks: Iterable[int],
    concurrencies: Sequence[int],
    context_tokens: float,
) -> tuple[Needed, ...]:
    """The acceptance length for each of TARGETS, by window, then by concurrency.

    τ = speedup · T_drafted / T_plain (Leviathan et al. 2023, solved for the tokens of a step).
    """
    return tuple(
        _needed(k, c, drafted_step(cost, drafting, k, c, context_tokens)) for k in ks for c in concurrencies
    )


def _needed(k: int, concurrency: int, step: Interval) -> Needed:
    lengths: Mapping[float, Interval] = {
        target: Interval(target * step.estimate, target * step.low, target * step.high) for target in TARGETS
    }
    return Needed(k, concurrency, lengths)


def check_acceptance(rates: Sequence[float]) -> None:
    """Raises UsageError for a rate by position outside 0 to 1, or above the one before."""
    for place, rate in enumerate(rates):
        if not 0 <= rate <= 1:
            raise UsageError(f"an acceptance of {rate:g} at position {place + 1}: give shares from 0 to 1")
        if place and rate > rates[place - 1]:
            raise UsageError(
                f"acceptance rises to {rate:g} at position {place + 1}: give the share of all steps that "
                "accept each position, as engines print it, which never rises"
            )


def given_rows(
    acceptance: Sequence[float],
    method: str,
    engine: str,
    cost: StepCost,
    drafting: DraftingCost,
    concurrencies: Sequence[int],
    context_tokens: float,
) -> tuple[ForecastRow, ...]:
    """Windows 1 … len(acceptance) of a drafter with these acceptance rates by position.

    `acceptance[i]` is the share of steps that accept token i of the draft, so that a window of k gives 1 + Σ
    of the first k tokens a step.
    """
    tokens = [1 + total for total in accumulate(acceptance)]
    rows = []
    for k, per_step in enumerate(tokens, 1):
        steps = [drafted_step(cost, drafting, k, c, context_tokens) for c in concurrencies]
        cells = tuple(_given(c, k, per_step, step) for c, step in zip(concurrencies, steps, strict=True))
        counters = SpecCounters(source="given")
        rows.append(ForecastRow(method, {"k": k}, "", engine, False, counters, per_step, cells))
    return tuple(rows)


def _given(concurrency: int, k: int, per_step: float, step: Interval) -> Cell:
    speedup = Interval(per_step / step.estimate, per_step / step.high, per_step / step.low)
    must = BreakEven(step.estimate, (step.estimate - 1) / k, None)
    return Cell(concurrency, speedup, None, {}, step, must)
