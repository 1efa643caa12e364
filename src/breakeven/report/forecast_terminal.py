"""A forecast on a terminal, readable without colour and at 60 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from breakeven.forecast.records import TARGETS, Forecast
from breakeven.report import forecast_figures as figures
from breakeven.report import forecast_words as words
from breakeven.report.forecast_figures import Setting
from breakeven.report.terminal import print_commands, print_grid, say
from breakeven.report.text import line
from breakeven.units import ABSENT, count, duration, ratio

GAP = 2
"""Columns between those of a table."""
_SPEEDUPS = ("decoding", "interval", "throughput", "its interval", "outcome")
_NARROW = (
    ("decoding", "interval", "throughput", "outcome"),
    ("decoding", "interval", "outcome"),
)
_LAYOUTS = (
    ("tokens/step", "acceptance", "draft share", *_SPEEDUPS),
    ("tokens/step", *_SPEEDUPS),
    ("tokens/step", *_NARROW[0]),
    *_NARROW,
)
"""Columns of the table of settings: the first that fit are shown."""


def print_forecast(forecast: Forecast, console: Console, report_path: str | None = None) -> None:
    """The recommendation, the figures it rests on, and all that qualifies them; the next command ends it."""
    say(console, words.record_sentence(forecast), "bold", wrap=False)
    console.print()
    say(console, line(forecast.recommendation, 2000), "bold")
    _print_settings(forecast, console)
    _print_by_concurrency(forecast, console)
    _print_categories(forecast, console)
    _print_limits(forecast, console)
    _print_learned(forecast, console)
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
    names = [f"{figures.MARK if one.recommended else ''}{name}" for one, name in _named(shown)]
    _print_table(_title(shown, "drafter"), names, [_cells(one) for one in shown], _LAYOUTS, console)
    said = [f"{figures.MARK}is recommended."] if any(one.recommended for one in shown) else []
    said += ["k=a…b came to the same."] if any("…" in one.settings for one in shown) else []
    said += [words for words in (figures.tried(forecast),) if words]
    said += (
        [f"{count(further, 'further setting')}: --html, --json."]
        if (further := _left(forecast, shown))
        else []
    )
    say(console, " ".join(said), "dim")


def _left(forecast: Forecast, shown: Sequence[Setting]) -> int:
    return len(figures.ranked(forecast)) - len(shown)


def _print_by_concurrency(forecast: Forecast, console: Console) -> None:
    shown, best = figures.by_concurrency(forecast), forecast.best
    if best is None or len(shown) < 2:
        return
    console.print()
    named, cells = [name for _, name in _named(shown)], [_cells(one) for one in shown]
    layouts, of_one = (_SPEEDUPS, *_NARROW), _title(shown, "")
    if len(set(named)) == 1:
        say(console, f"{words.row_words(forecast, best)}, by concurrency:")
        first, levels = "concurrency", [str(one.concurrency) for one in shown]
    else:
        first = f"concurrency: {of_one or 'drafter'}"
        levels = [f"{one.concurrency}: {name}" for one, name in zip(shown, named, strict=True)]
    _print_table(first, levels, cells, layouts, console)


def _title(shown: Sequence[Setting], otherwise: str) -> str:
    """The drafter, where all are of one."""
    drafters = {one.drafter for one in shown}
    return drafters.pop() if len(drafters) == 1 else otherwise


def _named(shown: Sequence[Setting]) -> Iterator[tuple[Setting, str]]:
    """Each with its name, the drafter left out where all are of one."""
    of_one = bool(_title(shown, ""))
    for one in shown:
        yield one, (one.settings if of_one and one.settings else f"{one.drafter} {one.settings}".rstrip())


def _cells(one: Setting) -> dict[str, str]:
    """By column."""
    return {
        "tokens/step": one.tokens_per_step,
        "acceptance": one.acceptance,
        "draft share": one.draft_share,
        "decoding": one.decoding.estimate,
        "interval": one.decoding.interval,
        "throughput": one.throughput.estimate,
        "its interval": one.throughput.interval,
        "outcome": one.outcome,
    }


def _print_table(
    first: str,
    names: Sequence[str],
    cells: Sequence[Mapping[str, str]],
    layouts: Sequence[tuple[str, ...]],
    console: Console,
) -> None:
    """In the first layout that fits; in none, a paragraph for each row."""
    for layout in layouts:
        rows = {name: tuple(row[key] for key in layout) for name, row in zip(names, cells, strict=True)}
        if _fits(first, layout, rows, console):
            break
    print_grid(first, layout, rows, console)


def _fits(first: str, headers: Sequence[str], rows: Mapping[str, tuple[str, ...]], console: Console) -> bool:
    """Whether every cell of the table is shown whole, names included."""
    widths = [max(map(len, column)) for column in zip(headers, *rows.values(), strict=True)]
    return max(map(len, (first, *rows))) + sum(widths) + GAP * len(widths) <= console.width


def _print_categories(forecast: Forecast, console: Console) -> None:
    row, shown = forecast.best, figures.categories(forecast)
    if row is None or not shown:
        return
    console.print()
    say(console, f"{words.row_words(forecast, row)} at concurrency {forecast.concurrency}, by category:")
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
        say(console, f"Oracle, which is always right, decoding at concurrency {level}: {', '.join(bounds)}.")


def _print_learned(forecast: Forecast, console: Console) -> None:
    """A line beside a record; without one the whole table, as that is the answer."""
    if said := words.learned_sentence(forecast):
        console.print()
        say(console, said)
        return
    shown = figures.needed(forecast)
    if not shown:
        return
    console.print()
    drafter, level = line(forecast.needed_for, 60), forecast.concurrency
    say(console, f"Acceptance length that {drafter} needs at concurrency {level}, by decode speedup:")
    headers = (*map(ratio, TARGETS), "published")
    print_grid("k", headers, {one.k: (*one.lengths, one.published) for one in shown}, console)
    say(console, f"{ABSENT} is above k + 1, or not published; sources of those that are: --json", "dim")


def _print_end(forecast: Forecast, report_path: str | None, console: Console) -> None:
    if forecast.rows:
        say(console, words.IN_SHORT, "dim")
    say(console, f"Took {duration(forecast.elapsed_s)}.")
    if report_path is not None:
        say(console, f"Report: {line(report_path, 500)}", wrap=False)
    print_commands(forecast.next_commands, console)
