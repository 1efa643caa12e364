"""The tables of a simulated guard, formatted once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from breakeven.guard.simulate.records import Played, Simulation, Speed
from breakeven.report.guard_words import epsilon_words, of_best_fixed, times
from breakeven.report.text import line
from breakeven.units import ABSENT, share

BEST_FIXED = 5
"""Fixed settings on a terminal, and the slowest."""


@dataclass(frozen=True, slots=True)
class PolicyRow:
    name: str
    speedup: str
    of_best_fixed: str
    total: str
    worst: str
    worst_id: str
    draft_share: str
    acceptance: str


@dataclass(frozen=True, slots=True)
class CategoryRow:
    name: str
    guard: str
    worst: str
    """Request of the guard."""
    best_fixed: str
    """The setting that is best on the whole record, …"""
    best_fixed_here: str
    """… and the one that is best in this category, with its name."""
    best_here: str
    test_and_set: str
    oracle: str


@dataclass(frozen=True, slots=True)
class ConcurrencyRow:
    concurrency: str
    guard: str
    worst: str
    total: str
    drafted: str
    """Draft tokens that the guard had verified, in all."""
    best_fixed: str
    fixed_worst: str
    name: str
    """Of the best fixed setting there."""


def guard_name(made: Simulation) -> str:
    """With its ε."""
    return f"guard, ε {epsilon_words(made.settings.epsilon)}"


def policies(made: Simulation, named: bool = True) -> list[PolicyRow]:
    """The guard, the best fixed setting (`named`: and which it is), the others."""
    rows = [_row(guard_name(made), made.guard, made)]
    if made.best_fixed is not None:
        name = f"best fixed: {made.best_fixed.name}" if named else "best fixed"
        rows.append(_row(name, made.best_fixed, made))
    rows += [_row(one.name, one, made) for one in (made.test_and_set, made.oracle)]
    return [*rows, PolicyRow("no speculation", times(1.0), ABSENT, times(1.0), times(1.0), *[ABSENT] * 3)]


def fixed(made: Simulation, most: int) -> list[PolicyRow]:
    """The best `most`, and the slowest."""
    shown = made.fixed if len(made.fixed) <= most + 1 else (*made.fixed[:most], made.fixed[-1])
    return [_row(one.name, one, made) for one in shown]


def by_epsilon(made: Simulation) -> list[PolicyRow]:
    """The guard with each ε."""
    return [_row(epsilon_words(one.epsilon), one.guard, made) for one in made.by_epsilon]


def _row(name: str, one: Played, made: Simulation) -> PolicyRow:
    against = of_best_fixed(made, one.speed)
    return PolicyRow(
        line(name, 200),
        times(one.speed.speedup),
        ABSENT if against is None else f"{against:.3f}",
        times(one.speed.total),
        times(one.speed.worst.speedup),
        line(one.speed.worst.id, 40),
        share(one.counters.draft_share),
        share(one.counters.acceptance_rate),
    )


def categories(made: Simulation) -> list[CategoryRow]:
    """None where there is only one, which is the total."""
    names = list(made.guard.by_category)
    return [_category(name, made) for name in names] if len(names) > 1 else []


def _category(name: str, made: Simulation) -> CategoryRow:
    whole, here = made.best_fixed, made.best_fixed_of(name)
    return CategoryRow(
        line(name, 40) or "(none)",
        times(made.guard.by_category[name].speedup),
        times(made.guard.by_category[name].worst.speedup),
        _maybe(None if whole is None else whole.by_category[name]),
        _maybe(None if here is None else here.by_category[name]),
        ABSENT if here is None else line(here.name, 200),
        times(made.test_and_set.by_category[name].speedup),
        times(made.oracle.by_category[name].speedup),
    )


def _maybe(speed: Speed | None) -> str:
    return ABSENT if speed is None else times(speed.speedup)


def by_concurrency(made: Simulation) -> Iterator[ConcurrencyRow]:
    """Of each concurrency above 1."""
    for one in made.by_concurrency:
        best = one.best_fixed
        yield ConcurrencyRow(
            str(one.concurrency),
            times(one.guard.speed.speedup),
            times(one.guard.speed.worst.speedup),
            times(one.guard.speed.total),
            f"{one.guard.counters.drafted_tokens or 0:,}",
            _maybe(None if best is None else best.speed),
            ABSENT if best is None else times(best.speed.worst.speedup),
            ABSENT if best is None else line(best.name, 200),
        )
