"""The logs that `breakeven diagnose` was pointed at, read to their end or to Ctrl-C."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakeven.cli.diagnose_sides import is_same
from breakeven.cli.interrupt import interruptible
from breakeven.cli.log_sources import FileLog, JournalLog, Log
from breakeven.errors import UsageError
from breakeven.units import count

if TYPE_CHECKING:
    from breakeven.acceptance.logs.summary import LogSummary

SIDE_LOGS = ("baseline.log", "candidate.log")
"""In the folder of a trial of embedded engines."""
CUT = "{log}: Ctrl-C ended the reading after {lines}"


@dataclass(frozen=True)
class Logs:
    """What they say; None for one that was not named."""

    candidate: LogSummary | None
    baseline: LogSummary | None
    places: Mapping[str, str]
    """What is to be put into a finding's command for each, as a word of a shell."""
    notes: tuple[str, ...] = ()
    """Of each that was not read to its end, a sentence."""


def logs_of(record: tuple[Path, ...], place: Log | None, values: Mapping[str, Any]) -> Logs:
    """Of the candidate and the baseline. A trial of embedded engines keeps both beside its runs. Raises
    UsageError where both are one, and for one that says nothing."""
    own = FileLog(values["baseline_logs"]) if values["baseline_logs"] is not None else None
    if len(record) == 1:
        kept = [record[0] / name for name in SIDE_LOGS]
        own = own or (FileLog(kept[0]) if kept[0].is_file() else None)
        place = place or (FileLog(kept[1]) if kept[1].is_file() else None)
    if isinstance(place, FileLog) and isinstance(own, FileLog) and is_same(place.path, own.path):
        raise UsageError(f"--logs and --baseline-logs are both {place.path}: name two logs")
    candidate, baseline = _read(place), _read(own)
    notes = (note for _, note in (candidate, baseline) if note)
    return Logs(candidate[0], baseline[0], _places(place, own), tuple(notes))


def _places(candidate: Log | None, baseline: Log | None) -> dict[str, str]:
    sides = {"candidate-log": candidate, "baseline-log": baseline}
    words = {side: log.word() for side, log in sides.items() if log is not None}
    found = {side: word for side, word in words.items() if word is not None}
    if isinstance(candidate, JournalLog) and not candidate.user:
        found["unit"] = shlex.quote(candidate.unit.full)
    return found


def _read(log: Log | None) -> tuple[LogSummary | None, str]:
    """What it says, and where Ctrl-C ended its reading, that. Raises UsageError where it is empty, or no line
    is of an engine that is known."""
    from breakeven.acceptance.logs.reader import read_log

    if log is None:
        return None, ""
    with closing(log.read()) as pieces, interruptible() as interrupt:
        summary = read_log(interrupt.until(pieces))
    says_nothing = summary.engine is None and not summary.events
    if interrupt.came and says_nothing:
        raise KeyboardInterrupt
    if not summary.lines:
        raise UsageError(f"{log.describe()} is empty: name the log of the server, from its start on")
    if says_nothing:
        raise UsageError(
            f"no line of {log.describe()} is of an engine that is known: name the log of the server, from "
            "its start on, as vLLM, SGLang, llama.cpp, TensorRT-LLM or TGI writes it"
        )
    note = CUT.format(log=log.describe(), lines=count(summary.lines, "line"))
    return summary, note if interrupt.came else ""
