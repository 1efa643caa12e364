"""Where the cost of a step comes from: the options that say it, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.record import refuse
from breakeven.errors import UsageError
from breakeven.units import milliseconds

if TYPE_CHECKING:
    from breakeven.cost.calibration import Calibration
    from breakeven.cost.geometry import Geometry
    from breakeven.cost.modelled import Modelled
    from breakeven.cost.routing import RoutingTrace
    from breakeven.cost.step import Step, StepCost
    from breakeven.interval import Interval
    from breakeven.trace.run import Run

TOLD_OF = 3
"""Drafted tokens of the step whose cost, and how well it is known, is put into words."""
BOTH_WAYS = (
    "the cost of a step is not known: type  breakeven calibrate URL  for the running baseline and then "
    "--calibration FILE, or type  --model X --hardware Y  such as  --model llama-3.1-8b --hardware h100-sxm"
)
_BESIDE = " beyond what different sequences share"
LEAST_STEP_MS = 1e-6
"""A nanosecond, as times are kept to it, …"""
MOST_MS = 1e9
"""… and eleven days: ratios of times between the two stay finite, and JSON carries no infinity."""
OF_A_MODEL = ("hardware", "tp", "ep", "step_ms", "reuse")

model_options = options.stack(
    click.option(
        "--model",
        "--geometry",
        "model",
        metavar="X",
        help="The model: a preset, a config.json, a GGUF file, a geometry file, or of `models list`.",
    ),
    click.option("--hardware", metavar="Y", help="The device it runs on, such as h100-sxm."),
    click.option("--tp", type=click.IntRange(min=1), help="Devices of tensor parallelism [default: 1]."),
    click.option(
        "--ep", type=click.IntRange(min=1), help="Of them, groups that share out experts [default: 1]."
    ),
)

cost_options = options.stack(
    click.option(
        "--calibration",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="What `breakeven calibrate` measured of the baseline: a file, or its folder.",
    ),
    model_options,
    click.option(
        "--step-ms",
        type=options.FiniteRange(LEAST_STEP_MS, MOST_MS),
        metavar="MS",
        help="A measured decode step of one sequence, to tie the model to [default: of RECORD].",
    ),
    click.option(
        "--reuse",
        type=options.FiniteRange(0, 1),
        metavar="R",
        help="Share of a token's experts that its neighbours have woken, for --model.",
    ),
    click.option(
        "--routing",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The experts that real replies used, of `models routing --out`: their reuse is taken.",
    ),
)


@dataclass(frozen=True, slots=True)
class ChosenCost:
    """What the options come to."""

    cost: StepCost
    words: str
    """Which it is, and how well it is known, in a sentence."""
    geometry: Geometry | None
    engine: str | None
    """Of the calibrated server; None without one, or where it does not say."""
    warnings: tuple[str, ...] = ()
    most_concurrency: int | None = None
    """That was measured; None without a calibration."""
    reuse: Interval | None = None
    """Of experts beyond chance, as a trace of routing tells it; None without one."""


def choose_cost(values: Mapping[str, Any], run: Run | None = None) -> ChosenCost:
    """The cost that the options of `cost_options` name; `run` is the record's, where it is one.

    Raises UsageError where they name none, or two that exclude each other, and for what the files and presets
    that they name raise.
    """
    trace = _routing(values)
    chosen = _chosen(values, run, trace)
    return chosen if trace is None else _told(chosen, trace, values["routing"])


def _chosen(values: Mapping[str, Any], run: Run | None, trace: RoutingTrace | None) -> ChosenCost:
    if values["calibration"] is not None:
        message = "--calibration has measured the steps that {} is to model: leave out one of the two"
        refuse(values, OF_A_MODEL, message)
        return _measured(values, run, trace)
    if values["model"] is None and values["hardware"] is None:
        refuse(values, OF_A_MODEL, "{} belongs to a model: type  --model X --hardware Y  too")
        raise UsageError(BOTH_WAYS)
    modelled = modelled_of(values, values["reuse"])
    if trace is not None:
        _check_same_experts(trace, modelled.geometry, values)
        reuse = trace.reuse()
        modelled = replace(modelled, reuse=reuse.estimate, reuse_range=(reuse.low, reuse.high))
    words = f"{values['model']} on {modelled.tp} × {modelled.hardware.name}"
    if values["step_ms"] is not None:
        from breakeven.cost.step import PLAIN_STEP

        said = f"One measured step, {values['step_ms']:g} ms as given,"
        return _anchored(modelled, values["step_ms"] / 1e3, PLAIN_STEP, said, words)
    return _tied_to(run, modelled, words)


def modelled_of(values: Mapping[str, Any], reuse: float | None = None) -> Modelled:
    """The cost by model and hardware alone, from the options of `model_options`; `reuse` of experts as given.

    Raises UsageError where one of the two is missing or unknown, or cannot be shared out as asked.
    """
    from breakeven.cost.coverage import REUSE
    from breakeven.cost.hardware import hardware
    from breakeven.cost.modelled import Modelled

    if values["model"] is None:
        raise UsageError(f"--hardware {values['hardware']} says not of which model: type --model X too")
    geometry = geometry_of(values["model"])
    if values["hardware"] is None:
        raise UsageError(f"--model {values['model']} says not on which device: type --hardware Y too")
    tp = values["tp"] or 1
    if geometry.attention.heads % tp:
        raise UsageError(
            f"--tp {tp}: {values['model']} has {geometry.attention.heads} attention heads, which so "
            f"many devices cannot share: type --tp {_nearest_divisor(geometry.attention.heads, tp)}"
        )
    device = hardware(values["hardware"])
    return Modelled(geometry, device, tp, values["ep"] or 1, reuse=REUSE if reuse is None else reuse)


def geometry_of(model: str) -> Geometry:
    """As `find_geometry`, with a bar where weights are fetched."""
    from breakeven.cli.geometry import find_geometry
    from breakeven.cli.models import watching

    with watching() as watch:
        return find_geometry(model, watch)


def _nearest_divisor(heads: int, most: int) -> int:
    return max(n for n in range(1, min(most, heads) + 1) if heads % n == 0)


def _routing(values: Mapping[str, Any]) -> RoutingTrace | None:
    from breakeven.cost.routing import load_routing

    if values["routing"] is None:
        return None
    refuse(values, ("reuse",), "--routing has measured the reuse that {} is to say: leave out one of the two")
    return load_routing(values["routing"])


def _check_same_experts(trace: RoutingTrace, geometry: Geometry, values: Mapping[str, Any]) -> None:
    """Raises UsageError, which names the field, for a trace of another model's experts."""
    file, model, experts = values["routing"], values["model"], geometry.experts
    if experts is None:
        raise UsageError(f"--routing {file} is of experts, and --model {model} has none: leave out --routing")
    fields = {"experts": (trace.count, experts.count), "top_k": (trace.top_k, experts.top_k)}
    for name, (of_trace, of_model) in fields.items():
        if of_trace != of_model:
            raise UsageError(
                f"--routing {file} is of another model than --model {model}: {name} is {of_trace} there and "
                f"{of_model} here; type  breakeven models routing MODEL --out FILE.npz  for this one, or "
                "leave out --routing"
            )


def _told(chosen: ChosenCost, trace: RoutingTrace, file: Path) -> ChosenCost:
    """With what the trace says of the cost, and of itself."""
    from breakeven.cost.measured import Measured
    from breakeven.report.routing_terminal import RANDOM

    reuse = trace.reuse()
    taken, beyond = (reuse, "") if not isinstance(chosen.cost, Measured) else (chosen.cost.reuse, _BESIDE)
    measured = f"{taken.estimate:.2f} ({taken.low:.2f} to {taken.high:.2f})"
    words = f"{chosen.words} Experts are reused at {measured}{beyond}, as measured ({file})."
    doubts = (f"{file}: {RANDOM}",) if trace.random_router else ()
    return replace(chosen, words=words, reuse=reuse, warnings=(*chosen.warnings, *doubts))


def _measured(values: Mapping[str, Any], run: Run | None, trace: RoutingTrace | None) -> ChosenCost:
    from breakeven.cost.calibration import MAYBE_MOE, MOE_BOUND, load_calibration
    from breakeven.cost.measured import Measured
    from breakeven.forecast.match import check_same_server

    path = values["calibration"]
    calibration = load_calibration(path)
    unsaid = check_same_server(run.meta, calibration) if run else ()
    geometry = None if values["model"] is None else geometry_of(values["model"])
    moe = _has_experts(values, calibration, geometry, trace)
    curve = calibration.curve()
    cost = Measured(curve, moe) if trace is None else Measured(curve, moe, trace.reuse_beside_sequences())
    most = curve.points[-1].concurrency
    points = f"{len(curve.points)} points, up to {most} in flight"
    return ChosenCost(
        cost,
        f"The concurrency curve of the server itself ({path}, {points}){_how_wide(cost)}",
        geometry,
        calibration.server.engine,
        (*unsaid, *(said for said in calibration.warnings() if said not in (MOE_BOUND, MAYBE_MOE))),
        most,
    )


def _has_experts(
    values: Mapping[str, Any],
    calibration: Calibration,
    geometry: Geometry | None,
    trace: RoutingTrace | None,
) -> bool | None:
    """None where nothing tells. Raises UsageError where two disagree."""
    path, model = values["calibration"], values["model"]
    if geometry is not None and calibration.moe not in (None, geometry.experts is not None):
        flag, has = ("--moe", "no experts") if calibration.moe else ("--dense", "experts")
        raise UsageError(
            f"{path} was made with {flag}, and --model {model} has {has}: leave out --model, or type that "
            "of the calibrated server"
        )
    if trace is not None and calibration.moe is False:
        raise UsageError(
            f"{path} was made with --dense, and --routing {values['routing']} is of experts: leave out one "
            "of the two"
        )
    if trace is not None and geometry is not None:
        _check_same_experts(trace, geometry, values)
    if trace is not None:
        return True
    return calibration.moe if geometry is None else geometry.experts is not None


def _tied_to(run: Run | None, modelled: Modelled, words: str) -> ChosenCost:
    """By the record's own step where it tells one, else by the model alone."""
    from breakeven.forecast.anchor import anchor_of

    if run is None:
        return _alone(modelled, words)
    try:
        anchor = anchor_of(run)
    except UsageError as error:
        why = f"the record's own speed is not used: {error}; --step-ms gives the step of a baseline"
        return _alone(modelled, words, why)
    step = anchor.step
    said = (
        f"The record's own step, {milliseconds(anchor.seconds)} ms with {step.sequences} in flight and "
        f"{step.context_tokens:.0f} tokens in each,"
    )
    return _anchored(modelled, anchor.seconds, step, said, words)


def _anchored(modelled: Modelled, seconds: float, at: Step, said: str, words: str) -> ChosenCost:
    from breakeven.cost.anchored import Anchored
    from breakeven.forecast.anchor import Anchor, check_same_machine

    check_same_machine(modelled, Anchor(at, seconds), said, words)
    cost = Anchored(modelled, seconds, at)
    return ChosenCost(
        cost, f"{said} and what a model of {words} adds to it{_how_wide(cost)}", modelled.geometry, None
    )


def _alone(modelled: Modelled, words: str, *warnings: str) -> ChosenCost:
    said = f"A model of {words} alone, without any measurement{_how_wide(modelled)}"
    return ChosenCost(modelled, said, modelled.geometry, None, warnings)


def _how_wide(cost: StepCost) -> str:
    from breakeven.cost.step import PLAIN_STEP, Step

    found = cost.relative(Step(tokens=1 + TOLD_OF), PLAIN_STEP)
    leaves_out = "" if cost.source == "measured" else "; what it leaves out is not in this interval"
    return (
        f": a step that verifies {TOLD_OF} drafted tokens takes {found.estimate:.2f} plain steps "
        f"({found.low:.2f} to {found.high:.2f}){leaves_out}."
    )
