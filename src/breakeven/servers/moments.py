"""Moments as Docker and Kubernetes write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_NEVER = "0001-01-01"
_FRACTION = re.compile(r"(\.\d{1,6})\d*")


def seconds_since(moment: str | None) -> float | None:
    """By this machine's clock; None for no moment, or the one that Docker writes for never."""
    if not moment or moment.startswith(_NEVER):
        return None
    then = datetime.fromisoformat(_FRACTION.sub(r"\1", moment))
    return max(0.0, (datetime.now(UTC) - then).total_seconds())
