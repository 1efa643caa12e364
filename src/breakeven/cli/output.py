"""Where words go: results to stdout, progress and warnings to stderr."""

from __future__ import annotations

from rich.console import Console


def stdout() -> Console:
    return Console(highlight=False)


def stderr() -> Console:
    return Console(stderr=True, highlight=False)
