"""A record, and what a step of its server costs: what a simulation of that server starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakeven.cli.cost_options import ChosenCost, choose_cost
from breakeven.cli.forecast_grid import check_drafters
from breakeven.cli.record import open_record, refuse_calibration

if TYPE_CHECKING:
    from breakeven.replay.sources import Source
    from breakeven.trace.run import Run


@dataclass(frozen=True, slots=True)
class CostedRecord:
    """Both, as the options name them."""

    source: Source
    run: Run | None
    """None for a file."""
    chosen: ChosenCost
    engine: str | None
    """As asked, else as the record says, else as the calibration does."""


def open_costed(path: Path, values: Mapping[str, Any], verb: str) -> CostedRecord:
    """For a verb with --tokenizer, `cost_options` and `grid_options`.

    Raises UsageError where the record is a calibration, or its prompts are no text, and for a name of no
    drafter; and what open_source and choose_cost raise.
    """
    from breakeven.forecast.random_tokens import refuse_random_prompts
    from breakeven.replay.sources.run import RunSource

    refuse_calibration(path, verb)
    source = open_record(path, values["tokenizer"])
    run = source.run if isinstance(source, RunSource) else None
    engine = values["engine"] or source.origin.engine
    check_drafters(values["drafter_names"], engine)
    chosen = choose_cost(values, run)
    refuse_random_prompts(source)
    return CostedRecord(source, run, chosen, engine or chosen.engine)
