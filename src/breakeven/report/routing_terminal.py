"""Measured expert coverage on a terminal and as JSON, beside what the formula says."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from breakeven.cost.coverage import distinct_experts
from breakeven.cost.geometry import Experts
from breakeven.cost.routing import Coverage, RoutingTrace
from breakeven.interval import Interval
from breakeven.models.upcycle import RANDOM_ROUTING
from breakeven.report.plain import printable
from breakeven.report.terminal import print_grid, say
from breakeven.report.text import line
from breakeven.units import ABSENT, count

RANDOM = f"{RANDOM_ROUTING} What it shows is not what a trained router would."
DEFINITIONS = {
    "neighbours": "distinct experts of a layer for so many consecutive tokens of one reply",
    "sequences": "the same for one token of each of so many replies",
    "formula": "E · (1 − (1 − K/E)^n) with n = 1 + (tokens − 1)(1 − r); r = 0 for sequences",
    "interval": "two standard errors to each side, jackknife over replies; that of r also holds its misfit",
    "limit": "tokens are those of the reply itself: drafts that are rejected may route otherwise",
}


def print_routing(trace: RoutingTrace, path: str | None, console: Console) -> None:
    """The table, the reuse that fits, definitions, and whether the router learned anything."""
    reuse = trace.reuse()
    shape = f"{trace.top_k} of {trace.count} experts, {count(trace.layers, 'layer')}"
    of = f"{count(len(trace.experts), 'token')} of {len(trace.lengths)} replies"
    say(console, f"{line(trace.model, 300)}: {shape}; {of}", "bold")
    console.print()
    headers = ("neighbours", "interval", "r = 0", f"r = {reuse.estimate:.2f}", "sequences", "interval")
    print_grid("tokens", headers, _rows(trace, reuse.estimate), console)
    for name, words in DEFINITIONS.items():
        say(console, f"{name}: {words}", "dim")
    console.print()
    say(
        console,
        f"Reuse that fits neighbours best: {reuse.estimate:.2f} ({reuse.low:.2f} to {reuse.high:.2f}).",
    )
    if trace.random_router:
        say(console, f"! {RANDOM}", "yellow")
    if path is not None:
        say(console, f"Routing: {line(path, 500)}", wrap=False)


def _rows(trace: RoutingTrace, reuse: float) -> dict[str, tuple[str, ...]]:
    sequences = {one.tokens: one.distinct for one in trace.sequences()}
    return {
        str(one.tokens): (
            *_cells(one.distinct),
            f"{_formula(trace, one.tokens, 0):.2f}",
            f"{_formula(trace, one.tokens, reuse):.2f}",
            *_cells(sequences.get(one.tokens)),
        )
        for one in trace.neighbours()
    }


def _cells(distinct: Interval | None) -> tuple[str, str]:
    if distinct is None:
        return ABSENT, ABSENT
    return f"{distinct.estimate:.2f}", f"{distinct.low:.2f} – {distinct.high:.2f}"


def _formula(trace: RoutingTrace, tokens: int, reuse: float) -> float:
    return distinct_experts(Experts(trace.count, trace.top_k, ff=1), tokens, reuse=reuse)


def routing_json(trace: RoutingTrace, path: str | None) -> dict[str, Any]:
    """Stable keys; intervals as estimate, low and high."""
    reuse = trace.reuse()
    values = {
        "model": trace.model,
        "experts": trace.count,
        "top_k": trace.top_k,
        "layers": trace.layers,
        "tokens": len(trace.experts),
        "replies": len(trace.lengths),
        "random_router": trace.random_router,
        "reuse": _interval(reuse),
        "neighbours": [
            {**_coverage(trace, one), "fitted": _formula(trace, one.tokens, reuse.estimate)}
            for one in trace.neighbours()
        ],
        "sequences": [_coverage(trace, one) for one in trace.sequences()],
        "warnings": [RANDOM] if trace.random_router else [],
        "definitions": DEFINITIONS,
        "path": path,
        "absent": {} if path else {"path": "not kept: type --out FILE.npz"},
    }
    shown: dict[str, Any] = printable(values)
    return shown


def _coverage(trace: RoutingTrace, one: Coverage) -> dict[str, Any]:
    independent = _formula(trace, one.tokens, 0)
    return {"tokens": one.tokens, "distinct": _interval(one.distinct), "independent": independent}


def _interval(value: Interval) -> dict[str, float]:
    return {"estimate": value.estimate, "low": value.low, "high": value.high}
