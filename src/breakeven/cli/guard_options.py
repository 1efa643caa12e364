"""What a user may set of a guard, simulated or in a server, as options."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import click

from breakeven.cli import options
from breakeven.errors import UsageError
from breakeven.guard.settings import MOST_DRAFT, GuardSettings

_UNSET = GuardSettings()
NO_LEDGER = "none"

guard_options = options.stack(
    click.option(
        "--epsilon",
        type=options.ShareBelowOne(),
        default=f"{_UNSET.epsilon:.0%}",
        show_default=True,
        help="Share of its plain decode speed that a request may lose.",
    ),
    click.option(
        "--most-tokens",
        type=click.IntRange(1, MOST_DRAFT),
        default=_UNSET.most_tokens,
        show_default=True,
        help="Longest draft of the guard.",
    ),
)


def settings_given(values: Mapping[str, Any]) -> GuardSettings:
    return GuardSettings(epsilon=values["epsilon"], most_tokens=values["most_tokens"])


class Epsilons(click.ParamType):  # type: ignore[type-arg]
    """Shares parted by commas, and `none` for a guard without a ledger. Raises UsageError for another."""

    name = "LIST"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        try:
            return tuple(dict.fromkeys(map(_epsilon, words := str(value).split(","))))
        except ValueError as error:
            raise UsageError(f"{error}: type  --epsilons {_meant(words)}") from None


def _meant(words: Sequence[str]) -> str:
    """The list in per cent, where each word can be taken for some; else an example."""
    meant = [word.strip() if word.strip() == NO_LEDGER else _percent(word) for word in words]
    return ",".join(meant) if all(meant) else f"1%,2%,5%,{NO_LEDGER}"


def _percent(word: str) -> str:
    """Empty for a word that is none."""
    percent = options.percent_meant(word)
    return "" if percent is None else f"{percent:g}%"


def _epsilon(word: str) -> float:
    return math.inf if word.strip() == NO_LEDGER else options.share_below_one(word)
