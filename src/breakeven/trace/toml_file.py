"""Reads a TOML file that a user wrote."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from breakeven.errors import UsageError

MOST_BYTES = 1_000_000
"""Of a file that somebody writes by hand; what is larger was named by mistake."""


def read_toml(path: Path, instead: str) -> dict[str, Any]:
    """What the file says.

    Raises UsageError for one that cannot be read, is larger than MOST_BYTES, or is no TOML; `instead` is what
    to name in its place.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name {instead}") from error
    if len(data) > MOST_BYTES:
        raise UsageError(f"{path} has more than {MOST_BYTES:,} bytes: name {instead}")
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no TOML: {error}") from error
