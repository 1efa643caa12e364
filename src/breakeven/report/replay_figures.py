"""The tables of a replay and of a sweep, formatted once, so that terminal and page say the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from breakeven.acceptance.record import DECILES, Acceptance
from breakeven.drafters.naming import ALWAYS, varying
from breakeven.replay.records import Sweep, SweepRow
from breakeven.report.replay_json import quadruple, ranks_by_acceptance
from breakeven.report.replay_words import (
    decimal,
    engine_name,
    per_step,
    settings_words,
    too_little_sentence,
)
from breakeven.report.text import line
from breakeven.units import ABSENT, count, share

BEST_ROWS = 15
"""Of a sweep, shown on a terminal."""


@dataclass(frozen=True, slots=True)
class Position:
    """One position in the draft, counted from 1."""

    name: str
    drafted: str
    """Drafts that were so long."""
    accepted: str
    share: str
    """Of the drafts that were so long."""


def positions(total: Acceptance, most: int) -> list[Position]:
    """By position in the draft, the first `most`; none where nothing was drafted."""
    drafted, _, steps = total.histogram.T
    accepted = total.counters.accepted_per_position or ()
    shown = min(places(total), most)
    so_long = [int(steps[drafted > index].sum()) for index in range(shown)]
    return [
        Position(f"{index + 1}", f"{long:,}", f"{taken:,}", share(taken / long))
        for index, (long, taken) in enumerate(zip(so_long, _padded(accepted, shown), strict=True))
    ]


def places(total: Acceptance) -> int:
    """Tokens of the longest draft."""
    return int(total.histogram[:, 0].max(initial=0))


def _padded(values: tuple[int, ...], length: int) -> list[int]:
    return [*values[:length], *[0] * (length - len(values))]


@dataclass(frozen=True, slots=True)
class Category:
    name: str
    requests: str
    tokens_per_step: str
    acceptance: str
    draft_share: str


def categories(by_category: Mapping[str, Acceptance]) -> list[Category]:
    """In the record's order; none where there is only one, which is the total."""
    if len(by_category) < 2:
        return []
    return [_category(line(name, 40) or "(none)", one) for name, one in by_category.items()]


def _category(name: str, one: Acceptance) -> Category:
    counters, per = one.counters, one.tokens_per_step
    return Category(
        name,
        f"{one.requests:,}",
        decimal(per),
        share(counters.acceptance_rate),
        share(counters.draft_share),
    )


@dataclass(frozen=True, slots=True)
class Part:
    """A tenth of the outputs, or their reasoning, or their answers."""

    name: str
    steps: str
    draft_share: str
    acceptance: str
    accepted_per_step: str
    accepted: float
    """The same as a number; 0 without steps."""


def parts(total: Acceptance) -> list[Part]:
    """Tenths of the output, then reasoning and answer where the record tells them apart."""
    tenths = [f"{index * 100 // DECILES}–{(index + 1) * 100 // DECILES} %" for index in range(DECILES)]
    named = [*zip(tenths, total.deciles, strict=True), *_told_apart(total).items()]
    return [_part(name, counts) for name, counts in named]


def parts_sentence(total: Acceptance) -> str | None:
    """That reasoning and answer are of fewer steps than all; None where they are of all, or not shown."""
    told = sum(int(counts[0]) for counts in _told_apart(total).values())
    steps = total.counters.steps or 0
    if told in (0, steps):
        return None
    return f"Reasoning and answer are told apart in {told:,} of {count(steps, 'step')} only."


def _told_apart(total: Acceptance) -> Mapping[str, NDArray[np.int64]]:
    return total.parts if all(counts.any() for counts in total.parts.values()) else {}


def _part(name: str, counts: NDArray[np.int64]) -> Part:
    counters = quadruple(counts)
    accepted = counters.accepted_tokens or 0
    return Part(
        name,
        f"{counters.steps:,}",
        share(counters.draft_share),
        share(counters.acceptance_rate),
        per_step(accepted, counters),
        accepted / counters.steps if counters.steps else 0.0,
    )


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of a sweep."""

    place: int
    """By tokens per step, from 1."""
    rank: int
    """By acceptance rate, from 1."""
    drafter: str
    settings: str
    """k, the n-grams, and those in which its drafter's rows differ."""
    everything: str
    """All of its settings."""
    flags: str
    tokens_per_step: str
    acceptance: str
    drafted_per_step: str
    draft_share: str
    pareto: bool
    engine: str
    figures: tuple[float | None, ...]
    """Tokens per step, acceptance rate and draft share, not rounded."""
    alike: int = 0
    """Further settings of its drafter with the same figures, where they are folded into this row."""


def settings(sweep: Sweep) -> list[Setting]:
    """All rows, best first by tokens per step."""
    shown = {name: varying(row.settings for row in rows) | ALWAYS for name, rows in by_drafter(sweep).items()}
    ranks = ranks_by_acceptance(sweep.rows)
    return [
        _setting(place, ranks[place - 1], row, shown[row.drafter]) for place, row in enumerate(sweep.rows, 1)
    ]


def _setting(place: int, rank: int, row: SweepRow, shown: set[str]) -> Setting:
    counters = row.counters
    return Setting(
        place,
        rank,
        line(row.drafter, 60),
        settings_words(row.settings, shown),
        settings_words(row.settings),
        line(row.flags, 1000),
        decimal(row.tokens_per_step),
        share(counters.acceptance_rate),
        per_step(counters.drafted_tokens, counters),
        share(counters.draft_share),
        row.pareto,
        engine_name(row.engine),
        (row.tokens_per_step, counters.acceptance_rate, counters.draft_share),
    )


def best_sentences(sweep: Sweep, table: list[Setting]) -> list[str]:
    """A sweep's answer: its best by tokens per step, by acceptance rate, and on the record's engine."""
    accurate = min(table, key=lambda row: row.rank)
    settings_count = count(len(table), "setting")
    if accurate.acceptance == ABSENT:
        return [f"{settings_count}; none of them drafted anything."]
    found = [
        f"{settings_count}; {_most(table[0])}",
        f"Highest acceptance rate: {accurate.acceptance} with {_named(accurate)}, at "
        f"{accurate.tokens_per_step} tokens per step and a draft share of {accurate.draft_share}.",
    ]
    own, too_little = sweep.best_of_engine, too_little_sentence(sweep)
    if too_little:
        found.append(too_little)
    elif own is not None:
        found.append(_on_engine(table[sweep.rows.index(own)]))
    return found


def _most(best: Setting) -> str:
    return (
        f"most tokens per step: {best.tokens_per_step} with {_named(best)}, which drafts in "
        f"{best.draft_share} of the steps and has {best.acceptance} of the drafted tokens accepted."
    )


def _on_engine(row: Setting) -> str:
    return (
        f"On {row.engine}, which served this record: {row.tokens_per_step} with {_named(row)} "
        f"(draft share {row.draft_share}, acceptance {row.acceptance})."
    )


def _named(row: Setting) -> str:
    return f"{row.drafter} {row.settings}".rstrip()


def by_drafter(sweep: Sweep) -> dict[str, list[SweepRow]]:
    """Each drafter's rows, in the order of their best."""
    found: dict[str, list[SweepRow]] = {}
    for row in sweep.rows:
        found.setdefault(row.drafter, []).append(row)
    return found


def shortlist(table: list[Setting]) -> Iterator[Setting]:
    """The best rows, then the best of each drafter that is not among them; rows alike are folded."""
    seen: set[str] = set()
    for index, row in enumerate(_folded(table)):
        if index < BEST_ROWS or row.drafter not in seen:
            yield row
        seen.add(row.drafter)


def _folded(table: list[Setting]) -> list[Setting]:
    """The first of those rows of a drafter that have the same figures."""
    found: dict[tuple[str, tuple[float | None, ...]], Setting] = {}
    for row in table:
        same = (row.drafter, row.figures)
        found[same] = replace(found[same], alike=found[same].alike + 1) if same in found else row
    return list(found.values())
