"""A forecast as one self-contained page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakeven.forecast.phrases import at, merged
from breakeven.forecast.records import Cell, Coverage, Forecast, ForecastRow, Published, StepParts, outcome
from breakeven.interval import Interval
from breakeven.report import forecast_figures as figures
from breakeven.report import forecast_plots as plots
from breakeven.report import forecast_words as words
from breakeven.report.bars import interval_ms, part_words
from breakeven.report.curves import Chart
from breakeven.report.forecast_json import forecast_json
from breakeven.report.standalone import KeyFigure, render, write_page
from breakeven.report.text import line
from breakeven.units import ABSENT, duration, milliseconds, share

NO_ROWS = "No drafter was replayed on a record, so no speedup was forecast: see what a drafter must reach."
NO_STEPS = "No request of the record has a decode step, so there is no speedup to draw."
MAX_SETTINGS = 500
MAX_CATEGORIES = 100
"""Rows of a table; all are in the JSON."""


def write_forecast_html(forecast: Forecast, path: Path) -> None:
    """Write the page, whole or not at all. Raises StorageError if the disk does not take it."""
    write_page(forecast_page(forecast), path)


def forecast_page(forecast: Forecast) -> str:
    """The page's HTML, with the figures of `forecast_json` as data."""
    return render("forecast.html.j2", _context(forecast), forecast_json(forecast))


def _context(forecast: Forecast) -> dict[str, Any]:
    return {
        **_words(forecast),
        **_speedups(forecast),
        **_costs(forecast),
        "maps": plots.needed_maps(forecast.needed),
        "needed_for": line(forecast.needed_for, 60),
        "impossible": plots.IMPOSSIBLE,
        "published": [_published(one) for one in forecast.published],
    }


def _words(forecast: Forecast) -> dict[str, Any]:
    return {
        "headline": words.headline(forecast),
        "recommendation": line(forecast.recommendation, 2000),
        "learned": words.learned_sentence(forecast),
        "tried": figures.tried(forecast),
        "commands": [line(command, 1000) for command in forecast.next_commands],
        "took": duration(forecast.elapsed_s),
        "record": words.record_sentence(forecast),
        "basis": words.basis_sentences(forecast),
        "notes": words.notes(forecast),
        "definitions": words.FORECAST_DEFINITIONS,
        "concurrency": forecast.concurrency,
        "concurrencies": forecast.concurrencies,
    }


def _key_figures(row: ForecastRow, cell: Cell) -> Iterator[KeyFigure]:
    counters = row.counters
    yield _interval_figure("speedup", "Decode speedup", cell.speedup)
    if cell.throughput_speedup is not None:
        yield _interval_figure("throughput_speedup", "Throughput", cell.throughput_speedup)
    yield KeyFigure("tokens_per_step", "Tokens per step", f"{row.tokens_per_step:.3f}")
    yield KeyFigure("acceptance_rate", "Acceptance rate", share(counters.acceptance_rate))
    yield KeyFigure("draft_share", "Draft share", share(counters.draft_share))


def _interval_figure(key: str, name: str, value: Interval) -> KeyFigure:
    said = figures.speedup(value)
    return KeyFigure(key, name, said.estimate, said.interval)


def _speedups(forecast: Forecast) -> dict[str, Any]:
    """Which rows are fast: all at the forecast's concurrency, the best at each."""
    rows = figures.ranked(forecast)
    windows, decoding = plots.by_window(forecast), plots.decoding_by_concurrency(forecast)
    return {
        **_best(forecast),
        "windows": windows,
        "window_note": _window_note(forecast, windows, decoding),
        "decoding": decoding,
        "throughput": plots.throughput_by_concurrency(forecast),
        "only_drafter": line(plots.only_drafter(forecast), 60),
        "by_concurrency": [_at_concurrencies(name, row) for name, row in plots.settings_worth_it(forecast)],
        "rows": [_setting(forecast, *one) for one in rows[:MAX_SETTINGS]],
        "rows_left_out": max(0, len(rows) - MAX_SETTINGS),
        "bounds": [_setting(forecast, *one) for one in merged(forecast.oracle)[:MAX_SETTINGS]],
        "no_speedup": _no_speedup(forecast),
    }


def _best(forecast: Forecast) -> dict[str, Any]:
    """The setting of the recommendation."""
    best = forecast.best
    if best is None:
        return {"best": "", "key_figures": [], "break_even": "", "by_category": [], "categories_left_out": 0}
    by_category = _categories(best)
    return {
        "best": words.row_words(forecast, best),
        "flags": line(best.flags, 1000),
        "key_figures": list(_key_figures(best, at(forecast, best))),
        "break_even": words.break_even_sentence(forecast, best),
        "by_category": by_category[:MAX_CATEGORIES],
        "categories_left_out": max(0, len(by_category) - MAX_CATEGORIES),
    }


def _no_speedup(forecast: Forecast) -> str:
    """Why there is nothing to draw, if there is nothing."""
    return NO_STEPS if forecast.rows or forecast.given else NO_ROWS


def _window_note(forecast: Forecast, windows: plots.Windows | None, decoding: Chart | None) -> str:
    """Why there is no plot, or no line in it."""
    if windows is None and decoding is None:
        return _no_speedup(forecast)
    if windows is None:
        return "No drafter here has a fixed window, so there is nothing to draw it against."
    if len(windows.windows) == 1:
        return f"Only the window of {windows.windows[0]} was forecast, so there is a point and no line."
    return ""


@dataclass(frozen=True, slots=True)
class Said:
    """A speedup in a table, with what it comes to: empty where there is none."""

    text: str
    interval: str
    outcome: str


def _said(value: Interval | None) -> Said:
    said = figures.speedup(value)
    is_known = value is not None and said.estimate != ABSENT
    return Said(said.estimate, said.interval, outcome(value) if value and is_known else "")


@dataclass(frozen=True, slots=True)
class AtConcurrencies:
    name: str
    decoding: tuple[Said, ...]
    throughput: tuple[Said, ...]


def _at_concurrencies(name: str, row: ForecastRow) -> AtConcurrencies:
    decoding = tuple(_said(cell.speedup) for cell in row.cells)
    return AtConcurrencies(name, decoding, tuple(_said(cell.throughput_speedup) for cell in row.cells))


def _categories(row: ForecastRow) -> list[tuple[str, list[Said]]]:
    """Speedup of decoding by category and concurrency; none where there is only one, which is the total."""
    names = dict.fromkeys(name for cell in row.cells for name in cell.by_category)
    if len(names) < 2:
        return []
    return [
        (line(name, 40) or "(none)", [_said(cell.by_category.get(name)) for cell in row.cells])
        for name in names
    ]


@dataclass(frozen=True, slots=True)
class Setting:
    drafter: str
    settings: str
    recommended: bool
    flags: str
    tokens_per_step: str
    acceptance: str
    draft_share: str
    speedup: Said
    throughput: Said
    step_ratio: str
    must: str
    """Break-even acceptance rate."""


def _setting(forecast: Forecast, row: ForecastRow, settings: str) -> Setting:
    cell, counters = at(forecast, row), row.counters
    return Setting(
        line(row.drafter, 60),
        line(settings, 300),
        row is forecast.best,
        line(row.flags, 1000),
        f"{row.tokens_per_step:.3f}",
        share(counters.acceptance_rate),
        share(counters.draft_share),
        _said(cell.speedup),
        _said(cell.throughput_speedup),
        f"{cell.step_ratio.estimate:.3f}",
        share(cell.break_even.acceptance_rate),
    )


def _costs(forecast: Forecast) -> dict[str, Any]:
    """What a step takes, and how many experts it wakes."""
    steps, coverage = forecast.steps, forecast.coverage
    names = list(dict.fromkeys(name for step in steps for name in step.parts))
    return {
        "waterfall": plots.waterfall(steps),
        "is_whole": len(names) == 1,
        "part_names": [part_words(name) for name in names],
        "steps": [_step(step, names) for step in steps],
        "experts": plots.experts(coverage) if coverage else None,
        "coverage": coverage,
        "coverage_rows": _coverage_rows(coverage) if coverage else [],
    }


def _step(step: StepParts, names: Sequence[str]) -> tuple[str, list[str], str]:
    cells = [milliseconds(step.parts.get(name)) for name in names]
    return str(step.k) if step.k else "plain step", cells, interval_ms(step.total)


def _coverage_rows(coverage: Coverage) -> list[tuple[int, str, int]]:
    """Tokens, distinct experts, and as many as there would be if none were shared."""
    return [
        (tokens, plots.experts_text(distinct), min(coverage.top_k * tokens, coverage.experts))
        for tokens, distinct in coverage.points
    ]


def _published(one: Published) -> Mapping[str, str]:
    return {
        "method": line(one.method, 60),
        "model": line(one.model, 80),
        "k": str(one.k),
        "acceptance_length": f"{one.acceptance_length:.2f}",
        "workload": line(one.workload, 80),
        "source": line(one.source, 300),
    }
