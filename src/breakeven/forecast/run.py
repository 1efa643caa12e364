"""Forecast a record: replay × cost of a step, for every setting at every concurrency."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from breakeven.cost.drafting import DraftingCost, drafting_cost
from breakeven.cost.geometry import Geometry
from breakeven.cost.step import Step, StepCost
from breakeven.drafters.registry import make_drafter
from breakeven.errors import UsageError
from breakeven.forecast.bootstrap import resampler
from breakeven.forecast.cells import Candidate, Decoding
from breakeven.forecast.collect import collect
from breakeven.forecast.collected import Requests, SettingSteps
from breakeven.forecast.decode import mix_of, relative_cost, step_costs
from breakeven.forecast.doubts import doubts
from breakeven.forecast.experts import coverage
from breakeven.forecast.needed import given_rows, needed
from breakeven.forecast.prefill import Prefill
from breakeven.forecast.published import published
from breakeven.forecast.recommend import next_commands, recommendation
from breakeven.forecast.records import Cell, CostBasis, Forecast, ForecastRow, StepParts
from breakeven.forecast.simulate import Batching
from breakeven.interval import Interval
from breakeven.replay.grid import Setting
from breakeven.replay.records import FirstToken
from breakeven.replay.run import as_used, warnings_of
from breakeven.replay.sources import Source
from breakeven.replay.tally import counted
from breakeven.replay.workers import workers

Progress = Callable[[int], None]
KS = (1, 2, 3, 4, 5, 6, 7, 8)
"""Windows of a learned drafter."""


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms a forecast is made. Raises UsageError for impossible concurrencies."""

    cost: StepCost
    words: str
    """One sentence on where the cost comes from."""
    concurrencies: tuple[int, ...]
    geometry: Geometry | None = None
    """Of the model, if it is known: for the plot of experts."""
    drafting: DraftingCost | None = None
    """In place of what is known of each drafter."""
    method: str = "eagle3"
    """The learned drafter of which is told what it must reach."""
    ks: tuple[int, ...] = KS
    """Its windows."""
    acceptance: tuple[float, ...] = ()
    """Its acceptance by position, if that is known."""
    engine: str | None = None
    """As a run names it; where the record does not tell."""

    def __post_init__(self) -> None:
        rising = sorted(set(self.concurrencies))
        if not rising or rising[0] < 1:
            raise UsageError(f"concurrencies {self.concurrencies}: give one or more, from 1")
        object.__setattr__(self, "concurrencies", tuple(rising))


def forecast_source(
    source: Source,
    terms: Terms,
    grid: Sequence[Setting],
    prefill: Prefill,
    *,
    concurrency: int | None = None,
    first_token: FirstToken = "prefill",  # noqa: S107
    jobs: int | None = None,
    progress: Progress = lambda done: None,
) -> Forecast:
    """What each setting of the grid would do on the recorded requests, at each concurrency.

    `progress` is told of cells (setting × concurrency) done. Raises UsageError for an empty grid, and what
    `collect` raises.
    """
    if not grid:
        raise UsageError("there is nothing to forecast: name a drafter, a k and an n range")
    began = time.monotonic()
    oracles: list[Setting] = [("oracle", {"k": k}) for k in sorted({_k(setting) for setting in grid})]
    requests, steps = collect(source, [*grid, *oracles], first_token, jobs)
    primary = concurrency or terms.concurrencies[0]
    terms = replace(terms, concurrencies=(*terms.concurrencies, primary))
    rows = _rows(requests, steps, terms, prefill, jobs, progress)
    engine = source.origin.engine or terms.engine
    forecast = _about_heads(terms, requests.context_tokens, primary, engine)
    place = terms.concurrencies.index(primary)
    ranked = sorted(
        rows[: len(grid)], key=lambda row: (-row.cells[place].speedup.estimate, row.settings.get("k", 0))
    )
    return _concluded(
        replace(
            forecast,
            origin=source.origin,
            first_token=first_token,
            requests=len(requests.output_tokens),
            output_tokens=int(requests.output_tokens.sum()),
            basis=replace(forecast.basis, prefill=prefill.words),
            rows=tuple(ranked),
            oracle=tuple(rows[len(grid) :]),
            skipped=source.skipped,
            warnings=(
                *warnings_of(source, [one.drafter for one in steps[: len(grid)]]),
                *doubts(requests, terms.concurrencies),
                *forecast.warnings,
            ),
        ),
        began,
    )


def forecast_heads(terms: Terms, *, context_tokens: float = 0.0, concurrency: int | None = None) -> Forecast:
    """What a learned drafter must reach, and gives with the acceptance given, without a record."""
    began = time.monotonic()
    primary = concurrency or terms.concurrencies[0]
    terms = replace(terms, concurrencies=(*terms.concurrencies, primary))
    return _concluded(_about_heads(terms, context_tokens, primary, terms.engine), began)


def _concluded(forecast: Forecast, began: float) -> Forecast:
    said = replace(forecast, recommendation=recommendation(forecast), next_commands=next_commands(forecast))
    return replace(said, elapsed_s=time.monotonic() - began)


def _about_heads(terms: Terms, context_tokens: float, primary: int, engine: str | None) -> Forecast:
    """All of a forecast that needs no record."""
    cost, levels = terms.cost, terms.concurrencies
    drafting = terms.drafting or drafting_cost(engine, terms.method)
    largest = Step(1 + max(terms.ks), levels[-1], context_tokens)
    return Forecast(
        origin=None,
        first_token="prefill",  # noqa: S106
        requests=0,
        output_tokens=0,
        basis=CostBasis(cost.source, terms.words, drafting.source, "no record: no prefill"),
        concurrency=primary,
        concurrencies=levels,
        rows=(),
        oracle=(),
        given=given_rows(
            terms.acceptance, terms.method, engine or "", cost, drafting, levels, context_tokens
        ),
        needed=needed(cost, drafting, terms.ks, levels, context_tokens),
        needed_for=terms.method,
        published=published(terms.method),
        steps=tuple(_parts(cost, Step(1 + k, primary, context_tokens), k) for k in (0, *terms.ks)),
        coverage=coverage(terms.geometry, terms.cost, max(terms.ks) + 1),
        recommendation="",
        next_commands=(),
        skipped={},
        warnings=cost.warnings(largest),
        elapsed_s=0.0,
    )


def _parts(cost: StepCost, step: Step, k: int) -> StepParts:
    return StepParts(k, cost.parts(step), cost.seconds(step))


def _k(setting: Setting) -> int:
    """The window, where the drafter has one by that name; else its default."""
    name, settings = setting
    used = as_used(make_drafter(name, dict(settings)))
    return int(used.get("k", 1))


def _rows(
    requests: Requests,
    steps: Sequence[SettingSteps],
    terms: Terms,
    prefill: Prefill,
    jobs: int | None,
    progress: Progress,
) -> list[ForecastRow]:
    most = [int(one.drafted.max(initial=0)) for one in steps]
    decoding = Decoding(requests, resampler(requests.category))
    mixes = [mix_of(one, longest) for one, longest in zip(steps, most, strict=True)]
    draftings = [terms.drafting or drafting_cost(one.drafter.engine, one.drafter.name) for one in steps]
    columns: list[list[Cell]] = []
    for concurrency in terms.concurrencies:
        relative = relative_cost(terms.cost, concurrency, max(most), requests.context_tokens)
        batching = Batching(requests, terms.cost, concurrency, max(most), prefill.seconds_per_token)
        candidates = [
            Candidate(mix, step_costs(relative, drafting, mix.share))
            for mix, drafting in zip(mixes, draftings, strict=True)
        ]
        served = workers(jobs, threads=True).map(
            partial(_served, batching), zip(steps, draftings, strict=True)
        )
        for place, throughput in enumerate(served):
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
    )
