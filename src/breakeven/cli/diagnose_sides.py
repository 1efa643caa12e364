"""Whether what `breakeven diagnose` was pointed at belongs together: two sides, their logs, options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakeven.errors import UsageError

if TYPE_CHECKING:
    from breakeven.diagnose.readings import Readings
    from breakeven.trace.run import Run

TELLING = 4
"""Characters that the names of one model begin with, however it is served."""
SWAPPED = "only the baseline drafted: name the side without speculation first, as BASELINE CANDIDATE"


def is_same(one: Path, other: Path) -> bool:
    """Whether both name one file, also through a link."""
    return one == other or (one.exists() and other.exists() and one.samefile(other))


def check_sides(baseline: Run, candidate: Run) -> None:
    """Raises UsageError where both are one run, and where only the baseline drafted."""
    from breakeven.diagnose.gather import counted

    if is_same(baseline.path, candidate.path) or baseline.meta.run_id == candidate.meta.run_id:
        raise UsageError(f"{baseline.path} and {candidate.path} are the same run: name two")
    drafted = [counts.drafted_tokens if counts else None for counts in map(counted, (baseline, candidate))]
    if drafted[0] and not drafted[1]:
        raise UsageError(f"{SWAPPED}: {candidate.path} {baseline.path}")


def agree(read: Readings, typed: int | None, recorded: int | None) -> None:
    """Raises UsageError where logs or options are of another server than what was recorded or counted.

    `typed` and `recorded` are windows; what is typed may fill a gap, and not contradict.
    """
    logs = [
        log.counters.drafted_tokens if log and log.counters else None for log in (read.baseline_log, read.log)
    ]
    if read.candidate is None and read.log is not None and logs[0] and not logs[1]:
        raise UsageError(f"by the logs {SWAPPED}: swap --logs and --baseline-logs")
    _check_engines(read)
    if typed is not None and recorded is not None and typed != recorded:
        raise UsageError(
            f"a window of {typed} was typed, and by what was recorded it is {recorded}: leave it out, or "
            "name what is of that server"
        )


def _check_engines(read: Readings) -> None:
    """All that name one must name the same."""
    run = read.candidate or read.baseline
    named = (
        ("--engine", read.engine),
        ("the run", run.meta.server.engine if run is not None else None),
        ("the server at --url", read.look.after.engine if read.look is not None else None),
        ("--logs", read.log.engine if read.log is not None else None),
        ("--baseline-logs", read.baseline_log.engine if read.baseline_log is not None else None),
    )
    known = [(source, engine) for source, engine in named if engine]
    for source, engine in known[1:]:
        first, its = known[0]
        if _plain(engine) != _plain(its):
            raise UsageError(
                f"{first} says {its}, {source} says {engine}: leave out what is of another server"
            )


def other_model(read: Readings, values: Mapping[str, Any]) -> Iterator[str]:
    """That the model that was typed for the cost has nothing of the name of the one that ran."""
    run = read.candidate or read.baseline
    typed, ran = values["model"], run.meta.model if run is not None else None
    if not typed or not ran:
        return
    if not _plain(Path(typed).name).startswith(_plain(Path(ran).name)[:TELLING]):
        yield f"the runs are of a model named {ran}, and the cost is of {typed}, as typed: are they the same?"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
