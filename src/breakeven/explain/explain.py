"""Case → Explanation."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.cost.modelled import INCREMENT_ERROR
from breakeven.cost.step import StepCost
from breakeven.explain.case import Case
from breakeven.explain.causes import findings
from breakeven.explain.explained import explain_one, is_within_error
from breakeven.explain.records import Explained, Explanation
from breakeven.explain.ruled_out import ruled_out
from breakeven.explain.unknown import unknown
from breakeven.explain.waterfall import REST
from breakeven.units import share

SMALL_S = 0.05e-3
"""Of a step: a negative rest below it is rounding."""
MOST_REST = 0.6
"""Of a plain step, that the model may leave without a word: it may be low by a factor of 2.4 (its HIGH)."""
UNLIKE_CURVE = 1.2
"""Plain step / that of the calibration, or the other way round, that need a reason."""


def explain(case: Case) -> Explanation:
    """What the model of a step explains of each observation, what it does not, and what could cause that."""
    explained = tuple(explain_one(case, one) for one in case.observations)
    return Explanation(
        model=case.model,
        hardware=case.device,
        k=case.k,
        method=case.method,
        engine=" ".join(filter(None, (case.engine, case.engine_version))) or None,
        explained=explained,
        ruled_out=() if case.refused else ruled_out(case, explained),
        findings=() if case.refused else findings(case, explained),
        unknown=unknown(case),
        warnings=tuple(_warnings(case, explained)),
        refused=case.refused,
    )


def _warnings(case: Case, explained: tuple[Explained, ...]) -> Iterator[str]:
    yield from case.confounders
    if case.sequences > 1:
        yield (
            f"{case.sequences} sequences per step: a request that ends early leaves a smaller batch, "
            "so the plain step is a mean over batches"
        )
    if case.measured is None:
        yield from _model_warnings(case, explained)
    else:
        yield from case.doubts
        yield from _curve_warnings(case, case.measured)


def _curve_warnings(case: Case, measured: StepCost) -> Iterator[str]:
    drafted = max(case.draft_tokens(one) for one in case.observations)
    yield from measured.warnings(case.step(drafted))
    curve_s = measured.seconds(case.plain_step).estimate
    for one in case.observations:
        if not 1 / UNLIKE_CURVE <= one.baseline_tpot_s / curve_s <= UNLIKE_CURVE:
            yield (
                f"{one.name}: the plain step took {one.baseline_tpot_s * 1e3:.1f} ms, and "
                f"{curve_s * 1e3:.1f} ms where it was calibrated: is it the same server, at as much context?"
            )


def _model_warnings(case: Case, explained: tuple[Explained, ...]) -> Iterator[str]:
    modelled_s = sum(case.modelled.parts(case.plain_step).values())
    for one in explained:
        name, plain_s = one.observation.name, one.observation.baseline_tpot_s
        rest_s = next(part.baseline_s for part in one.parts if part.name == REST)
        if rest_s < -SMALL_S:
            yield (
                f"{name}: profiled and modelled parts take {-rest_s * 1e3:.1f} ms more than the plain step: "
                "the modelled ones are too dear, or the profile is of another step"
            )
        elif modelled_s > plain_s:
            yield (
                f"{name}: the plain step took {plain_s * 1e3:.1f} ms, less than the "
                f"{modelled_s * 1e3:.1f} ms modelled: its parts are scaled down to it; are --model, "
                "--hardware and --tp right?"
            )
        elif rest_s > MOST_REST * plain_s:
            yield (
                f"{name}: the model explains {share(1 - rest_s / plain_s)} of the plain step only: are "
                "--model, --hardware, --tp and --context right?"
            )
    if names := [one.observation.name for one in explained if is_within_error(one)]:
        yield (
            f"{', '.join(names)}: what is predicted holds for the model as it is, and not if it errs by "
            f"{share(INCREMENT_ERROR)} in what verifying adds: type  breakeven calibrate URL  on the "
            "baseline, and give its file as --calibration"
        )
