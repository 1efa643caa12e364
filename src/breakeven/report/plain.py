"""Records as plain types for JSON: strings that can be encoded, and a reason beside every null."""

from __future__ import annotations

from typing import Any

from breakeven.acceptance.counters import SpecCounters
from breakeven.report.text import BIDI, encodable

MOST_CHARACTERS = 4000
"""Of a string: a sentence, a name or a command line is shorter."""
_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *BIDI)}

NO_COUNTS = (
    "no counts to use: speculation is off, the server counts none or only over requests side by side, "
    "or replies end in a loop"
)


def acceptance_json(counters: SpecCounters | None, why_none: str = NO_COUNTS) -> dict[str, Any]:
    """Raw counts, the ratios made from them, their source, and `absent`: reason by key for each null."""
    known = counters or SpecCounters()
    values: dict[str, Any] = {
        "steps": known.steps,
        "drafts": known.drafts,
        "drafted_tokens": known.drafted_tokens,
        "accepted_tokens": known.accepted_tokens,
        "accepted_per_position": _list(known.accepted_per_position),
        "acceptance_rate": known.acceptance_rate,
        "mean_acceptance_length": known.mean_acceptance_length,
        "tokens_per_step": known.tokens_per_step,
        "draft_share": known.draft_share,
        "source": known.source or None,
    }
    absent = {key: _why(key, counters, why_none) for key, value in values.items() if value is None}
    return {**values, "absent": absent}


_NEEDS = {
    "acceptance_rate": ("accepted_tokens", "drafted_tokens"),
    "mean_acceptance_length": ("accepted_tokens", "drafts"),
    "tokens_per_step": ("accepted_tokens", "steps"),
    "draft_share": ("drafts", "steps"),
}
_NAMES = {
    "steps": "decode steps",
    "drafts": "drafts",
    "drafted_tokens": "drafted tokens",
    "accepted_tokens": "accepted tokens",
    "accepted_per_position": "accepted tokens per position",
}


def _why(key: str, counters: SpecCounters | None, why_none: str) -> str:
    if counters is None:
        return why_none
    source = counters.source or "the source"
    if key == "source":
        return "the counts do not name their source"
    if key not in _NEEDS:
        return f"{source} does not count {_NAMES[key]}"
    missing = [_NAMES[name] for name in _NEEDS[key] if getattr(counters, name) is None]
    if missing:
        return f"{source} does not count {' or '.join(missing)}"
    return f"{_NAMES[_NEEDS[key][1]]}: none were counted, so there is nothing to divide by"


def _list(values: tuple[int, ...] | None) -> list[int] | None:
    return None if values is None else list(values)


def _harmless(text: str) -> str:
    """C1, DEL and marks that reorder text as `\\u202e`; JSON itself escapes C0."""
    if len(text) > MOST_CHARACTERS:
        text = text[: MOST_CHARACTERS - 1] + "…"
    return text if text.isascii() and "\x7f" not in text else encodable(text).translate(_ESCAPED)


def printable(value: Any) -> Any:
    """The same value with every string harmless, keys included: what no terminal should be sent is escaped,
    and of a longer one than MOST_CHARACTERS its beginning is left."""
    if isinstance(value, str):
        return _harmless(value)
    if isinstance(value, dict):
        return {_harmless(str(key)): printable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [printable(item) for item in value]
    return value
