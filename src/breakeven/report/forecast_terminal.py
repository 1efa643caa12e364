"""A forecast on a terminal, readable without colour and at 60 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from breakeven.forecast.records import TARGETS, Forecast
from breakeven.report import forecast_figures as figures
from breakeven.report import forecast_words as words
from breakeven.report.definitions import texts
from breakeven.report.forecast_figures import Setting
from breakeven.report.terminal import print_grid, say
from breakeven.report.text import line
from breakeven.units import ABSENT, count, duration, ratio

GAP = 2
"""Columns between those of a table."""
_SPEEDUPS = ("decoding", "interval", "throughput", "interval", "outcome")


def print_forecast(forecast: Forecast, console: Console, report_path: str | None = None) -> None:
    """The recommendation, the figures it rests on, and all that qualifies them; the next command ends it."""
    say(console, words.record_sentence(forecast), "bold", wrap=False)
    console.print()
    say(console, line(forecast.recommendation, 2000), "bold")
    _print_settings(forecast, console)
    _print_by_concurrency(forecast, console)
    _print_categories(forecast, console)
    _print_limits(forecast, console)
    _print_needed(forecast, console)
    _print_definitions(forecast, console)
    console.print()
    for sentence in words.basis_sentences(forecast):
        say(console, sentence)
    for note in words.notes(forecast):
        say(console, f"! {note}", "yellow")
    _print_end(forecast, report_path, console)


def _print_settings(forecast: Forecast, console: Console) -> None:
    shown = figures.shortlist(forecast)
    if not shown:
        return
    console.print()
    headers = ("tokens/step", "acceptance", "draft share", *_SPEEDUPS)
    rows = {
        one.name: (one.tokens_per_step, one.acceptance, one.draft_share, *_speedups(one)) for one in shown
    }
    if _fits(headers, rows, console):
        print_grid("drafter", headers, rows, console)
    else:
        _print_stacked({one.name: one for one in shown}, console, is_whole=True)
    if further := len(forecast.rows) + len(forecast.given) - len(shown):
        say(console, f"{count(further, 'further setting')} in --html and --json", "dim")


def _print_by_concurrency(forecast: Forecast, console: Console) -> None:
    shown = figures.by_concurrency(forecast)
    if len(shown) < 2:
        return
    console.print()
    headers = ("fastest setting", *_SPEEDUPS)
    rows = {str(one.concurrency): (one.name, *_speedups(one)) for one in shown}
    if _fits(headers, rows, console):
        print_grid("concurrency", headers, rows, console)
    else:
        _print_stacked({f"concurrency {one.concurrency}: {one.name}": one for one in shown}, console)


def _speedups(one: Setting) -> tuple[str, ...]:
    decoding, throughput = one.decoding, one.throughput
    return decoding.estimate, decoding.interval, throughput.estimate, throughput.interval, one.outcome


def _fits(headers: Sequence[str], rows: Mapping[str, tuple[str, ...]], console: Console) -> bool:
    """Whether every cell of the table is shown whole, names included."""
    widths = [max(map(len, column)) for column in zip(headers, *rows.values(), strict=True)]
    return max(map(len, rows)) + sum(widths) + GAP * len(widths) <= console.width


def _print_stacked(shown: Mapping[str, Setting], console: Console, is_whole: bool = False) -> None:
    for name, one in shown.items():
        say(console, f"{name}: {one.outcome}", "bold")
        say(console, f"  decoding {one.decoding}, throughput {one.throughput}")
        if is_whole:
            acceptance = f"acceptance {one.acceptance}, draft share {one.draft_share}"
            say(console, f"  {one.tokens_per_step} tokens/step, {acceptance}")


def _print_categories(forecast: Forecast, console: Console) -> None:
    row, shown = forecast.best, figures.categories(forecast)
    if row is None or not shown:
        return
    console.print()
    say(console, f"{words.row_words(row)} at concurrency {forecast.concurrency}, by category:")
    rows = {one.name: (one.decoding.estimate, one.decoding.interval, one.outcome) for one in shown}
    print_grid("category", ("decoding", "interval", "outcome"), rows, console)


def _print_limits(forecast: Forecast, console: Console) -> None:
    row, bounds = forecast.best, figures.oracle(forecast)
    if row is None and not bounds:
        return
    console.print()
    if row is not None:
        say(console, words.break_even_sentence(forecast, row))
    if bounds:
        level = forecast.concurrency
        say(
            console,
            f"Oracle, the bound of any drafter, decoding at concurrency {level}: {', '.join(bounds)}.",
        )


def _print_needed(forecast: Forecast, console: Console) -> None:
    shown = figures.needed(forecast)
    if not shown:
        return
    console.print()
    drafter, level = line(forecast.needed_for, 60), forecast.concurrency
    say(console, f"Acceptance length that {drafter} needs at concurrency {level}, by decode speedup:")
    headers = (*map(ratio, TARGETS), "published")
    print_grid("k", headers, {one.k: (*one.lengths, one.published) for one in shown}, console)
    say(console, f"{ABSENT} is above k + 1, or not published; sources of those that are: --json", "dim")


def _print_definitions(forecast: Forecast, console: Console) -> None:
    console.print()
    of_rows = ("speedup", "throughput_speedup", "outcome", "break_even", "oracle")
    keys = (*of_rows, "acceptance_rate", "tokens_per_step", "draft_share") if forecast.rows else ("speedup",)
    names = {"speedup": "decoding", "throughput_speedup": "throughput"}
    told = texts(words.FORECAST_DEFINITIONS)
    for key in (*keys, "interval", *(("needed",) if forecast.needed else ())):
        say(console, f"{names.get(key, key.replace('_', ' '))} = {told[key]}", "dim")


def _print_end(forecast: Forecast, report_path: str | None, console: Console) -> None:
    say(console, f"Took {duration(forecast.elapsed_s)}.")
    if report_path is not None:
        say(console, f"Report: {line(report_path, 500)}", wrap=False)
    for command in forecast.next_commands:
        say(console, f"Next: {line(command, 1000)}", wrap=False)
    if any("…" in command for command in forecast.next_commands):
        say(console, "(… are your own options: the model, and for a trial of engines its prompts)", "dim")
