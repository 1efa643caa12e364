"""What is known of the drafter, as options: what a trained head accepts, and what drafting takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.cost_options import MOST_MS
from breakeven.cli.drafter_options import MOST_NUMBERS
from breakeven.errors import UsageError

METHODS = ("eagle3", "eagle", "mtp", "draft-model")


class Rates(click.ParamType):  # type: ignore[type-arg]
    """Numbers parted by commas: 0.7,0.5. Raises UsageError for what is none, or for too many."""

    name = "RATES"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        words = value.split(",")
        if len(words) > MOST_NUMBERS:
            raise UsageError(
                f"{len(words):,} acceptance rates: a window has {MOST_NUMBERS} positions at most"
            )
        try:
            return tuple(map(float, words))
        except ValueError:
            raise UsageError(
                f"{value[:40]!r} is no list of acceptance rates: type --per-position 0.7,0.5,0.35"
            ) from None


drafting_times = options.stack(
    click.option(
        "--draft-ms",
        type=options.FiniteRange(0, MOST_MS),
        metavar="MS",
        help="Of the drafter for each drafted token [default: what is known of it].",
    ),
    click.option(
        "--flat-ms",
        type=options.FiniteRange(0, MOST_MS),
        metavar="MS",
        help="That speculation adds to every step [default: what is known of the engine].",
    ),
)

drafting_options = options.stack(
    click.option(
        "--method",
        type=click.Choice(METHODS),
        default="eagle3",
        show_default=True,
        help="The trained drafter of which is told what it must reach.",
    ),
    click.option(
        "--acceptance-length",
        type=options.FiniteRange(min=1),
        metavar="X",
        help="Its tokens per step with the longest of --ks, the target's own among them.",
    ),
    click.option(
        "--per-position", type=Rates(), help="Its acceptance by position, of all steps: such as 0.7,0.5,0.35."
    ),
    drafting_times,
)


def acceptance_given(values: Mapping[str, Any]) -> tuple[float, ...]:
    """By position; empty where nothing was given. Raises UsageError for a length of no window, or both."""
    from breakeven.forecast.chain import chain_acceptance

    rates, length, ks = values["per_position"], values["acceptance_length"], values["ks"]
    if length is None:
        return rates or ()
    if rates:
        raise UsageError("--per-position says all that --acceptance-length does: leave out one of the two")
    if not ks:
        raise UsageError(
            f"an acceptance length of {length:g} belongs to a window: type --ks 3 too, or the window that it "
            "was measured with"
        )
    return chain_acceptance(length, max(ks))
