"""Figures of the plan of an EAGLE-3 head in words."""

from __future__ import annotations

from breakeven.eagle.plan.memory import usable_bytes
from breakeven.eagle.plan.reasons import is_of
from breakeven.eagle.plan.records import Outcome, Plan
from breakeven.eagle.plan.runs import TrainingRun
from breakeven.interval import Interval
from breakeven.report.text import line
from breakeven.units import ABSENT, between, count, size

FEW_SAMPLES = 50_000
"""Fewer are a tutorial."""
HEADLINES: dict[Outcome, str] = {"go": "Go", "no-go": "No-go", "undecided": "Undecided"}


def title(plan: Plan) -> str:
    """`EAGLE-3 head for kimi-k2.5 on 32 × h200-sxm: undecided`."""
    machine = plan.asked.machine
    where = f"{machine.gpus} × {machine.gpu.name}"
    return f"EAGLE-3 head for {line(plan.asked.model)}, trained on {where}: {HEADLINES[plan.outcome].lower()}"


def first(plan: Plan) -> str:
    """What is to be done before any training; empty where nothing is published."""
    if not plan.heads:
        return ""
    return (
        f"Before any training: {count(len(plan.heads), 'head')} for this target "
        f"{'is' if len(plan.heads) == 1 else 'are'} published ({', '.join(plan.heads)}). A trial of one "
        "tells what a head of your own must beat."
    )


def interval(value: Interval, digits: int = 2) -> str:
    """`1.39 (1.10 to 1.75)`; one figure where all three read alike."""
    low, middle, high = (f"{n:,.{digits}f}" for n in (value.low, value.estimate, value.high))
    return middle if low == high else f"{middle} ({low} to {high})"


def sizes(value: Interval) -> str:
    """The same in bytes."""
    low, middle, high = (size(round(n)) for n in (value.low, value.estimate, value.high))
    return middle if low == high else f"{middle} ({low} to {high})"


def counted(n: int | None) -> str:
    return ABSENT if n is None else f"{n:,}"


def ends(low: float | None, high: float | None, form: str) -> str:
    """`896 to 1,500`; `at most 80` where only the upper end is known, `from 448` where only the lower."""
    if low is None and high is None:
        return ABSENT
    if low is None:
        return f"at most {form.format(high)}"
    if high is None:
        return f"from {form.format(low)}"
    ends_ = [form.format(low), form.format(high)]
    return ends_[0] if ends_[0] == ends_[1] else f"{ends_[0]} to {ends_[1]}"


def devices_of(run: TrainingRun) -> str:
    """`32 × H200`, as far as it is stated."""
    if run.gpus is None:
        return run.gpu or ABSENT
    return str(run.gpus) if run.gpu is None else f"{run.gpus} × {run.gpu}"


def published_at(plan: Plan, k: int) -> str:
    """Lengths of this target's own heads if there are any, else of all: `2.30 to 3.34`."""
    shown = [one for one in plan.published if one.k == k and (not _own(plan) or is_of(one, plan.asked.model))]
    lengths = [one.acceptance_length for one in shown]
    return between(min(lengths), max(lengths)) if lengths else ABSENT


def whose_lengths(plan: Plan) -> str:
    """` for other models`, where this target has none of its own."""
    return f" for {line(plan.asked.model)} itself" if _own(plan) else " for other models"


def _own(plan: Plan) -> bool:
    return plan.reached is not None and plan.reached.own


def fitting(plan: Plan) -> str:
    """How many samples' states fit on the disk."""
    fits = plan.storage.samples_that_fit
    return "not said how large it is: --disk" if fits is None else interval(fits, 0)


def target_memory(plan: Plan) -> str:
    """What the target takes of the training devices."""
    machine, weights = plan.asked.machine, plan.asked.geometry.weight_bytes()
    usable = size(round(usable_bytes(machine.gpu)))
    return (
        f"The target's weights are {size(weights)}, and a {machine.gpu.name} has {usable} to use: they take "
        f"{count(plan.target_devices, 'device')} at least, without a KV cache."
    )


def published_hours(plan: Plan) -> tuple[str, ...]:
    """Hours of published runs: of this target if there are any, else of all but tutorials."""
    stated = [
        run
        for run in plan.runs
        if (run.gpu_hours_low or run.gpu_hours_high) and (run.samples or FEW_SAMPLES) >= FEW_SAMPLES
    ]
    own = [run for run in stated if run.model == plan.asked.model]
    return tuple(
        f"Published: {run.model}, {ends(run.gpu_hours_low, run.gpu_hours_high, '{:,.4g}')} GPU hours on "
        f"{devices_of(run)}{_samples(run)} ({run.source})."
        for run in own or stated
    )


def _samples(run: TrainingRun) -> str:
    said = f" for {count(run.samples, 'sample')}" if run.samples is not None else ""
    return f"{said}, {run.epochs:g} epochs" if run.epochs is not None else said


def hours(value: Interval) -> str:
    """As `interval`, with a digit after the point where they are few."""
    return interval(value, 0 if value.high >= 100 else 1)


def figure(value: Interval) -> str:
    """As `interval`, with as many digits as the figures have."""
    low, middle, high = (f"{n:,.6g}" for n in (value.low, value.estimate, value.high))
    return middle if low == high else f"{middle} ({low} to {high})"
