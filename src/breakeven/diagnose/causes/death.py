"""Death: a server that never came to serve, by the lines of its start."""

from __future__ import annotations

import re

from breakeven.acceptance.logs.start import MOST_LINES
from breakeven.acceptance.logs.summary import LogSummary
from breakeven.diagnose.causes.cause import Cause
from breakeven.diagnose.causes.sides import BASELINE, MOST_CHARACTERS, reports, sentence, sides
from breakeven.diagnose.evidence import Evidence
from breakeven.engines.dialects import NAMES, dialect
from breakeven.engines.log import failure
from breakeven.explain.records import Finding

LAST_LINES = 100
"""In which the reason stands where the start ends with it: a start that goes on has others below."""
STOPPED = re.compile(r"signal=SIG(?:TERM|INT)|[Rr]eceived (?:signal )?SIG(?:TERM|INT)|KeyboardInterrupt")
"""Somebody stopped it: what breaks off then is no cause."""


def died_at_start(evidence: Evidence) -> Finding | None:
    """A log whose last start ends with a failure, before anything was served."""
    found = [(side, why) for side in sides(evidence) if (why := _reason(side.log)) is not None]
    if not found:
        return None
    said = "; ".join(f"{side.name}: {why}" for side, why in found)
    logs = " ".join("BASELINE.log" if side.name == BASELINE else "CANDIDATE.log" for side, _ in found)
    return Finding(
        "died_at_start",
        "The server died at its start",
        f"{sentence(said)}. Nothing was served after that start",
        "high",
        f"grep -nE 'Error|Traceback' {logs}",
        "See the first error of that start: those below it are often of other processes that lost this one.",
    )


def _reason(log: LogSummary | None) -> str | None:
    """The line that best says why; None for a start that served, goes on, was stopped, or is not all kept."""
    if log is None or reports(log) or not log.facts or len(log.facts) >= MOST_LINES:
        return None
    if _serves(log) or any(STOPPED.search(line) for line in log.facts):
        return None
    why = failure(log.facts[-LAST_LINES:])
    return None if why is None else why.rstrip(".")[:MOST_CHARACTERS]


def _serves(log: LogSummary) -> bool:
    if log.engine not in NAMES:
        return False
    phases = map(dialect(log.engine).phase, log.facts)
    return any(phase is not None and phase.name == "serving" for phase in phases)


CAUSES: tuple[Cause, ...] = (died_at_start,)
