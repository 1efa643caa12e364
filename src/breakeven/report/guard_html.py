"""A simulated guard as one self-contained page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from breakeven.guard.simulate.records import Simulation
from breakeven.report import guard_figures as figures
from breakeven.report import guard_words as words
from breakeven.report.guard_json import guard_json
from breakeven.report.guard_plots import gain_by_epsilon
from breakeven.report.standalone import KeyFigure, render, write_page
from breakeven.report.text import line
from breakeven.units import duration

MAX_FIXED = 200
MAX_CATEGORIES = 100
"""Rows of a table; all are in the JSON."""


def write_guard_html(made: Simulation, path: Path) -> None:
    """Write the page, whole or not at all. Raises StorageError if the disk does not take it."""
    write_page(guard_page(made), path)


def guard_page(made: Simulation) -> str:
    """The page's HTML, with the figures of `guard_json` as data."""
    return render("guard.html.j2", _context(made), guard_json(made))


def _context(made: Simulation) -> dict[str, Any]:
    categories = figures.categories(made)
    return {
        "headline": words.headline(made),
        "record": words.record_sentence(made),
        "sentences": words.sentences(made),
        "commands": [line(command, 1000) for command in made.next_commands],
        "basis": words.basis_sentences(made),
        "notes": words.notes(made),
        "key_figures": list(_key_figures(made)),
        "gain": gain_by_epsilon(made),
        "policies": figures.policies(made),
        "epsilons": figures.by_epsilon(made),
        "fixed": figures.fixed(made, MAX_FIXED),
        "fixed_left_out": max(0, len(made.fixed) - MAX_FIXED - 1),
        "categories": categories[:MAX_CATEGORIES],
        "categories_left_out": max(0, len(categories) - MAX_CATEGORIES),
        "concurrencies": list(figures.by_concurrency(made)),
        "definitions": words.GUARD_DEFINITIONS,
        "took": duration(made.elapsed_s),
    }


def _key_figures(made: Simulation) -> Iterator[KeyFigure]:
    guard = made.guard.speed
    yield KeyFigure("speedup", "Guard", words.times(guard.speedup), figures.guard_name(made))
    yield KeyFigure("worst", "Worst request", words.times(guard.worst.speedup), words.worst_words(made.guard))
    if made.best_fixed is not None:
        best = made.best_fixed
        yield KeyFigure("fixed", "Best fixed", words.times(best.speed.speedup), best.name)
        yield KeyFigure("worst", "Its worst request", words.times(best.speed.worst.speedup))
    yield KeyFigure("test_and_set", "Test-and-set", words.times(made.test_and_set.speed.speedup))
    yield KeyFigure("oracle", "Oracle", words.times(made.oracle.speed.speedup))
