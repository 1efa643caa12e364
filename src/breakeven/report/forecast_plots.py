"""The plots of a forecast: which rows they show, what is drawn where, and the plot in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from breakeven.forecast.phrases import at, settings_of
from breakeven.forecast.records import (
    TARGETS,
    Cell,
    Coverage,
    Forecast,
    ForecastRow,
    Needed,
    StepParts,
)
from breakeven.interval import Interval
from breakeven.report.bars import Bar, Bars, drawn_bars, interval_ms, signed_ms, stacked
from breakeven.report.curves import Chart, Points, chart
from breakeven.report.plots import interval_text
from breakeven.report.replay_plots import SHADES, HeatMap
from breakeven.report.replay_plots import Cell as Shaded
from breakeven.report.svg import Linear, Log, padded_ratio
from breakeven.report.text import line
from breakeven.units import count, milliseconds, ratio, share

MOST_LINES = 8
WIDEST = 4.0
"""A bound farther than so many times from its estimate does not stretch the axis: it leaves the plot."""
IMPOSSIBLE = "✕"
BOUND = "upper bound: all accepted, at every step"


@dataclass(frozen=True, slots=True)
class Windows:
    """Speedup of decoding by window."""

    chart: Chart
    left_out: tuple[str, ...]
    """Drafters and settings that have no line."""
    windows: tuple[int, ...]


def by_window(forecast: Forecast) -> Windows | None:
    """A line for the best n range of each drafter, the best drafter first; None where no row has a window."""
    rows = (*forecast.rows, *forecast.given)
    groups = _groups(forecast, rows)
    drawn = _best_of_each_drafter(groups)[:MOST_LINES]
    if not drawn:
        return None
    lines = [_window_line(_title(*key), groups[key]) for key in drawn]
    bounds = [_window_line(BOUND, found, True) for found in _groups(forecast, forecast.oracle).values()]
    ks = sorted({int(k) for points in (*lines, *bounds) for k, _ in points.values})
    return Windows(
        chart(
            "window k: tokens drafted at most",
            _span(ks),
            _ratios(lines, [points.values[0][1].estimate for points in bounds]),
            [*lines, *bounds],
            [(1.0, "break-even")],
            f"decoding at concurrency {forecast.concurrency}: {_ends(lines)}",
        ),
        (*_left_out(groups, drawn), *_windowless(rows)),
        tuple(ks),
    )


_Key = tuple[str, str]
"""A drafter, and its settings other than k in words."""
_Speedups = dict[int, Interval]
"""Of decoding, by k."""


def _groups(forecast: Forecast, rows: Sequence[ForecastRow]) -> dict[_Key, _Speedups]:
    """Rows that differ in k alone, by drafter and other settings; the group of the best row first."""
    found: dict[_Key, _Speedups] = {}
    for row in rows:
        k, speedup = _window(row), at(forecast, row).speedup
        if k is not None and isfinite(speedup.estimate):
            found.setdefault((row.drafter, _others(row, rows)), {})[k] = speedup
    return found


def _window(row: ForecastRow) -> int | None:
    k = row.settings.get("k")
    return k if isinstance(k, int) else None


def _others(row: ForecastRow, rows: Sequence[ForecastRow]) -> str:
    """Its settings but k."""
    without_k = {name: value for name, value in row.settings.items() if name != "k"}
    return settings_of(replace(row, settings=without_k), rows)


def _best_of_each_drafter(groups: Iterable[_Key]) -> list[_Key]:
    found: dict[str, _Key] = {}
    for key in groups:
        found.setdefault(key[0], key)
    return list(found.values())


def _title(drafter: str, settings: str) -> str:
    return line(f"{drafter} {settings}".rstrip(), 80)


def _window_line(title: str, found: _Speedups, bound: bool = False) -> Points:
    texts = tuple(f"{title}, k={k}: {interval_text(found[k])}" for k in sorted(found))
    return Points(title, tuple((float(k), found[k]) for k in sorted(found)), texts, bound)


def _left_out(groups: Mapping[_Key, _Speedups], drawn: Sequence[_Key]) -> Iterator[str]:
    """Each with its best window."""
    for key, found in groups.items():
        if key not in drawn:
            k = max(found, key=lambda each: found[each].estimate)
            yield f"{_title(*key)} ({ratio(found[k].estimate)} at k={k})"


def _windowless(rows: Sequence[ForecastRow]) -> Iterator[str]:
    return (
        f"{_title(row.drafter, settings_of(row, rows))} (it has no fixed window)"
        for row in rows
        if _window(row) is None
    )


def _ends(lines: Sequence[Points]) -> str:
    """The best of each line in words."""
    said = []
    for points in lines:
        x, best = max(points.values, key=lambda value: value[1].estimate)
        said.append(f"{points.name} is best at {x:g} with {interval_text(best)}")
    return "; ".join(said)


def _span(values: Sequence[int]) -> Linear:
    """With a margin for dots and labels."""
    margin = 0.04 * (values[-1] - values[0]) or 0.5
    return Linear(values[0] - margin, values[-1] + margin)


def _ratios(lines: Sequence[Points], also: Sequence[float] = ()) -> Log:
    ends = [1.0, *also]
    for _, value in (pair for points in lines for pair in points.values):
        ends += [max(value.low, value.estimate / WIDEST), min(value.high, value.estimate * WIDEST)]
    return Log(*padded_ratio(ends))


def settings_worth_it(forecast: Forecast) -> list[tuple[str, ForecastRow]]:
    """The recommended one, then each that is to be taken at some concurrency, and the best that was given; by
    name, without that of `only_drafter`."""
    rows, only = [*forecast.rows, *forecast.given], only_drafter(forecast)
    named = [("" if row.drafter == only else row.drafter, row) for row in _worth_it(forecast)]
    return [(_title(drafter, settings_of(row, rows)).strip(), row) for drafter, row in named][:MOST_LINES]


def only_drafter(forecast: Forecast) -> str:
    """Of all settings that are worth it, where there are several; else empty."""
    drafters = [row.drafter for row in _worth_it(forecast)]
    return drafters[0] if len(drafters) > 1 and len(set(drafters)) == 1 else ""


def _worth_it(forecast: Forecast) -> list[ForecastRow]:
    best = [forecast.best, *map(forecast.best_at, forecast.concurrencies), forecast.best_given]
    return list({id(row): row for row in best if row is not None}.values())


def decoding_by_concurrency(forecast: Forecast) -> Chart | None:
    """Speedup of decoding of `settings_worth_it`; None without rows."""
    return _by_concurrency(forecast, "decoding", lambda cell: cell.speedup)


def throughput_by_concurrency(forecast: Forecast) -> Chart | None:
    """As decoding_by_concurrency, of throughput; None where it was not simulated."""
    return _by_concurrency(forecast, "throughput", lambda cell: cell.throughput_speedup)


def _by_concurrency(forecast: Forecast, what: str, value: Callable[[Cell], Interval | None]) -> Chart | None:
    made = [_concurrency_line(name, row, value) for name, row in settings_worth_it(forecast)]
    lines = [points for points in made if points.values]
    if not lines:
        return None
    across = Log(*padded_ratio(forecast.concurrencies, 0.04))
    said = f"{what} by concurrency: {_ends(lines)}"
    return chart("concurrency, log axis", across, _ratios(lines), lines, [(1.0, "break-even")], said)


def _concurrency_line(title: str, row: ForecastRow, value: Callable[[Cell], Interval | None]) -> Points:
    said = [(cell.concurrency, value(cell)) for cell in row.cells]
    found = [(c, speedup) for c, speedup in said if speedup is not None and isfinite(speedup.estimate)]
    texts = tuple(f"{title}, concurrency {c}: {interval_text(speedup)}" for c, speedup in found)
    return Points(title, tuple((float(c), speedup) for c, speedup in found), texts)


def waterfall(steps: Sequence[StepParts]) -> Bars | None:
    """The plain step in parts, then each window: the same, and what verification adds. None without steps."""
    plain = next((step for step in steps if step.k == 0), None)
    if plain is None:
        return None
    plain_s = sum(plain.parts.values())
    bars = [_step_bar(step, plain) for step in steps]
    said = "; ".join(bar.text for bar in bars)
    return drawn_bars(bars, plain_s, f"a step of the target model: {said}")


def _step_bar(step: StepParts, plain: StepParts) -> Bar:
    total = interval_ms(step.total)
    added = sum(step.parts.values()) - sum(plain.parts.values())
    more = f", {signed_ms(added)} ms on the plain step" if step.k else ""
    return Bar(
        "plain step" if step.k == 0 else f"k = {step.k}",
        tuple(stacked(plain.parts, {name: s - plain.parts.get(name, 0.0) for name, s in step.parts.items()})),
        f"{'plain step' if step.k == 0 else count(step.k, 'drafted token')}: {total} ms{more}",
        f"{milliseconds(step.total.estimate)} ms",
        step.total,
    )


def experts(coverage: Coverage) -> Chart:
    """Distinct experts of a layer by tokens; between its bound of all experts and that of no reuse."""
    tokens = [t for t, _ in coverage.points]
    found = Points(
        "distinct experts",
        tuple((float(t), distinct) for t, distinct in coverage.points),
        tuple(f"{count(t, 'token')}: {experts_text(i)} of {coverage.experts}" for t, i in coverage.points),
    )
    naive = Points(
        f"{coverage.top_k} × tokens: if none were shared",
        tuple((float(t), _exactly(coverage.top_k * t)) for t in tokens),
        tuple(f"{count(t, 'token')}: {coverage.top_k * t}" for t in tokens),
        bound=True,
    )
    last, distinct = coverage.points[-1]
    return chart(
        "tokens of one sequence in a step",
        _span(tokens),
        Linear(0, coverage.experts * 1.04),
        (found, naive),
        [(coverage.experts, f"all {coverage.experts}")],
        f"{count(last, 'token')} wake {experts_text(distinct)} of {coverage.experts} experts of a layer, "
        f"and would wake {min(coverage.top_k * last, coverage.experts)} if none were shared",
    )


def _exactly(value: float) -> Interval:
    return Interval(value, value, value)


def experts_text(distinct: Interval) -> str:
    """`34.1 (27.0 to 39.3)`."""
    return f"{distinct.estimate:.1f} ({distinct.low:.1f} to {distinct.high:.1f})"


def needed_maps(needed: Sequence[Needed]) -> list[HeatMap]:
    """One for each target: windows down, concurrencies across, shaded by the acceptance rate needed."""
    return [_needed_map(needed, target) for target in TARGETS] if needed else []


def _needed_map(needed: Sequence[Needed], target: float) -> HeatMap:
    found = {(one.k, one.concurrency): one for one in needed}
    across, down = sorted({one.concurrency for one in needed}), sorted({one.k for one in needed})
    return HeatMap(
        "to break even" if target == 1 else f"for {target:g}×",
        "concurrency",
        "k",
        tuple(map(str, across)),
        tuple((str(k), tuple(_needed_cell(found.get((k, c)), target) for c in across)) for k in down),
    )


def _needed_cell(one: Needed | None, target: float) -> Shaded | None:
    value = one.acceptance_length.get(target) if one else None
    if one is None or value is None:
        return None
    said = f"{value.estimate:.2f} ({value.low:.2f} to {value.high:.2f}) tokens per step"
    if value.estimate > one.k + 1:
        most = f"impossible: a step gives {one.k + 1} tokens at most"
        return Shaded(f"{value.estimate:.2f} {IMPOSSIBLE}", 0, f"{said}; {most}")
    rate = min(max((value.estimate - 1) / one.k, 0.0), 1.0)
    shade = min(int(rate * SHADES), SHADES - 1)
    return Shaded(f"{value.estimate:.2f}", shade, f"{said}: {share(rate)} of the drafted tokens")
