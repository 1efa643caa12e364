"""A trial or a run on a terminal, readable without colour and at 60 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from breakeven.acceptance import counters
from breakeven.latency import RunSummary
from breakeven.report import figures, runs
from breakeven.report.figures import Absent, Row
from breakeven.report.text import line
from breakeven.trace.run import Run
from breakeven.trial.result import TrialResult
from breakeven.units import ABSENT, count, duration, milliseconds, rate, share

TABLE_MIN_COLUMNS = 80
CATEGORY_MIN_COLUMNS = 100
NAME_COLUMNS = 14
"""At least, of the first column of a table."""
OPEN = ("…", "URL", "FILE", "MODEL")
"""What the reader fills in, in commands."""
_VERDICT_STYLES = {"faster": "bold green", "slower": "bold red", "refused": "bold magenta"}
_SIGN_STYLES = {1: "green", 0: "", -1: "red"}


def print_trial(result: TrialResult, console: Console, report: str | None = None) -> None:
    """The table, the verdict, and everything that qualifies it; `report` is where the page was written."""
    _heading(result, console)
    table = figures.rows(result)
    total = figures.total(result)
    if table:
        console.print()
        _print_table(table, total, result.comparison.confidence, console)
        _print_definition(table, console)
    _print_verdict(result, console)
    _print_qualifiers(result, console)
    say(console, f"Run folder: {line(str(result.run_dir), 500)}", wrap=False)
    if report is not None:
        say(console, f"Report: {line(report, 500)}", wrap=False)


def say(console: Console, words: str, style: str = "", wrap: bool = True) -> None:
    """One paragraph; no markup is read in it. What a reader copies is not wrapped."""
    console.print(Text(words, style=style), soft_wrap=not wrap)


def print_commands(commands: Sequence[str], console: Console) -> None:
    """What to type next, and that something is to be filled in, where it is."""
    for command in commands:
        say(console, f"Next: {line(command, 1000)}", wrap=False)
    if any(word in command for command in commands for word in OPEN):
        say(console, "(… are your own options; name what stands in capitals)", "dim")


def _heading(result: TrialResult, console: Console) -> None:
    say(console, f"{line(result.model)}, {line(result.workload)}", "bold")
    for side in (result.baseline, result.candidate):
        say(console, f"{side.name + ':':<11}{line(side.description, 300)}")


def _print_table(table: list[Row], total: Row | None, confidence: float, console: Console) -> None:
    everything = table if total is None else [*table, total]
    if console.width < TABLE_MIN_COLUMNS:
        for row in everything:
            _print_stacked(row, console)
        return
    console.print(_wide_table(table, total, confidence, console.width >= CATEGORY_MIN_COLUMNS))


def _wide_table(table: list[Row], total: Row | None, confidence: float, with_category: bool) -> Table:
    grid = new_grid("prompt", ())
    if with_category:
        grid.add_column("category", no_wrap=True, overflow="ellipsis")
    headers = ("baseline\ntok/s", "candidate\ntok/s", "change", f"{share(confidence)}\ninterval")
    for header in (*headers, "accept-\nance", "draft\nshare"):
        grid.add_column(header, justify="right", no_wrap=True)
    for row in table:
        grid.add_row(*_cells(row, with_category), style="")
    if total is not None:
        grid.add_section()
        grid.add_row(*_cells(total, with_category), style="bold")
    return grid


def _cells(row: Row, with_category: bool) -> list[Text]:
    names = [row.prompt, row.category] if with_category else [row.prompt]
    plain = [Text(word) for word in (*names, row.baseline, row.candidate)]
    changed = [Text(row.change, style=_SIGN_STYLES[row.sign]), Text(row.interval)]
    return [*plain, *changed, Text(_word(row.acceptance)), Text(_word(row.draft_share))]


def _word(cell: str | Absent) -> str:
    return cell.text if isinstance(cell, Absent) else cell


def _print_stacked(row: Row, console: Console) -> None:
    category = f" ({row.category})" if row.category else ""
    say(console, f"{row.prompt}{category}", "bold")
    say(console, f"  {row.baseline} → {row.candidate} tok/s")
    changed = Text("  ").append(row.change, style=_SIGN_STYLES[row.sign]).append(f" {row.interval}")
    console.print(changed)
    say(console, f"  acceptance {_word(row.acceptance)}, draft share {_word(row.draft_share)}")


def _print_definition(table: list[Row], console: Console) -> None:
    console.print()
    texts = counters.DEFINITIONS
    say(console, "tok/s = 1 / TPOT; change = baseline TPOT / candidate TPOT − 1", "dim")
    say(console, f"acceptance = {texts['acceptance_rate']}; draft share = {texts['draft_share']}", "dim")
    for reason in figures.absences(table):
        say(console, f"{ABSENT} {reason}", "dim")


def _print_verdict(result: TrialResult, console: Console) -> None:
    verdict = result.verdict
    console.print()
    say(console, figures.verdict_sentence(verdict), _VERDICT_STYLES.get(verdict.outcome, "bold yellow"))
    if verdict.next_command is not None:
        say(console, f"Next: {line(verdict.next_command, 1000)}", wrap=False)
        if "…" in verdict.next_command:
            say(console, "(… are the other options of this trial)", "dim")
    console.print()


def _print_qualifiers(result: TrialResult, console: Console) -> None:
    say(console, figures.lossless_sentence(result.comparison.lossless))
    say(console, figures.stopped_sentence(result))
    say(console, _cost(result))
    for note in dict.fromkeys((*result.confounders, *result.comparison.warnings)):
        say(console, f"! {line(note, 1000)}", "yellow")


def _cost(result: TrialResult) -> str:
    reloads = ", ".join(
        f"{side.name} {duration(side.reload_s) if side.reload_s is not None else side.reload_absent}"
        for side in (result.baseline, result.candidate)
    )
    took = "" if result.elapsed_s is None else f"Took {duration(result.elapsed_s)}; "
    return f"{took}reload: {reloads}."


def print_run(run: Run, summary: RunSummary, console: Console) -> None:
    """Latencies, tokens, speeds and speculation of one run, and whether its client kept up."""
    failed = f", {count(summary.errors, 'error')}" if summary.errors else ""
    title = f"{line(str(run.path), 500)}: {count(summary.requests, 'request')}{failed}"
    say(console, title, "bold", wrap=False)
    say(console, line(runs.asked(run.meta), 500))
    console.print()
    _print_latencies(summary, console)
    for sentence in runs.sentences(summary, run.meta.counters):
        say(console, line(sentence, 1000))
    _print_categories(run, console)
    console.print()
    _print_self_check(run.meta.self_check, console)
    for warning in runs.warnings(summary):
        say(console, f"! {line(warning, 1000)}", "yellow")


def _print_latencies(summary: RunSummary, console: Console) -> None:
    print_grid("ms", ("mean", "p50", "p90", "p99", "n"), runs.latencies(summary), console)
    for reason in runs.absences(summary):
        say(console, f"{ABSENT} {line(reason, 300)}", "dim")
    console.print()


def print_grid(
    first: str, others: Sequence[str], rows: Mapping[str, tuple[str, ...]], console: Console
) -> None:
    """A table; where its numbers would be cut, a paragraph for each row, as a cut number is a wrong one."""
    widths = [max(map(len, column)) for column in zip(others, *rows.values(), strict=True)]
    if NAME_COLUMNS + sum(widths) + 2 * len(widths) > console.width:
        for name, cells in rows.items():
            said = ", ".join(f"{header} {cell}" for header, cell in zip(others, cells, strict=True))
            say(console, f"{name} ({first}): {said}")
        return
    grid = new_grid(first, others)
    for name, cells in rows.items():
        grid.add_row(Text(name), *(Text(cell) for cell in cells))
    console.print(grid)


def new_grid(first: str, others: Sequence[str]) -> Table:
    """A table without rows: names at the left, numbers under each other."""
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    grid.add_column(first, no_wrap=True, overflow="ellipsis", min_width=NAME_COLUMNS)
    for header in others:
        grid.add_column(header, justify="right", no_wrap=True)
    return grid


def _print_categories(run: Run, console: Console) -> None:
    categories = runs.by_category(run.traces())
    if len(categories) < 2:
        return
    rows = {
        line(name, 30): (f"{one.requests:,}", milliseconds(one.tpot_s), rate(one.tokens_per_s))
        for name, one in categories.items()
    }
    console.print()
    print_grid("category", ("requests", "TPOT ms", "tok/s"), rows, console)
    say(console, "TPOT is the median; tok/s is the decode speed", "dim")


def _print_self_check(check: Mapping[str, Any] | None, console: Console) -> None:
    if check is None:
        say(console, "Self-check: none, as the run did not come to its end", "yellow")
        return
    lag_ms = (check.get("event_loop_lag_ms") or {}).get("p99")
    lag = "" if lag_ms is None else f" (event loop lag p99 {lag_ms:.1f} ms)"
    if check.get("ok"):
        say(console, f"Self-check: passed{lag}")
        return
    say(console, f"Self-check: FAILED{lag}; this run is void", "bold red")
    for reason in check.get("reasons") or ():
        say(console, f"! {line(str(reason), 1000)}", "red")
