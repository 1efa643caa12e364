"""What is watched on a terminal that is written over, or as one line for each server and interval."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Literal

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from breakeven.report import watch_words
from breakeven.report.terminal import say
from breakeven.report.watch_words import BY_POSITION, TITLES, Row
from breakeven.units import duration
from breakeven.watch.state import PER_POSITION, ServerState

TABLE_COLUMNS = 140
"""From which all figures of several servers fit into one row each, …"""
BESIDE_COLUMNS = 96
"""… and those of one have their definitions beside them."""
_STYLES = {
    "pays": "bold green",
    "costs": "bold red",
    "undecided": "bold yellow",
    "not derivable": "",
    "no answer": "bold magenta",
}


def view(states: Sequence[ServerState], asked: str, width: int, at: str) -> RenderableType:
    """The whole picture. `asked` says how it is watched, `at` when this was drawn."""
    rows = [watch_words.row(state) for state in states]
    beside = len(rows) == 1 and width >= BESIDE_COLUMNS
    terms = () if beside else watch_words.definitions(states)
    return Group(
        Text(f"breakeven watch, {asked}, {at}", style="bold"),
        Text(""),
        *([_block(rows[0], with_definitions=True)] if beside else _several(rows, width)),
        *(Text(f"! {note}", style="yellow") for note in watch_words.notes(states)),
        *(Text(term, style="dim") for term in terms),
    )


def _several(rows: Sequence[Row], width: int) -> list[RenderableType]:
    if width < TABLE_COLUMNS or len(rows) == 1:
        return [_block(one) for one in rows]
    said = [(one.server, detail) for one in rows for detail in (*_labelled(one.positions), *one.details)]
    details = [Text(f"{server}: {detail}") for server, detail in said]
    return [_table(rows), *details, Text("")]


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("server", overflow="fold")
    for title in TITLES.values():
        justify: Literal["left", "right"] = "left" if title == "speculation" else "right"
        table.add_column(title, justify=justify, no_wrap=True)
    for one in rows:
        table.add_row(Text(one.server), *(_styled(one, name) for name in TITLES))
    return table


def _labelled(positions: str) -> tuple[str, ...]:
    return (f"{BY_POSITION} {positions}",) if positions else ()


def _block(one: Row, with_definitions: bool = False) -> RenderableType:
    """A figure in each line."""
    figures = [(title, _styled(one, name), watch_words.definition(name)) for name, title in TITLES.items()]
    if one.positions:
        figures.append((BY_POSITION, Text(one.positions), watch_words.definition(PER_POSITION)))
    grid = Table.grid(padding=(0, 2))
    for title, figure, text in figures:
        grid.add_row(Text(title), figure, *([Text(text, style="dim")] if with_definitions else []))
    return Group(Text(one.server, style="bold"), grid, *map(Text, one.details), Text(""))


def _styled(one: Row, name: str) -> Text:
    return Text(one.cells[name], style=_STYLES[one.answer] if name == "speculation_speedup" else "")


def asked_words(interval_s: float, window_s: float, calibration: str | None) -> str:
    """How it is watched."""
    by = f", by {calibration}" if calibration else ""
    return f"every {duration(interval_s)}, over the last {duration(window_s)}{by}"


class LiveView:
    """A context in which `show` draws the picture anew over the last one, which stays at the end."""

    def __init__(self, console: Console, asked: str, states: Callable[[], Sequence[ServerState]]) -> None:
        self._console, self._asked, self._states = console, asked, states
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="ellipsis")

    def show(self) -> None:
        at = time.strftime("%H:%M:%S")
        picture = view(self._states(), self._asked, self._console.width, at)
        self._live.update(picture, refresh=True)

    def __enter__(self) -> LiveView:
        self._live.__enter__()
        self.show()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)


def print_lines(states: Sequence[ServerState], console: Console) -> None:
    """One for each server."""
    at = time.strftime("%H:%M:%S")
    for state in states:
        say(console, f"{at} {watch_words.sentence(state)}", wrap=False)


def print_view(states: Sequence[ServerState], console: Console, asked: str) -> None:
    """The picture, once."""
    console.print(view(states, asked, console.width, time.strftime("%H:%M:%S")))
