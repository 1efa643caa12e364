"""Facts about both sides, side by side: what was the same, and what was not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from breakeven.report.definitions import DEFINITIONS
from breakeven.report.plain import acceptance_json
from breakeven.report.text import line
from breakeven.trace.provenance import without_credentials
from breakeven.trial.left_out import LEFT_OUT
from breakeven.trial.result import TrialResult
from breakeven.units import ABSENT, share

MAX_VALUE_CHARACTERS = 600
REASONS = "self_check reasons"
_COUNTS = {
    "steps": "decode steps",
    "drafts": "drafts",
    "drafted_tokens": "drafted tokens",
    "accepted_tokens": "accepted tokens",
    "accepted_per_position": "accepted per position",
    "acceptance_rate": "acceptance rate",
    "mean_acceptance_length": "mean acceptance length",
    "tokens_per_step": "tokens per step",
    "draft_share": "draft share",
    "source": "source",
}
_KEYS = {definition.key for definition in DEFINITIONS}


@dataclass(frozen=True, slots=True)
class FactRow:
    name: str
    baseline: str
    candidate: str
    differs: bool
    key: str = ""
    """Of its definition, where the name is a defined term."""


def side_rows(result: TrialResult) -> list[FactRow]:
    """What the result itself says of its sides."""
    a, b = result.baseline, result.candidate
    named = {
        "settings": (a.description, b.description),
        "address": (without_credentials(a.url), without_credentials(b.url)),
        "run folder": (str(a.run_dir), str(b.run_dir)),
    }
    return [FactRow(name, _plain(one), _plain(other), one != other) for name, (one, other) in named.items()]


def speculation_rows(result: TrialResult) -> Iterator[FactRow]:
    """Counts of speculation and the ratios made from them; none where neither side has counts."""
    counters = (result.baseline.acceptance, result.candidate.acceptance)
    if counters == (None, None):
        return
    sides = [acceptance_json(side) for side in counters]
    for key, name in _COUNTS.items():
        values = [_count(key, side) if known else ABSENT for side, known in zip(sides, counters, strict=True)]
        yield FactRow(name, values[0], values[1], values[0] != values[1], key if key in _KEYS else "")


def _count(key: str, counts: Mapping[str, Any]) -> str:
    value = counts[key]
    if value is None:
        return f"{ABSENT} ({counts['absent'][key]})"
    if key in ("acceptance_rate", "draft_share"):
        return share(value)
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else _plain(value)


def fact_rows(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> list[FactRow]:
    """Nested provenance, names joined by spaces: a row per fact that either side has. Why a self-check failed
    and repeats are left out is told where the verdict is."""
    sides = [dict(_flat(side)) for side in (baseline, candidate)]
    names = dict.fromkeys([*sides[0], *sides[1]])
    return [
        FactRow(
            line(name),
            sides[0].get(name, ABSENT),
            sides[1].get(name, ABSENT),
            sides[0].get(name) != sides[1].get(name),
        )
        for name in names
    ]


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if name == LEFT_OUT and isinstance(value, Mapping):
        yield "repeats left out", ", ".join(str(int(n) + 1) for n in value) or ABSENT
    elif name == REASONS:
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{name} {key}".strip())
    elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from _flat(item, f"{name} {index}".strip())
    else:
        yield name, _plain(value)


def _plain(value: Any) -> str:
    if value is None or value == "":
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    words = ", ".join(map(_plain, value)) if isinstance(value, list | tuple) else str(value)
    return line(words, MAX_VALUE_CHARACTERS) or ABSENT
