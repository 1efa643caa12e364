"""Death: a server that died while it served, or that never came to serve, by the lines of its log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from breakeven.acceptance.logs.start import MOST_LINES
from breakeven.acceptance.logs.summary import LogDeath, LogSummary
from breakeven.diagnose.causes.cause import Cause
from breakeven.diagnose.causes.sides import BASELINE, MOST_CHARACTERS, Side, reports, sentence, sides
from breakeven.diagnose.evidence import Evidence
from breakeven.engines.dialects import NAMES, dialect
from breakeven.engines.log import failure, plain
from breakeven.explain.records import Finding
from breakeven.units import count

LAST_LINES = 100
"""In which the reason stands where the start ends with it: a start that goes on has others below."""
STOPPED = re.compile(r"signal=SIG(?:TERM|INT)|[Rr]eceived (?:signal )?SIG(?:TERM|INT)|KeyboardInterrupt")
"""Somebody stopped it: what breaks off then is no cause."""


class Advice(NamedTuple):
    """What to type next where the reason matches, and what to look for."""

    reason: re.Pattern[str]
    command: str
    check: str


HOST_MEMORY = Advice(
    re.compile(r"OOM killer|Out of memory: Killed|9/KILL|^Killed$|exit code: -9"),
    "journalctl -k --grep 'Out of memory|oom-kill'",
    "See whether the kernel killed it, for want of the host's memory: the weights of a drafter are read "
    "through it, and tables of n-grams or suffixes grow in it.",
)
DEVICE_MEMORY = Advice(
    re.compile(r"OutOfMemoryError|[Oo]ut of memory"),
    "nvidia-smi --query-gpu=index,memory.used,memory.total --format=csv",
    "See what else is on the device. A drafter's weights, its cache and the logits of every verified token "
    "take memory beside the KV cache: leave less for that, or shorten the window.",
)
FAULT = Advice(
    re.compile(
        r"(?:CUDA|ROCm) error|GGML_(?:ASSERT|ABORT)|[Ss]egmentation fault|SEGV|ABRT|Aborted|terminate called"
        r"|exited unexpectedly|died unexpectedly|dumped"
    ),
    "journalctl -k --grep 'NVRM: Xid'",
    "See whether the device reported a fault then. If it did not, ask the same without speculation: what "
    "does not crash there is in the drafter, or in verifying.",
)
ADVICE = (HOST_MEMORY, DEVICE_MEMORY, FAULT)
"""The first that fits."""
NOT_RESTARTED = (
    " vLLM may end with status 0 then, and is not started again by systemd's Restart=on-failure (vllm#48966)."
)
READ_ON = "See the first error of that time: those below it are often of other processes that lost this one."


def died_while_serving(evidence: Evidence) -> Finding | None:
    """A log with a death of the server after it had served; the candidate's is told of first."""
    found = [(side, side.log.death) for side in sides(evidence) if side.log is not None and side.log.death]
    if not found:
        return None
    side, death = found[0]
    command, check = _advice(_why(death), side)
    if evidence.engine == "vllm" and not death.goes_on:
        check += NOT_RESTARTED
    return Finding(
        "died_while_serving",
        "The server died while it served",
        f"{sentence('; '.join(_words(*each) for each in found))}. Requests in flight were lost, and what was "
        "counted since the last report with them",
        "medium" if all(death.goes_on for _, death in found) else "high",
        command,
        check,
    )


def _words(side: Side, death: LogDeath) -> str:
    """When, why, and what came of it."""
    when = f", at {death.at}" if death.at else f", after {death.seen}" if death.seen else ""
    times = "" if death.times == 1 else f", the last of {count(death.times, 'time')}"
    after = "it started anew afterwards" if death.goes_on else "the log shows no start after it"
    return f"{side.name}{when}{times}: {_why(death)}; {after}"


def _why(death: LogDeath) -> str:
    """The line that best says why, else the one that tells of it."""
    return (failure(death.lines) or plain(death.line)).rstrip(".")[:MOST_CHARACTERS]


def _advice(why: str, side: Side) -> tuple[str, str]:
    for advice in ADVICE:
        if advice.reason.search(why):
            return advice.command, advice.check
    return f"grep -nE -A80 'fatal error|hit an exception|Traceback' {_log_of(side)}", READ_ON


def died_at_start(evidence: Evidence) -> Finding | None:
    """A log whose last start ends with a failure, before anything was served."""
    found = [(side, why) for side in sides(evidence) if (why := _reason(side.log)) is not None]
    if not found:
        return None
    said = "; ".join(f"{side.name}: {why}" for side, why in found)
    return Finding(
        "died_at_start",
        "The server died at its start",
        f"{sentence(said)}. Nothing was served after that start",
        "high",
        f"grep -nE 'Error|Traceback' {_logs_of([side for side, _ in found])}",
        "See the first error of that start: those below it are often of other processes that lost this one.",
    )


def _logs_of(found: Sequence[Side]) -> str:
    return " ".join(map(_log_of, found))


def _log_of(side: Side) -> str:
    return "<baseline-log>" if side.name == BASELINE else "<candidate-log>"


def _reason(log: LogSummary | None) -> str | None:
    """The line that best says why; None for a start that served, goes on, was stopped, or is not all kept."""
    if log is None or reports(log) or not log.facts or len(log.facts) >= MOST_LINES:
        return None
    has_served = log.death is not None and not log.death.goes_on
    if has_served or _serves(log) or any(STOPPED.search(line) for line in log.facts):
        return None
    why = failure(log.facts[-LAST_LINES:])
    return None if why is None else why.rstrip(".")[:MOST_CHARACTERS]


def _serves(log: LogSummary) -> bool:
    if log.engine not in NAMES:
        return False
    phases = map(dialect(log.engine).phase, log.facts)
    return any(phase is not None and phase.name == "serving" for phase in phases)


CAUSES: tuple[Cause, ...] = (died_at_start, died_while_serving)
