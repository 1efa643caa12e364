"""Replay every setting of a grid on a record, and keep the steps: a forecast needs each, not their sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.compare.degenerate import ends_in_loop
from breakeven.drafters.base import Drafter, TableDrafter
from breakeven.errors import UsageError
from breakeven.forecast.collected import Requests, SettingSteps
from breakeven.replay.batches import Batch, batches
from breakeven.replay.grid import Setting
from breakeven.replay.records import FirstToken
from breakeven.replay.run import FIRST, Task, is_compiled, workers_for
from breakeven.replay.sources import Source
from breakeven.replay.steps import Steps, step_through
from breakeven.replay.sweep import stepped

Counts = NDArray[np.int64]
_NOWHERE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Part:
    """One batch of the record."""

    prompts: Counts
    outputs: Counts
    categories: tuple[str, ...]
    degenerate: int
    steps: dict[Task, Steps]


def collect(
    source: Source,
    grid: Sequence[Setting],
    first_token: FirstToken,
    jobs: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[Requests, list[SettingSteps]]:
    """The record's requests, and the steps of each setting in the order of the grid.

    Memory grows with the record: some 8 bytes for each step of each setting. Raises UsageError where no
    output has a token that comes out of a step, and what `replay_source` raises.
    """
    tasks = [Task(name, tuple(settings.items()), FIRST[first_token]) for name, settings in grid]
    drafters = {task: task.make() for task in tasks}
    here = {task: drafter for task, drafter in drafters.items() if drafter.learns or _is_quick(drafter)}
    alone = [task for task in tasks if task not in here]
    threads = all(is_compiled(drafters[task]) for task in alone)
    parts: list[_Part] = []
    for batch, found in _read(source, alone, threads, jobs):
        parts.append(_part(batch, found | _in_turn(here, batch)))
        progress(len(batch.ids))
    requests = _requests(parts, FIRST[first_token])
    if not requests.emitted_tokens.any():
        raise UsageError("every output is one token, which the prefill gives: type --first-token replayed")
    joined = {
        task: _joined(drafter, [part.steps.pop(task) for part in parts]) for task, drafter in drafters.items()
    }
    return requests, [joined[task] for task in tasks]


def _read(
    source: Source, alone: Sequence[Task], threads: bool, jobs: int | None
) -> Iterable[tuple[Batch, dict[Task, Steps]]]:
    return workers_for(threads, jobs, None).map(partial(_steps, alone), batches(source))


def _steps(tasks: Sequence[Task], batch: Batch) -> tuple[Batch, dict[Task, Steps]]:
    return batch, {task: _kept(steps) for task, steps in stepped(tasks, batch)}


def _is_quick(drafter: Drafter[Any]) -> bool:
    """Its table is a few array operations: other processes would only cost."""
    return isinstance(drafter, TableDrafter) and not drafter.compiled


def _in_turn(drafters: dict[Task, Drafter[Any]], batch: Batch) -> dict[Task, Steps]:
    """In this thread, batch after batch: what one teaches is there in the next."""
    return {task: _kept(step_through(one, batch.tokens, task.first)) for task, one in drafters.items()}


def _kept(steps: Steps) -> Steps:
    """Without the places where they begin, which take as much memory as all else."""
    return replace(steps, at=_NOWHERE)


def _part(batch: Batch, steps: dict[Task, Steps]) -> _Part:
    tokens = batch.tokens
    prompts = tokens.outputs - tokens.starts[:-1]
    loops = sum(ends_in_loop(ids[prompt:].tolist()) for ids, prompt in tokens.contexts())
    return _Part(prompts, np.diff(tokens.positions), batch.categories, loops, steps)


def _requests(parts: Sequence[_Part], first: int) -> Requests:
    names = [name for part in parts for name in part.categories]
    categories = tuple(dict.fromkeys(names))
    place = {name: index for index, name in enumerate(categories)}
    return Requests(
        np.concatenate([part.prompts for part in parts]),
        np.concatenate([part.outputs for part in parts]),
        np.array([place[name] for name in names], np.int64),
        categories,
        first,
        sum(part.degenerate for part in parts),
    )


def _joined(drafter: Drafter[Any], parts: Sequence[Steps]) -> SettingSteps:
    return SettingSteps(
        drafter,
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.drafted for part in parts]),
        np.concatenate([part.accepted for part in parts]),
    )
