"""Replay a record with many drafters and settings, and rank them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from breakeven.acceptance.counters import SpecCounters
from breakeven.drafters.base import Drafter, TableDrafter
from breakeven.drafters.tokens import flat
from breakeven.errors import UsageError
from breakeven.replay.batches import Batch, batches
from breakeven.replay.grid import Setting
from breakeven.replay.records import FirstToken, Sweep, SweepRow
from breakeven.replay.run import FIRST, Progress, Task, as_used, is_compiled, warnings_of, workers_for
from breakeven.replay.sources import Source
from breakeven.replay.steps import Steps, is_own, step_through, walk_table
from breakeven.replay.tally import totals
from breakeven.replay.workers import workers

HERE = "drafters that learn from one request for the next were replayed on this machine, not on the cluster"

Size = tuple[int, int]
"""Requests, and tokens of their outputs."""


def sweep_source(
    source: Source,
    grid: Sequence[Setting],
    *,
    first_token: FirstToken = "prefill",  # noqa: S107
    jobs: int | None = None,
    ray: str | None = None,
    progress: Progress = lambda done: None,
) -> Sweep:
    """Replay every setting of the grid; `progress` is told of the requests done, once for each setting.

    Drafters that learn from one request for the next see the record in its order, each setting on one core
    of this machine. Raises as `replay_source` does, and UsageError for an empty grid.
    """
    if not grid:
        raise UsageError("there is nothing to sweep: name a drafter, a k and an n range")
    began = time.monotonic()
    tasks = [Task(name, tuple(settings.items()), FIRST[first_token]) for name, settings in grid]
    drafters = {task: task.make() for task in tasks}
    (requests, output_tokens), counters = _by_batch(source, drafters, jobs, ray, progress)
    counters |= _in_turn(source, (requests, output_tokens), drafters, jobs, lambda: progress(requests))
    emitted = output_tokens - requests * FIRST[first_token]
    if not emitted:
        raise UsageError("every output is one token, which the prefill gives: type --first-token replayed")
    local = (HERE,) if ray and any(drafter.learns for drafter in drafters.values()) else ()
    return Sweep(
        source.origin,
        first_token,
        requests,
        output_tokens,
        ranked([_row(drafters[task], task, counters[task], emitted) for task in tasks]),
        source.skipped,
        (*warnings_of(source, drafters.values()), *local),
        time.monotonic() - began,
    )


Drafters = dict[Task, Drafter[Any]]
Counters = dict[Task, SpecCounters]


def _by_batch(
    source: Source, drafters: Drafters, jobs: int | None, ray: str | None, progress: Progress
) -> tuple[Size, Counters]:
    """The counts of the drafters that learn nothing between requests."""
    tasks = [task for task, drafter in drafters.items() if not drafter.learns]
    threads = all(is_compiled(drafters[task]) for task in tasks)
    requests = output_tokens = 0
    sums: Counters = {}
    for size, rows in workers_for(threads, jobs, ray).map(partial(_batch, tasks), batches(source)):
        requests, output_tokens = requests + size[0], output_tokens + size[1]
        sums = {task: sums[task] + row if task in sums else row for task, row in rows.items()}
        progress(size[0] * len(tasks))
    return (requests, output_tokens), sums


def _batch(tasks: Sequence[Task], batch: Batch) -> tuple[Size, Counters]:
    return size_of(batch), {task: totals(steps) for task, steps in stepped(tasks, batch)}


def stepped(tasks: Sequence[Task], batch: Batch) -> Iterator[tuple[Task, Steps]]:
    """The steps of each task, of drafters that learn nothing between requests; those of one drafter follow
    one another, and share what they can."""
    by_drafter = sorted(tasks, key=lambda task: (task.drafter, task.first))
    for _, of_one in itertools.groupby(by_drafter, lambda task: (task.drafter, task.first)):
        group = list(of_one)
        yield from zip(group, _stepped(group, batch), strict=True)


def _stepped(group: Sequence[Task], batch: Batch) -> Iterator[Steps]:
    """The steps of each setting of one drafter; settings that can share an index do."""
    drafters = [task.make() for task in group]
    first = group[0].first
    cls = type(drafters[0])
    if not issubclass(cls, TableDrafter) or is_own(drafters[0]):
        return (step_through(drafter, batch.tokens, first) for drafter in drafters)
    tables = cls.tables(batch.tokens, [drafter.settings for drafter in drafters])
    return (walk_table(table, batch.tokens, first) for table in tables)


def _in_turn(
    source: Source, size: Size, drafters: Drafters, jobs: int | None, done: Callable[[], None]
) -> Counters:
    """The counts of the drafters that learn: each setting goes through the whole record by itself."""
    tasks = [task for task, drafter in drafters.items() if drafter.learns]
    _compile_once({task.drafter: task for task in tasks}.values())
    found: Counters = {}
    results = workers(jobs, threads=False).map(partial(_whole, source), tasks) if tasks else ()
    for task, (read, counters) in zip(tasks, results, strict=True):
        if read != size:
            raise UsageError(f"{source.origin.path} changed while it was read: sweep a copy that does not")
        found[task] = counters
        done()
    return found


def _compile_once(tasks: Iterable[Task]) -> None:
    """Have the machine code of each drafter on disk before several processes would make it at once."""
    for task in tasks:
        step_through(task.make(), flat([([1, 2, 1], [2, 1, 2, 1])]), first=0)


def _whole(source: Source, task: Task) -> tuple[Size, SpecCounters]:
    drafter = task.make()
    parts = [
        (size_of(batch), totals(step_through(drafter, batch.tokens, task.first))) for batch in batches(source)
    ]
    sizes, counters = zip(*parts, strict=True)
    requests, output_tokens = np.sum(sizes, axis=0).tolist()
    return (requests, output_tokens), sum(counters[1:], counters[0])


def size_of(batch: Batch) -> Size:
    return len(batch.ids), int(batch.tokens.positions[-1])


def _row(drafter: Drafter[Any], task: Task, counters: SpecCounters, emitted: int) -> SweepRow:
    per_step = emitted / (counters.steps or 1)
    return SweepRow(
        task.drafter,
        as_used(drafter),
        drafter.flags(),
        counters,
        per_step,
        drafter.engine,
        drafter.learns,
        pareto=False,
    )


def ranked(rows: Sequence[SweepRow]) -> tuple[SweepRow, ...]:
    """Best first by tokens per step, then by accepted per drafted; those on the Pareto front are marked.

    On it is a row than which no other is better in one of the two and at least as good in the other; of
    equals the first.
    """
    best_rate = -1.0
    result = []
    for row in sorted(rows, key=lambda row: (row.tokens_per_step, _rate(row)), reverse=True):
        result.append(replace(row, pareto=_rate(row) > best_rate))
        best_rate = max(best_rate, _rate(row))
    return tuple(result)


def _rate(row: SweepRow) -> float:
    return row.counters.acceptance_rate or 0.0
