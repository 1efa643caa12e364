"""Which drafters and settings a forecast tries, and at which concurrencies: as options, and as a grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.drafter_options import Numbers, Ranges
from breakeven.errors import UsageError

if TYPE_CHECKING:
    from breakeven.replay.grid import Setting

ENGINES = ("vllm", "sglang", "llama.cpp", "tensorrt-llm", "transformers")
KS = ((1, 2, 3, 4, 5, 6, 8, 10, 12, 16), (1, 2, 3, 5, 8, 12, 16), (2, 4, 8, 16))
"""The default draft lengths: of these the first with which LEAST_RANGES fit."""
N_RANGES = ((1, 3), (1, 2), (2, 4), (2, 3), (3, 5), (3, 7))
"""As far as they fit. A drafter with one n takes the upper end, so that the first three differ in it."""
LEAST_RANGES = 3
MOST_SETTINGS = 60
"""Of the default grid."""
DEFAULT_ENGINE = "vllm"
"""Whose drafters are tried where it is not known what served the record."""


class Levels(Numbers):
    """Concurrencies. Raises UsageError for what is no number."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        try:
            return super().convert(value, param, ctx)
        except UsageError as error:
            words = str(error).partition(": type ")[0]
            raise UsageError(f"--concurrency: {words}: type --concurrency 1,4,16") from None


def grid_options(
    *, drafters: str, ks: str, n_ranges: str, concurrency: str, of: str = ""
) -> Callable[[options.Command], options.Command]:
    """What is tried, as options. `drafters`, `ks` and `n_ranges` say what each is by default, `of` which
    settings they are of; `concurrency` is the whole help of its option."""
    return options.stack(
        click.option(
            "--drafter",
            "drafter_names",
            multiple=True,
            metavar="NAME",
            help=f"Drafter{of}, of `breakeven drafters`; may be given again [default: {drafters}].",
        ),
        click.option("--ks", type=Numbers(), help=f"Draft lengths{of} [default: {ks}]."),
        click.option(
            "--n-ranges", type=Ranges(), help=f"Shortest and longest n-grams{of} [default: {n_ranges}]."
        ),
        click.option("--concurrency", "concurrencies", type=Levels(), help=concurrency),
        click.option(
            "--engine",
            type=click.Choice(ENGINES),
            help="What serves the model [default: as RECORD or FILE say].",
        ),
    )


def check_levels(asked: Sequence[int], most: int) -> None:
    """Raises UsageError for more requests in flight than that."""
    if max(asked) > most:
        raise UsageError(f"--concurrency {max(asked)}: type {most} at most")


def engine_unknown(engine: str | None, values: Mapping[str, Any]) -> tuple[str, ...]:
    """What is said where neither the record nor the user tells whose drafters are to be tried."""
    if engine is not None or values["drafter_names"]:
        return ()
    others = ", ".join(name for name in ENGINES if name != DEFAULT_ENGINE)
    return (
        f"the record does not say which engine served it: the drafters of {DEFAULT_ENGINE} are tried; of "
        f"another type --engine ({others})",
    )


def grid_of(values: Mapping[str, Any], engine: str | None) -> list[Setting]:
    """What is asked for in full; of the rest as much as MOST_SETTINGS allow, n-grams before windows."""
    from breakeven.replay.grid import default_grid

    drafters = values["drafter_names"] or drafters_of(engine)
    ranges: Sequence[tuple[int, int]] = values["n_ranges"] or N_RANGES
    windows = [values["ks"]] if values["ks"] else KS
    if values["n_ranges"]:
        return default_grid(drafters, windows[0], ranges)
    least = 1 if values["ks"] else LEAST_RANGES
    for ks in windows:
        for n in range(len(ranges), least - 1, -1):
            grid = default_grid(drafters, ks, ranges[:n])
            if len(grid) <= MOST_SETTINGS:
                return grid
    return default_grid(drafters, windows[-1], ranges[:least])


def check_drafters(names: Sequence[str], engine: str | None) -> None:
    """Raises UsageError for a name of no drafter, with that of the record's engine if one is like it."""
    from breakeven.drafters.registry import BUILT_IN, drafter_class

    for name in names:
        mine = [one for one in drafters_of(engine) if name and name.lower() in one]
        if name not in BUILT_IN and ":" not in name and mine:
            said = f"there is no drafter {name[:80]!r}: did you mean {mine[0]}?"
            raise UsageError(f"{said} (breakeven drafters lists them by engine)")
        drafter_class(name)


def drafters_of(engine: str | None) -> Sequence[str]:
    """Those with a flag in that engine; vLLM's where it is unknown, or has none."""
    from breakeven.drafters.registry import drafter_class
    from breakeven.replay.grid import DRAFTERS

    by_engine = {name: drafter_class(name).engine for name in DRAFTERS}
    mine = [name for name, has in by_engine.items() if has == engine]
    return mine or [name for name, has in by_engine.items() if has == DEFAULT_ENGINE]
