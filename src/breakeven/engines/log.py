"""LogTable: how the lines of one engine's log are read, as tables of patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from breakeven.engines.phase import Phase, PhaseName

Pattern = re.Pattern[str]

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PREFIX = re.compile(
    r"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [\w.@-]+(?:\[\d+\])?: "
    r"|\([^()]*pid=\d+[^()]*\)\s*"
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?\s*"
    r"(?:\[[^\]]+\]|\w+\.py:\d+\])?\s?"
    r"|\[\d{2,4}[-/]\d\d[-/][\d-]+[ T:-]\d\d:\d\d:\d\d[^\]]*\]\s*"
    r"|\[(?:TRT-LLM|TensorRT-LLM|RANK \d+)\]\s*|\[[EWI]\]\s*|\[(?:ERROR|WARNING|INFO)\]\s*"
    r"|\d{4}-\d\d-\d\dT[\d:.]+Z\s+(?:ERROR|WARN|INFO)\s+(?:[\w-]+:\s+)*"
    r"|(?:\d+\.)+\d+ [EWID] )+"
)
"""What a journal, vLLM, SGLang, TensorRT-LLM, TGI and llama.cpp write before a message, in this order."""
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failure|Timeout)(?:: .*|$)")
_INVALID = re.compile(r"\d validation errors? for \w+$")
"""pydantic's; the lines below say what is wrong, up to one with its type in brackets."""
_CONSEQUENCE = re.compile(
    r"root cause|EngineDeadError|ChildFailedError|BrokenPipeError|ConnectionResetError|CancelledError"
)
"""What one process says of the death of another; the cause stands above."""
_FATAL = tuple(
    re.compile(pattern)
    for pattern in (
        r"OutOfMemoryError|(?<!running )[Oo]ut of memory|OOM killer|No available memory for the cache blocks"
        r"|larger than the (?:maximum number of tokens|available KV cache memory)|Not enough memory"
        r"|insufficient memory",
        r"[Aa]ddress already in use|couldn't bind (?:HTTP )?server socket|error while attempting to bind",
        r"error: (?:unrecognized arguments?|argument |ambiguous option|the following arguments)"
        r"|error: (?:unknown|invalid|unexpected) argument|error while handling argument|[Nn]o such option",
    )
)
"""Lines that say more than the traceback around them, most telling first."""
_LAST_WORDS = re.compile(
    r"failed to load (?:draft )?model|error loading model|terminate called|GGML_ASSERT|GGML_ABORT"
    r"|[Ss]egmentation fault|Segfault|^Killed$|Shard (?:\d+ )?(?:crashed|failed to start)|^error: "
    r"|(?:CUDA|ROCm) error|Watchdog timeout|Executor loop crashed"
)
_ENDED = re.compile(r"(?:exited|died) unexpectedly|[Mm]ain process exited")
"""That a process is gone, in the words of one that watches it."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A pattern whose last match tells one of Dialect.facts."""

    name: str
    pattern: Pattern
    value: str | None = None
    """What a match means; None: its first group, without the commas of a number."""

    def read(self, line: str) -> str | None:
        """The fact, if the line tells it."""
        found = self.pattern.search(line)
        if found is None:
            return None
        return self.value or found[1].replace(",", "").strip("'\"")


@dataclass(frozen=True, slots=True)
class LogTable:
    """Patterns are looked for in this order, and the first that is found counts."""

    phases: tuple[tuple[PhaseName, Pattern], ...]
    """Groups named `done` and `total` count the phase's units."""
    facts: tuple[Fact, ...] = ()
    drafter: Pattern | None = None
    """After the first line like this, `attention_backend` would be that of the drafter."""

    def phase(self, line: str) -> Phase | None:
        """What the line tells of the start; of a progress bar, its latest state."""
        line = latest(line)
        for name, pattern in self.phases:
            if found := pattern.search(line):
                counts = found.groupdict()
                done, total = counts.get("done"), counts.get("total")
                return Phase(name, int(done) if done else None, int(total) if total else None)
        return None

    def read_facts(self, lines: Iterable[str]) -> dict[str, str]:
        """What the lines tell; of each fact, the last counts."""
        found: dict[str, str] = {}
        drafting = False
        for line in lines:
            drafting = drafting or bool(self.drafter and self.drafter.search(line))
            for fact in self.facts:
                if drafting and fact.name == "attention_backend":
                    continue
                value = fact.read(line)
                if value is not None:
                    found[fact.name] = value
        return found


def failure(lines: Iterable[str]) -> str | None:
    """The message that best says why a server died, without the time and the process before it."""
    messages = [message for line in lines if (message := plain(line))]
    for pattern in _FATAL:
        if found := [message for message in messages if pattern.search(message)]:
            return found[-1]
    raised = [_whole(messages, at) for at, message in enumerate(messages) if _EXCEPTION.search(message)]
    causes = [message for message in raised if not _CONSEQUENCE.search(message)]
    last, ended = (
        [message for message in messages if words.search(message)] for words in (_LAST_WORDS, _ENDED)
    )
    return next((found[-1] for found in (causes, last, ended, raised) if found), None)


def _whole(messages: Sequence[str], at: int) -> str:
    """An exception with the lines below it that say what was invalid."""
    if not _INVALID.search(messages[at]):
        return messages[at]
    below = messages[at + 1 : at + 3]
    ends = next((n for n, message in enumerate(below, 1) if "[type=" in message), len(below))
    return ": ".join([messages[at], *below[:ends]])


def latest(line: str) -> str:
    """What a terminal shows of a line that a progress bar has written over."""
    states = [state for state in _ANSI.sub("", line).split("\r") if state.strip()]
    return states[-1] if states else ""


def plain(line: str) -> str:
    """The message of a line of a log."""
    return _PREFIX.sub("", latest(line).strip()).strip()


def patterns(*named: tuple[PhaseName, str]) -> tuple[tuple[PhaseName, Pattern], ...]:
    """Phases with their patterns compiled."""
    return tuple((name, re.compile(pattern)) for name, pattern in named)


def facts(*named: tuple[str, str] | tuple[str, str, str]) -> tuple[Fact, ...]:
    """Facts with their patterns compiled: name, pattern, and what a match means."""
    return tuple(Fact(one[0], re.compile(one[1]), one[2] if len(one) > 2 else None) for one in named)
