"""A calibration on a terminal: the measured points, the fit, and what it says of verification."""

from __future__ import annotations

import shlex

from rich.console import Console

from breakeven.cost.calibration import FILE, Calibration
from breakeven.cost.curve import Curve
from breakeven.cost.measured import Measured
from breakeven.cost.step import PLAIN_STEP, Step
from breakeven.cost.visits import Change, change_between
from breakeven.report.terminal import print_grid, say
from breakeven.report.text import line, named_build
from breakeven.units import ABSENT, change, count, milliseconds, ratio, share

DEFINITION = (
    "step = median time per token of replies while exactly so many were being decoded: ramp, drain and "
    "prefill are left out by the times of the events, the mean of its visits; n = stretches of about 8 "
    "steps; interval: 95 %, of a bootstrap over them and of how the machine changed between visits; fit = on "
    "the curve that never falls; added = step / that of 1 in flight − 1"
)
WINDOWS = (1, 3, 5, 7)
"""Draft tokens of which the cost is spelled out."""


def print_calibration(calibration: Calibration, path: str, console: Console) -> None:
    """The table, the fit in words, the cost of a few windows, and every warning."""
    server = " ".join(filter(None, (calibration.server.engine, calibration.server.version)))
    of = ", ".join(filter(None, (calibration.model, named_build(server))))
    say(console, f"{line(of or calibration.url, 300)}: a decode step by the tokens in it", "bold")
    curve = calibration.fitted()
    console.print()
    _print_points(calibration, curve, console)
    say(console, DEFINITION, "dim")
    console.print()
    if curve is not None:
        say(console, _windows(Measured(curve, calibration.moe)))
        say(console, _straight(curve))
    between = change_between(calibration.points)
    if between is not None:
        say(console, _between(between))
    for warning in calibration.warnings():
        say(console, f"! {line(warning, 1000)}", "yellow")
    say(console, f"Calibration: {line(path, 500)}", wrap=False)
    if curve is not None:
        folder = shlex.quote(line(path.removesuffix(f"/{FILE}"), 500))
        say(console, f"Next: breakeven forecast RECORD --calibration {folder}", wrap=False)
        say(console, "(RECORD is a run or a trial of the same server, such as runs/…)", "dim")


def _print_points(calibration: Calibration, curve: Curve | None, console: Console) -> None:
    fitted = {knot.tokens: knot.step_s for knot in curve.knots} if curve else {}
    rows = {
        str(point.concurrency): (
            milliseconds(point.step_s),
            f"{milliseconds(point.low_s)} – {milliseconds(point.high_s)}",
            str(point.n),
            milliseconds(fitted.get(point.concurrency)),
            ABSENT if curve is None else change(point.step_s / calibration.points[0].step_s),
        )
        for point in calibration.points
    }
    if rows:
        print_grid("concurrency", ("step ms", "interval", "n", "fit ms", "added"), rows, console)


def _windows(cost: Measured) -> str:
    costs = []
    for window in WINDOWS:
        if cost.curve.warning(window + 1) is None:
            of = cost.relative(Step(window + 1), PLAIN_STEP)
            costs.append(f"{window}: {ratio(of.estimate)} ({ratio(of.low)} to {ratio(of.high)})")
    return (
        f"A step that verifies a draft of one sequence, in plain steps, by draft tokens: {'; '.join(costs)}."
    )


def _between(between: Change) -> str:
    return (
        f"From one visit to another the machine differed by {share(between.deviation)} (standard deviation, "
        f"beyond scatter, of {count(between.dof, 'second visit')}): the intervals hold it."
    )


def _straight(curve: Curve) -> str:
    straight = curve.line
    sign = "−" if straight.b_s < 0 else "+"
    slope = f"{sign} {abs(straight.b_s) * 1e3:.3g} ms per token"
    off = f"{share(straight.residual)} (root mean square), at most {change(1 + straight.worst)}"
    return (
        f"Straight line: {milliseconds(straight.a_s)} ms {slope}; off by {off} at {straight.worst_at}. "
        "The piecewise curve is what is used."
    )
