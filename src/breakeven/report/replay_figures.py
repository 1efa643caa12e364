"""The tables of a replay and of a sweep, formatted once, so that terminal and page say the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breakeven.acceptance.record import DECILES, Acceptance
from breakeven.replay.records import Sweep, SweepRow
from breakeven.report.replay_json import quadruple, ranks_by_acceptance
from breakeven.report.replay_words import decimal, per_step, settings_words
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


def positions(total: Acceptance) -> list[Position]:
    """By position in the draft; none where nothing was drafted."""
    by_draft = total.histogram.sum(axis=1)
    so_long = by_draft[::-1].cumsum()[::-1][1:]
    accepted = total.counters.accepted_per_position or ()
    return [
        Position(f"{index + 1}", f"{drafted:,}", f"{taken:,}", share(taken / drafted) if drafted else ABSENT)
        for index, (drafted, taken) in enumerate(
            zip(so_long.tolist(), _padded(accepted, len(so_long)), strict=True)
        )
    ]


def _padded(values: tuple[int, ...], length: int) -> list[int]:
    return [*values, *[0] * length][:length]


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
    told_apart = total.parts if all(counts.any() for counts in total.parts.values()) else {}
    named = [*zip(tenths, total.deciles, strict=True), *told_apart.items()]
    return [_part(name, counts) for name, counts in named]


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
    """Those in which its drafter's rows differ."""
    everything: str
    """All of its settings."""
    flags: str
    tokens_per_step: str
    acceptance: str
    drafted_per_step: str
    draft_share: str
    pareto: bool
    engine: str


def settings(sweep: Sweep) -> list[Setting]:
    """All rows, best first by tokens per step."""
    differing = {name: varying(rows) for name, rows in by_drafter(sweep).items()}
    ranks = ranks_by_acceptance(sweep.rows)
    return [
        _setting(place, ranks[place - 1], row, differing[row.drafter])
        for place, row in enumerate(sweep.rows, 1)
    ]


def _setting(place: int, rank: int, row: SweepRow, differing: set[str]) -> Setting:
    counters = row.counters
    return Setting(
        place,
        rank,
        line(row.drafter, 60),
        settings_words(row.settings, differing),
        settings_words(row.settings),
        line(row.flags, 1000),
        decimal(row.tokens_per_step),
        share(counters.acceptance_rate),
        per_step(counters.drafted_tokens, counters),
        share(counters.draft_share),
        row.pareto,
        line(row.engine, 60),
    )


def best_sentences(sweep: Sweep, table: list[Setting]) -> list[str]:
    """A sweep's answer: its best by tokens per step, by acceptance rate, and on the record's engine."""
    best, accurate = table[0], min(table, key=lambda row: row.rank)
    sentences = [
        f"{count(len(table), 'setting')}; most tokens per step: {best.tokens_per_step} with {best.drafter} "
        f"{best.settings}, which drafts in {best.draft_share} of the steps and has {best.acceptance} of the "
        "drafted tokens accepted.",
        f"Highest acceptance rate: {accurate.acceptance} with {accurate.drafter} {accurate.settings}, at "
        f"{accurate.tokens_per_step} tokens per step and a draft share of {accurate.draft_share}.",
    ]
    own = sweep.best_of_engine
    if own is not None:
        row = table[sweep.rows.index(own)]
        sentences.append(
            f"On {row.engine}, which served this record: {row.tokens_per_step} with {row.drafter} "
            f"{row.settings} (draft share {row.draft_share}, acceptance {row.acceptance})."
        )
    return sentences


def by_drafter(sweep: Sweep) -> dict[str, list[SweepRow]]:
    """Each drafter's rows, in the order of their best."""
    found: dict[str, list[SweepRow]] = {}
    for row in sweep.rows:
        found.setdefault(row.drafter, []).append(row)
    return found


def varying(rows: list[SweepRow]) -> set[str]:
    """Names of the settings in which rows of one drafter differ; k and the n-grams where none does."""
    names = dict.fromkeys(name for row in rows for name in row.settings)
    found = {
        name for name in names if any(row.settings.get(name) != rows[0].settings.get(name) for row in rows)
    }
    return found or {"k", "n", "min_n", "max_n"} & set(names)


def shortlist(table: list[Setting]) -> Iterator[Setting]:
    """The best rows, then the best of each drafter that is not among them."""
    seen: set[str] = set()
    for row in table:
        if row.place <= BEST_ROWS or row.drafter not in seen:
            yield row
        seen.add(row.drafter)
