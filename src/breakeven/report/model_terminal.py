"""A model's geometry on a terminal and as JSON: what it holds, and what a decode step moves."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from breakeven.cost.attention import GroupedQuery
from breakeven.cost.geometry import Experts, Geometry
from breakeven.cost.geometry_json import geometry_to_json
from breakeven.cost.precision import PARTS
from breakeven.report.plain import printable
from breakeven.report.terminal import print_grid, say
from breakeven.report.text import line
from breakeven.units import count, size

LONG_CONTEXT = 32_768
"""Tokens at which the cache is shown."""
_PART_NAMES = {
    "dense": "dense blocks",
    "routed": "routed experts",
    "shared": "shared experts",
    "output": "output head",
    "other": "routers, norms",
}


def print_model(name: str, geometry: Geometry, console: Console) -> None:
    """The shape, a table of its parts, and what one step reads and sends."""
    total, active = geometry.parameters_total(), geometry.parameters_active()
    of_them = f", {parameters(active)} active per token" if geometry.experts else ""
    say(console, f"{line(name)}: {parameters(total)} parameters{of_them}", "bold")
    for sentence in _shape(geometry):
        say(console, sentence)
    console.print()
    _print_parts(geometry, console)
    console.print()
    for sentence in _step(geometry):
        say(console, sentence)
    say(console, f"Source: {line(geometry.source, 500)}", "dim")


def model_json(name: str, geometry: Geometry) -> dict[str, Any]:
    """Stable keys; `geometry` is in the format of a geometry file. Sizes in bytes."""
    experts = geometry.experts
    every_expert = round(geometry.bytes_read_per_step(experts.count)) if experts else None
    values: dict[str, Any] = {
        "model": name,
        "geometry": geometry_to_json(geometry),
        "parameters_total": geometry.parameters_total(),
        "parameters_active": geometry.parameters_active(),
        "parameters_mtp": geometry.parameters_mtp(),
        "parameters_by_part": geometry.parameters_by_part(),
        "weight_bytes": geometry.weight_bytes(),
        "weight_bytes_by_part": geometry.bytes_by_part(),
        "bytes_read_per_step_one_token": round(geometry.bytes_read_per_step()),
        "bytes_read_per_step_all_experts": every_expert,
        "kv_bytes_per_token": geometry.kv_bytes_per_token(),
        "kv_bytes_at_32768": geometry.kv_bytes(LONG_CONTEXT),
        "flops_per_token": geometry.flops_per_token(),
        "all_reduce_calls": geometry.all_reduce_calls(),
        "all_reduce_bytes_per_token": geometry.all_reduce_bytes(),
    }
    absent = {} if experts else {"bytes_read_per_step_all_experts": "the model has no experts"}
    shown: dict[str, Any] = printable({**values, "absent": absent})
    return shown


def parameters(n: int) -> str:
    """A number of parameters: `8.03 B`, `135 M`, `1.03 T`."""
    value, units = n / 1e6, ["M", "B", "T"]
    while value >= 999.5 and len(units) > 1:
        value, units = value / 1000, units[1:]
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {units[0]}"


def _shape(geometry: Geometry) -> list[str]:
    tied = "the embedding table is the output head" if geometry.tied else "the output head is its own"
    width = f"hidden {geometry.hidden:,}, vocabulary {geometry.vocab:,} ({tied})"
    layers = f"{line(geometry.architecture)}: {count(geometry.layers, 'layer')}, {width}"
    sentences = [layers, _attention(geometry)]
    if geometry.experts:
        sentences.append(_experts(geometry, geometry.experts))
    if geometry.mtp_layers:
        more = f"{count(geometry.mtp_layers, 'more layer')} for multi-token prediction, not counted here"
        sentences.append(f"{more}: {parameters(geometry.parameters_mtp())} parameters")
    return sentences


def _attention(geometry: Geometry) -> str:
    one = geometry.attention
    if isinstance(one, GroupedQuery):
        kind = f"grouped-query, {one.heads} heads on {count(one.kv_heads, 'KV head')} of {one.head_dim}"
    else:
        kind = f"multi-head latent, {one.heads} heads, cached rank {one.kv_rank} + {one.rope_dim} rotary"
    if geometry.sliding is None:
        return f"Attention: {kind}"
    window = count(geometry.sliding.window, "token")
    return f"Attention: {kind}; {count(geometry.sliding.layers, 'layer')} see the last {window}"


def _experts(geometry: Geometry, experts: Experts) -> str:
    shared = f" and {experts.shared} shared" if experts.shared else ""
    width = f"of width {experts.ff:,}, in {count(geometry.expert_layers, 'layer')}"
    return f"Experts: {experts.top_k} of {experts.count}{shared} per token, {width}"


def _print_parts(geometry: Geometry, console: Console) -> None:
    sizes, n_bytes = geometry.parameters_by_part(), geometry.bytes_by_part()
    rows = {
        _PART_NAMES.get(part, part): (
            parameters(sizes[part]),
            f"{geometry.weights.of(part).bits_per_weight:.4g}",
            size(n_bytes[part]),
        )
        for part in PARTS
        if sizes[part]
    }
    mean_bits = 8 * geometry.weight_bytes() / geometry.parameters_total()
    rows["all"] = (parameters(geometry.parameters_total()), f"{mean_bits:.4g}", size(geometry.weight_bytes()))
    print_grid("part", ("parameters", "bits/weight", "size"), rows, console)


def _step(geometry: Geometry) -> list[str]:
    reads = f"A decode step of one token reads {_bytes(geometry.bytes_read_per_step())} of weights"
    if geometry.experts:
        every = geometry.bytes_read_per_step(geometry.experts.count)
        reads += f"; one that meets every expert, {_bytes(every)}"
    cache = f"KV cache: {_bytes(geometry.kv_bytes_per_token())} per token"
    far = f"{_bytes(geometry.kv_bytes(LONG_CONTEXT))} for one sequence of {LONG_CONTEXT:,}"
    message = _bytes(geometry.all_reduce_bytes())
    calls = f"{geometry.all_reduce_calls()} AllReduces per step of {message} per token"
    return [
        f"{reads}.",
        f"{cache} at {geometry.kv_bits:g} bits, {far}.",
        f"Arithmetic: {geometry.flops_per_token() / 1e9:.3g} GFLOP per token, and attention over the cache.",
        f"Tensor parallelism: {calls}.",
    ]


def _bytes(n: float) -> str:
    return size(round(n))
