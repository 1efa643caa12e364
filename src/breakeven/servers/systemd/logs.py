"""Lines of a service's log: from the journal, or from the file that StandardOutput= names."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

SLACK_S = 2
FILE_KINDS = ("append:", "file:", "truncate:")
OLD_LINES = 10_000
"""Of a log file, how many lines before now are read where it is not known where the latest start begins."""


def entries_argv(unit: str, user: bool) -> tuple[str, ...]:
    """The unit's entries, with systemd's own about it. Not --user: that leaves the system's journal out,
    which has a user's entries too where journals are not kept on disk."""
    return ("journalctl", f"--{'user-' if user else ''}unit={unit}", "--output=json", "--all")


def journal_argv(unit: str, age_s: float | None, user: bool) -> tuple[str, ...]:
    """Follows the unit's entries, from about `age_s` ago on; None, where that is not known: all since the
    machine was started."""
    since = "--boot" if age_s is None else f"--since=-{math.ceil(age_s) + SLACK_S}s"
    return (*entries_argv(unit, user), "--no-tail", "--follow", since)


def file_argv(path: str, size: int | None) -> tuple[str, ...]:
    """Follows a log file, from its byte `size` on, or from its last lines."""
    start = ("--lines", str(OLD_LINES)) if size is None else ("--bytes", f"+{size + 1}")
    return ("tail", "--follow=name", "--retry", *start, "--", path)


def file_of(standard_output: str) -> str | None:
    """The path that StandardOutput= names."""
    kind = next((kind for kind in FILE_KINDS if standard_output.startswith(kind)), None)
    return standard_output.removeprefix(kind) if kind else None


def message(line: str, since_us: int) -> str | None:
    """An entry's text; None for one before the time of the monotonic clock, and for what is no entry."""
    try:
        entry: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict) or int(entry.get("__MONOTONIC_TIMESTAMP", since_us)) < since_us:
        return None
    return _text(entry.get("MESSAGE"))


def _text(value: Any) -> str | None:
    """journalctl writes text with control characters, such as a progress bar's, as a list of bytes."""
    if isinstance(value, list):
        if all(isinstance(byte, int) for byte in value):
            return bytes(value).decode(errors="replace")
        return _text(value[-1])
    return value if isinstance(value, str) else None


async def until_over(
    lines: AsyncIterator[str], is_over: Callable[[], Awaitable[bool]], look_s: float
) -> AsyncGenerator[str, None]:
    """Lines as they come, until none has come for `look_s` and the service is over; then they are closed."""
    waiting: asyncio.Future[str | None] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(lines, None))
            if (await asyncio.wait({waiting}, timeout=look_s))[0]:
                line, waiting = waiting.result(), None
                if line is None:
                    return
                yield line
            elif await is_over():
                return
    finally:
        if waiting is not None:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        if isinstance(lines, AsyncGenerator):
            await lines.aclose()
