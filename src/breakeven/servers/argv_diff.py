"""How one command line becomes another, as a unified diff for a human to agree to."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from breakeven.secrets import masked_argv


def argv_diff(before: Sequence[str], after: Sequence[str], name: str) -> str:
    """Of what `name` runs, one word a line; secrets are hidden."""
    return lines_diff(_lines(before), _lines(after), f"{name} (now)", f"{name} (in the trial)")


def lines_diff(before: Sequence[str], after: Sequence[str], now: str, then: str) -> str:
    """Of lines without their ends, under what each side is called."""
    old, new = ([f"{line}\n" for line in lines] for lines in (before, after))
    return "".join(difflib.unified_diff(old, new, now, then))


def _lines(words: Sequence[str]) -> list[str]:
    return [line for word in masked_argv(words) for line in word.split("\n")]
