"""Rows of a forecast: each setting with its cells, from the steps that it takes on the record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from breakeven.cost.drafting import DraftingCost
from breakeven.forecast.bootstrap import resampler
from breakeven.forecast.cells import Candidate, Decoding
from breakeven.forecast.collected import Requests, SettingSteps
from breakeven.forecast.decode import idle_step, mix_of, relative_cost, step_costs
from breakeven.forecast.records import Cell, ForecastRow
from breakeven.forecast.simulate import Batching
from breakeven.forecast.terms import Terms
from breakeven.interval import Interval
from breakeven.replay.run import as_used
from breakeven.replay.tally import counted
from breakeven.replay.workers import workers


def rows_of(
    requests: Requests,
    steps: Sequence[SettingSteps],
    terms: Terms,
    prefill_s: float,
    jobs: int | None,
    progress: Callable[[int], None],
) -> list[ForecastRow]:
    """One for each setting, in their order. `progress` is told of cells (setting × concurrency) done."""
    most = [int(one.drafted.max(initial=0)) for one in steps]
    mixes = [mix_of(one, longest) for one, longest in zip(steps, most, strict=True)]
    draftings = [terms.drafting_of(one.drafter) for one in steps]
    decoding = Decoding(requests, resampler(requests.category))
    columns: list[list[Cell]] = []
    for concurrency in terms.concurrencies:
        relative = relative_cost(terms.cost, concurrency, max(most), requests.context_tokens)
        candidates = [
            Candidate(mix, step_costs(relative, drafting, mix.share), idle_step(relative, drafting))
            for mix, drafting in zip(mixes, draftings, strict=True)
        ]
        batching = Batching(requests, terms.cost, concurrency, max(most), prefill_s)
        settings = zip(steps, draftings, strict=True)
        for place, throughput in enumerate(
            workers(jobs, threads=True).map(partial(_served, batching), settings)
        ):
            candidates[place] = replace(candidates[place], throughput=throughput)
            progress(1)
        columns.append(decoding.cells(candidates, concurrency))
    return [_row(one, requests, cells) for one, cells in zip(steps, zip(*columns, strict=True), strict=True)]


def _served(batching: Batching, setting: tuple[SettingSteps, DraftingCost]) -> Interval:
    return batching.speedup(*setting)


def _row(steps: SettingSteps, requests: Requests, cells: Iterable[Cell]) -> ForecastRow:
    drafter = steps.drafter
    return ForecastRow(
        drafter.name,
        as_used(drafter),
        drafter.flags(),
        drafter.engine,
        drafter.learns,
        counted(steps.drafted, steps.accepted),
        int(requests.emitted_tokens.sum()) / max(len(steps.drafted), 1),
        tuple(cells),
        drafter.warnings(),
    )
