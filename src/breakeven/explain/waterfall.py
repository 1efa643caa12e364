"""The waterfall: a plain step in parts, and what verifying drafted tokens adds to each."""

from __future__ import annotations

from breakeven.cost.anchored import Anchored
from breakeven.cost.coverage import distinct_experts
from breakeven.cost.modelled import Modelled
from breakeven.cost.step import StepCost
from breakeven.explain.case import Case
from breakeven.explain.records import Part
from breakeven.interval import Interval
from breakeven.units import size

ALL_REDUCE, EXPERTS, REST, STEP = "all_reduce", "experts", "rest", "step"


def waterfall(case: Case, plain_s: float, drafted: float) -> tuple[Part, ...]:
    """Parts of a plain step that was measured to take `plain_s`, and what `drafted` tokens add to each.

    The parts are those of Modelled, anchored at `plain_s`, and the `rest` that the model leaves of it. A part
    that was profiled keeps its measured seconds, and the rest takes the difference: below 0 it says that the
    other parts are modelled too dear. What is added has a range over the reuse of experts, and over the two
    figures that there are for AllReduce (see `least_all_reduce_s`); the model's own error is not in it.
    Where the cost was measured there is one part, the step.
    """
    if case.measured is not None:
        return (_measured_step(case, case.measured, plain_s, drafted),)
    dear, cheap = (_parts(model, case, plain_s, drafted) for model in _models(case))
    plain = _with_profile(case, dear[0])
    return tuple(
        Part(name, seconds, _added(case, name, drafted, dear, cheap), source_of(case, name, drafted))
        for name, seconds in plain.items()
    )


def _measured_step(case: Case, measured: StepCost, plain_s: float, drafted: float) -> Part:
    """What is added has the interval of the ratio."""
    ratio = measured.relative(case.step(drafted), case.plain_step)
    added = (plain_s * (end - 1) for end in (ratio.estimate, ratio.low, ratio.high))
    tokens = f"{case.step(drafted).batch_tokens:g} tokens instead of {case.sequences}"
    return Part(STEP, plain_s, Interval(*added), f"{tokens} on the concurrency curve of the calibration")


def verify_cost(parts: tuple[Part, ...]) -> Interval:
    """What all parts together add."""
    ends = [(part.added_s.estimate, part.added_s.low, part.added_s.high) for part in parts]
    return Interval(*map(sum, zip(*ends, strict=True)))


Sides = tuple[dict[str, float], dict[str, float]]
"""Seconds by part of the plain step, and of the one that verifies."""


def _models(case: Case) -> tuple[Modelled, Modelled]:
    return case.modelled, case.modelled_with_most_reuse


def _parts(model: Modelled, case: Case, plain_s: float, drafted: float) -> Sides:
    cost = Anchored(model, plain_s, case.plain_step)
    return cost.parts(case.plain_step), cost.parts(case.step(drafted))


def _with_profile(case: Case, parts: dict[str, float]) -> dict[str, float]:
    known = {name: case.profiled_s.get(name, seconds) for name, seconds in parts.items()}
    return {**known, REST: known[REST] + sum(parts.values()) - sum(known.values())}


def _added(case: Case, name: str, drafted: float, dear: Sides, cheap: Sides) -> Interval:
    low, high = (side[1][name] - side[0][name] for side in (cheap, dear))
    if name == ALL_REDUCE:
        low = min(low, least_all_reduce_s(case, drafted))
    return Interval((low + high) / 2, low, high)


def least_all_reduce_s(case: Case, drafted: float) -> float:
    """Seconds that the AllReduces of a step gain by `drafted` more tokens, were latency no matter.

    calls · 2 (n − 1)/n · more bytes / the link's rate: what a ring must send (Patarasuk and Yuan 2009).
    """
    link = case.modelled.hardware.link
    if case.tp == 1 or link is None or link.gb_per_s is None:
        return 0.0
    n_bytes = case.modelled.geometry.all_reduce_bytes(1) * drafted * case.sequences
    return (
        case.modelled.geometry.all_reduce_calls()
        * 2
        * (case.tp - 1)
        / case.tp
        * n_bytes
        / (link.gb_per_s * 1e9)
    )


def distinct_range(case: Case, drafted: float) -> tuple[float, float]:
    """Distinct experts of one layer that `drafted` tokens and one more wake, at the most and least reuse."""
    experts = None if case.geometry is None else case.geometry.experts
    if experts is None:
        return 0.0, 0.0
    few, many = (
        distinct_experts(experts, 1 + drafted, case.sequences, reuse)
        for reuse in (case.reuse[1], case.reuse[0])
    )
    return few, many


def source_of(case: Case, name: str, drafted: float) -> str:
    """Where the figures of one part come from, in a phrase."""
    words = {
        "weights": _weights_words(case),
        EXPERTS: _experts_words(case, drafted),
        "kv": f"{case.context_tokens:,.0f} tokens of context, read once however many are verified",
        "arithmetic": f"{_gflop_per_token(case):.0f} GFLOP per token",
        ALL_REDUCE: _all_reduce_words(case, drafted),
        "overhead": "scheduling, launches and sampling of a published regression; the same for every step",
        REST: "of the measured plain step, what the other parts leave",
    }[name]
    return f"plain step as profiled; {words}" if name in case.profiled_s else words


def _gflop_per_token(case: Case) -> float:
    return case.modelled.geometry.flops_per_token(case.context_tokens) / 1e9


def _weights_words(case: Case) -> str:
    n_bytes = size(round(case.modelled.geometry.bytes_read_per_step(0)))
    share = case.modelled.efficiency.weights
    devices = f"{case.tp} × " if case.tp > 1 else ""
    rate = f"{devices}{case.modelled.hardware.bandwidth_gb_per_s:,.0f} GB/s"
    return f"{n_bytes} at {share:.0%} of {rate}, read once however many are verified".replace("%", " %")


def _experts_words(case: Case, drafted: float) -> str:
    experts = case.modelled.geometry.experts
    if experts is None:
        return "the model has none"
    few, many = distinct_range(case, drafted)
    one, _ = distinct_range(case, 0)
    low, high = case.reuse
    if low == high:
        return f"{one:.1f} → {many:.1f} of {experts.count} distinct per layer, at a reuse of {low:g}"
    return (
        f"{one:.1f} → {few:.1f} (reuse {high:g}) to {many:.1f} (reuse {low:g}) "
        f"of {experts.count} distinct per layer"
    )


def _all_reduce_words(case: Case, drafted: float) -> str:
    link = case.modelled.hardware.link
    if case.tp == 1 or link is None:
        return "one device: none"
    geometry, tokens = case.modelled.geometry, case.step(drafted).batch_tokens
    before, after = geometry.all_reduce_bytes(case.sequences), geometry.all_reduce_bytes(1) * tokens
    calls = f"{geometry.all_reduce_calls()} calls of {size(round(before))} → {size(round(after))}"
    rate = f"{link.gb_per_s:g} GB/s per device" if link.gb_per_s else "no known rate"
    known = case.tp in link.all_reduce_us
    most = f"the curve measured among {case.tp}" if known else "latency and half that rate"
    return f"{calls}: by bandwidth alone ({rate}) to {most}"
