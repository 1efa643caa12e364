"""Acceptance of a head, from evaluation.json, as tables of a card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from breakeven.eagle.card_text import bullets, table
from breakeven.units import ABSENT, share

NONE = "Not evaluated: `breakeven eagle evaluate` on held-out prompts would say."
INTERVALS = "In brackets the interval of 95 %, over prompts like those."


def acceptance(evaluation: Mapping[str, Any] | None) -> str:
    """By position, by category, and beside drafters without training."""
    if evaluation is None:
        return NONE
    definitions = evaluation["definitions"]
    parts = [
        _opening(evaluation),
        table(
            ("draft token", "accepted so far", "accepted, if all before it were"),
            _positions(evaluation["chained"]),
        ),
        table(("category", "replies", "acceptance length", "tokens per step"), _categories(evaluation)),
        "This head and drafters without training, on the same replies:",
        table(("drafter", "tokens per step"), _rivals(evaluation)),
        bullets(f"{name}: {words}" for name, words in definitions.items() if name in SHOWN),
        bullets(evaluation["warnings"]),
    ]
    return "\n\n".join(part for part in parts if part)


SHOWN = ("chained", "accepted_by_position", "conditional_by_position", "acceptance_length", "tokens_per_step")
"""Definitions of what the tables hold."""


def _opening(evaluation: Mapping[str, Any]) -> str:
    length = _number(evaluation["chained"]["acceptance_length"])
    return (
        f"Acceptance length **{length}** with drafts of {evaluation['k']} tokens, on "
        f"{evaluation['replies']:,} held-out replies of {evaluation['output_tokens']:,} tokens, "
        f"{_temperature(evaluation)}. {INTERVALS}"
    )


def _temperature(evaluation: Mapping[str, Any]) -> str:
    wrote = evaluation["reply_temperature"]
    if wrote is None:
        return "which were recorded elsewhere"
    return f"which the target wrote at temperature {wrote:g}"


def _positions(chained: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    so_far, conditional = chained["accepted_by_position"], chained["conditional_by_position"]
    for position, (one, other) in enumerate(zip(so_far, conditional, strict=True), 1):
        yield str(position), _share(one), _share(other)


def _categories(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, part in evaluation["by_category"].items():
        chained = part["chained"]
        yield (
            str(name),
            f"{part['replies']:,}",
            _number(chained["acceptance_length"]),
            _number(chained["tokens_per_step"]),
        )


def _rivals(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for rival in evaluation["drafters"]:
        settings = ", ".join(f"{name} {value}" for name, value in rival["settings"].items())
        yield (
            f"{rival['drafter']} ({settings})" if settings else rival["drafter"],
            f"{rival['tokens_per_step']:.2f}",
        )


def _share(value: Mapping[str, float] | None) -> str:
    if value is None:
        return ABSENT
    return f"{share(value['estimate'])} [{share(value['low'])} to {share(value['high'])}]"


def _number(value: Mapping[str, float] | None) -> str:
    return ABSENT if value is None else f"{value['estimate']:.2f} [{value['low']:.2f} to {value['high']:.2f}]"
