"""Replay a record with one drafter: count what it would have drafted, and how much of it accepted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from breakeven.acceptance.record import Acceptance, nothing
from breakeven.drafters.base import Drafter, TableDrafter
from breakeven.drafters.compiler import COMPILED
from breakeven.drafters.recorded import Recorded, no_source
from breakeven.drafters.registry import make_drafter
from breakeven.errors import UsageError
from breakeven.replay.batches import Batch, batches
from breakeven.replay.cluster import Cluster
from breakeven.replay.records import FirstToken, Replay, RequestReplay
from breakeven.replay.sources import Source
from breakeven.replay.steps import step_through, table_of, walk_table
from breakeven.replay.tally import Tally, tally
from breakeven.replay.workers import Workers, workers

FIRST: Mapping[FirstToken, int] = {"prefill": 1, "replayed": 0}
"""Output tokens that come before the first step."""

SLOW = (
    "its loops run as plain Python, about 100 times slower (some 0.2 M tokens a second) than compiled: type  "
    "pip install 'breakeven[replay]'"
)

Progress = Callable[[int], None]
"""Told how many more requests are done."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be done with every batch."""

    drafter: str
    settings: tuple[tuple[str, Any], ...]
    first: int
    per_position: bool = False

    def make(self) -> Drafter[Any]:
        return make_drafter(self.drafter, dict(self.settings))


def replay_source(
    source: Source,
    drafter: str,
    settings: Mapping[str, Any],
    *,
    first_token: FirstToken = "prefill",  # noqa: S107
    per_position: bool = False,
    jobs: int | None = None,
    ray: str | None = None,
    progress: Progress = lambda done: None,
) -> Replay:
    """What `drafter` would have done on the recorded requests.

    A drafter that learns from one request for the next is replayed on one core, in the record's order;
    others on `jobs` cores (None is all), or on the Ray cluster at `ray`.
    Raises UsageError for a wrong setting, a record without tokens, or per_position with a drafter whose
    drafts depend on the steps before; MissingExtra; EndpointError where the cluster fails.
    """
    began = time.monotonic()
    task = Task(drafter, tuple(sorted(settings.items())), FIRST[first_token], per_position)
    first = task.make()
    if per_position and first.steps_matter:
        raise UsageError(
            f"the drafts of {drafter} depend on where earlier steps ended, so that a context alone has none: "
            "leave out --per-position"
        )
    by_category: dict[str, Acceptance] = {}
    requests: list[RequestReplay] = []
    for part in _parts(first, task, source, jobs, ray):
        for name, acceptance in part.by_category.items():
            by_category[name] = by_category.get(name, nothing()) + acceptance
        requests += part.requests
        progress(len(part.requests))
    if isinstance(first, Recorded) and first.settings.source not in source.acceptance_columns:
        raise no_source(first.settings.source, source.acceptance_columns)
    return Replay(
        drafter,
        as_used(first),
        first.flags(),
        first.engine,
        first.learns,
        source.origin,
        first_token,
        sum(by_category.values(), nothing()),
        by_category,
        tuple(requests),
        source.skipped,
        warnings_of(source, [first]),
        time.monotonic() - began,
    )


def _parts(
    first: Drafter[Any], task: Task, source: Source, jobs: int | None, ray: str | None
) -> Iterator[Tally]:
    if first.learns:
        if ray:
            raise UsageError(f"{task.drafter} learns from one request for the next: leave out --ray")
        return (_tally(first, task, batch) for batch in batches(source))
    return workers_for(is_compiled(first), jobs, ray).map(partial(_tally_alone, task), batches(source))


def workers_for(threads: bool, jobs: int | None, ray: str | None) -> Workers:
    """The cluster if one is named, else this machine's cores."""
    return Cluster(ray) if ray else workers(jobs, threads)


def is_compiled(drafter: Drafter[Any]) -> bool:
    """Whether machine code fills its whole table, which leaves the interpreter free for other threads."""
    return COMPILED and drafter.compiled and isinstance(drafter, TableDrafter)


def _tally_alone(task: Task, batch: Batch) -> Tally:
    """With a drafter made for this batch: it learns nothing from one request for the next."""
    return _tally(task.make(), task, batch)


def _tally(drafter: Drafter[Any], task: Task, batch: Batch) -> Tally:
    if not task.per_position:
        return tally(step_through(drafter, batch.tokens, task.first), batch, task.first)
    table = table_of(drafter, batch.tokens)
    return tally(walk_table(table, batch.tokens, task.first), batch, task.first, table.accepted)


def as_used(drafter: Drafter[Any]) -> dict[str, Any]:
    """Its settings, defaults included."""
    return asdict(drafter.settings)


def warnings_of(source: Source, drafters: Iterable[Drafter[Any]]) -> tuple[str, ...]:
    """What must be said beside figures of these drafters on a source that was read to its end.

    Of settings that surprise, the first of each drafter.
    """
    found = dict.fromkeys(source.warnings)
    traps: dict[str, str] = {}
    for drafter in drafters:
        for trap in drafter.warnings():
            traps.setdefault(drafter.name, trap)
        if isinstance(drafter, Recorded):
            found |= dict.fromkeys(source.acceptance_warnings)
        if drafter.compiled and not COMPILED:
            found[SLOW] = None
    return (*found, *(f"{name}: {trap}" for name, trap in traps.items()))
