"""Stacked bars of seconds, one under the other, as positions: per cent of the box. A template draws them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from breakeven.interval import Interval
from breakeven.report.svg import Linear, Tick
from breakeven.units import milliseconds

LETTERS = "abcdefghijklmnopqrstuvwxyz"
NOTHING_S = 1e-9
"""A part that takes less is not drawn."""
PARTS = ("part", "added")
LEAST_LETTERED = 2.2
"""Per cent: a narrower piece has no room for its letter."""
PART_NAMES = {
    "weights": "weights",
    "experts": "experts",
    "kv": "KV cache",
    "arithmetic": "arithmetic",
    "all_reduce": "AllReduce",
    "overhead": "overhead",
    "rest": "rest, not explained by the model",
    "step": "whole step, not taken apart",
}
"""Words for the parts of StepCost.parts."""


Kind = Literal["part", "added", "whole", "left"]
"""A part of a plain step; what verification adds to it, drawn stronger; a time that is not taken apart; and
one left over. The last two need no legend, as their bar's label says what they are."""


@dataclass(frozen=True, slots=True)
class Piece:
    """From one second to another on a bar."""

    name: str
    start_s: float
    end_s: float
    kind: Kind = "part"


@dataclass(frozen=True, slots=True)
class Bar:
    label: str
    pieces: tuple[Piece, ...]
    text: str
    """The bar in words."""
    value: str = ""
    """Beside the bar."""
    interval: Interval | None = None
    """Seconds, as a whisker."""
    hatched: tuple[float, float] | None = None
    """Seconds between which the truth lies, whoever knows where."""


@dataclass(frozen=True, slots=True)
class DrawnPiece:
    x: float
    width: float
    colour: int
    letter: str
    """Of its part in the legend; empty where it has none, or the piece is too narrow for it."""
    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class DrawnBar:
    label: str
    pieces: tuple[DrawnPiece, ...]
    text: str
    value: str
    whisker: tuple[float, float, float] | None
    """Low, estimate, high."""
    hatched: tuple[float, float] | None
    """Left and right end."""


@dataclass(frozen=True, slots=True)
class Bars:
    across: tuple[Tick, ...]
    """Milliseconds."""
    bars: tuple[DrawnBar, ...]
    legend: tuple[tuple[str, str, int], ...]
    """Letter, part, colour."""
    line: float
    """Upright: where the plain step ends."""
    text: str
    """The plot in words."""


def drawn_bars(bars: Sequence[Bar], plain_s: float, text: str) -> Bars:
    """On one axis from 0, or from the least value below it, to the greatest."""
    across = Linear(*_reach(bars, plain_s))
    pieces = [piece for bar in bars for piece in bar.pieces]
    names = list(dict.fromkeys(piece.name for piece in pieces if piece.kind in PARTS))
    return Bars(
        tuple(Tick(tick.value, tick.position, tick.label.replace("-", "−")) for tick in _ms(across).ticks(8)),
        tuple(_bar(bar, names, across) for bar in bars),
        tuple((LETTERS[place % 26], part_words(name), place % 8) for place, name in enumerate(names)),
        across(plain_s),
        text,
    )


def part_words(name: str) -> str:
    """A part's name for readers; one that is not known as it is."""
    return PART_NAMES.get(name, name.replace("_", " "))


def _reach(bars: Sequence[Bar], plain_s: float) -> tuple[float, float]:
    ends = [plain_s, 0.0]
    for bar in bars:
        ends += [end for piece in bar.pieces for end in (piece.start_s, piece.end_s)]
        ends += [bar.interval.low, bar.interval.high] if bar.interval else []
        ends += bar.hatched or ()
    low, high = min(ends), max(ends)
    margin = 0.03 * (high - low)
    return (low - margin if low < 0 else 0.0), high + margin


def _ms(across: Linear) -> Linear:
    return Linear(across.low * 1e3, across.high * 1e3)


def _bar(bar: Bar, names: list[str], across: Linear) -> DrawnBar:
    interval, hatched = bar.interval, bar.hatched
    return DrawnBar(
        bar.label,
        tuple(_piece(piece, names, across) for piece in bar.pieces),
        bar.text,
        bar.value,
        (across(interval.low), across(interval.estimate), across(interval.high)) if interval else None,
        (across(hatched[0]), across(hatched[1])) if hatched else None,
    )


def _piece(piece: Piece, names: Sequence[str], across: Linear) -> DrawnPiece:
    left, right = sorted((across(piece.start_s), across(piece.end_s)))
    width = round(right - left, 3)
    place = names.index(piece.name) if piece.kind in PARTS else 0
    seconds = piece.end_s - piece.start_s
    ms = signed_ms(seconds) if piece.kind == "added" else milliseconds(seconds)
    return DrawnPiece(
        left,
        width,
        place % 8,
        LETTERS[place % 26] if piece.kind in PARTS and width >= LEAST_LETTERED else "",
        piece.kind,
        f"{part_words(piece.name)}: {ms} ms",
    )


def stacked(plain: Mapping[str, float], added: Mapping[str, float]) -> Iterator[Piece]:
    """Parts of a plain step end to end, then what is added to each; pieces of nothing are left out."""
    at = 0.0
    kinds: tuple[tuple[Kind, Mapping[str, float]], ...] = (("part", plain), ("added", added))
    for kind, parts in kinds:
        for name, seconds in parts.items():
            if abs(seconds) > NOTHING_S:
                yield Piece(name, at, at + seconds, kind)
                at += seconds


def interval_ms(value: Interval) -> str:
    """`6.12 (5.90 to 6.40)`, without the unit."""
    low, high = milliseconds(value.low), milliseconds(value.high)
    return f"{milliseconds(value.estimate)} ({low} to {high})"


def signed_ms(seconds: float) -> str:
    """`+0.33`, without the unit."""
    return f"{'−' if seconds < 0 else '+'}{milliseconds(abs(seconds))}"
