"""What a report asks of a drafter itself: which engine has it, and whether it learns between requests.

What a drafter of the user's own prints meanwhile is no result: it goes to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any

from breakeven.drafters.base import Drafter
from breakeven.drafters.registry import drafter_class, make_drafter
from breakeven.errors import UsageError


def engine_of(drafter: str) -> str:
    """The id of its engine; that of a drafter of one's own where the name is not known here."""
    try:
        with redirect_stdout(sys.stderr):
            return drafter_class(drafter).engine
    except UsageError:
        return Drafter.engine


def learns(drafter: str, settings: Mapping[str, Any]) -> bool:
    """Whether it keeps what it saw for later requests; with some settings a drafter that can does not."""
    try:
        with redirect_stdout(sys.stderr):
            return make_drafter(drafter, settings).learns
    except UsageError:
        return False
