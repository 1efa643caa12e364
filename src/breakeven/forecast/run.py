"""Forecast a record: replay × cost of a step, for every setting at every concurrency."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from breakeven.cost.step import Step, StepCost
from breakeven.drafters.oracle import Oracle
from breakeven.drafters.registry import make_drafter
from breakeven.errors import UsageError
from breakeven.forecast.collect import collect
from breakeven.forecast.collected import SettingSteps
from breakeven.forecast.doubts import doubts
from breakeven.forecast.experts import coverage
from breakeven.forecast.needed import given_rows, needed
from breakeven.forecast.next_steps import next_commands
from breakeven.forecast.prefill import Prefill
from breakeven.forecast.published import published
from breakeven.forecast.recommend import recommendation
from breakeven.forecast.records import CostBasis, Forecast, ForecastRow, StepParts
from breakeven.forecast.rows import rows_of
from breakeven.forecast.terms import Terms
from breakeven.replay.grid import Setting
from breakeven.replay.records import FirstToken
from breakeven.replay.run import as_used, warnings_of
from breakeven.replay.sources import Source

Progress = Callable[[int], None]
Phase = Callable[[str, int | None], AbstractContextManager[Progress]]
"""Opens with what is done from now on and of how many, and is told as more are done."""


@contextmanager
def unseen(what: str, total: int | None) -> Iterator[Progress]:
    """A phase that nobody watches."""
    yield lambda done: None


def forecast_source(
    source: Source,
    terms: Terms,
    grid: Sequence[Setting],
    prefill: Prefill,
    *,
    concurrency: int | None = None,
    first_token: FirstToken = "prefill",  # noqa: S107
    jobs: int | None = None,
    phase: Phase = unseen,
) -> Forecast:
    """What each setting of the grid would do on the recorded requests, at each concurrency.

    Rows are ranked at `concurrency`, the least of `terms` unless given. Raises UsageError for an empty grid,
    and what `collect` raises.
    """
    began = time.monotonic()
    primary = concurrency or terms.concurrencies[0]
    terms = replace(terms, concurrencies=(*terms.concurrencies, primary))
    settings = _with_bounds(grid)
    with phase("requests replayed", source.expected) as replayed:
        requests, steps = collect(source, settings, first_token, jobs, replayed)
    with phase("settings × concurrencies forecast", len(settings) * len(terms.concurrencies)) as done:
        rows = rows_of(requests, steps, terms, prefill.seconds_per_token, jobs, done)
    engine = source.origin.engine or terms.engine
    forecast = _of_heads(terms, requests.context_tokens, primary, engine)
    tried = [one.drafter for one in steps[: len(grid)]]
    made = replace(
        forecast,
        origin=source.origin,
        first_token=first_token,
        requests=len(requests.output_tokens),
        output_tokens=int(requests.output_tokens.sum()),
        basis=replace(
            forecast.basis, drafting=_drafting_words(steps[: len(grid)], terms), prefill=prefill.words
        ),
        rows=_ranked(rows[: len(grid)], terms.concurrencies.index(primary)),
        oracle=tuple(rows[len(grid) :]),
        skipped=source.skipped,
    )
    warnings = (
        *warnings_of(source, tried),
        *doubts(requests, terms.concurrencies),
        *terms.cost.warnings(_largest(made, requests.context_tokens)),
    )
    return _concluded(replace(made, warnings=warnings), began)


def _largest(forecast: Forecast, context_tokens: float) -> Step:
    """The step of the recommended setting that its figures rest on: at the highest concurrency one sequence
    with a whole draft, and others with as many drafted tokens as they have on average."""
    level, best = forecast.concurrencies[-1], forecast.best
    drafted = 0.0 if best is None else (best.counters.drafted_tokens or 0)
    steps, drafts = (1, 1) if best is None else (best.counters.steps or 1, best.counters.drafts or 1)
    tokens = level + (level - 1) * drafted / steps + drafted / drafts
    return Step(math.ceil(tokens) / level, level, context_tokens)


def forecast_heads(terms: Terms, *, context_tokens: float = 0.0) -> Forecast:
    """What a learned drafter must reach, and gives with the acceptance given, without a record."""
    began = time.monotonic()
    return _concluded(_of_heads(terms, context_tokens, terms.concurrencies[0], terms.engine), began)


def _with_bounds(grid: Sequence[Setting]) -> list[Setting]:
    """The grid, and an oracle for each of its windows."""
    if not grid:
        raise UsageError("there is nothing to forecast: name a drafter, a k and an n range")
    return [*grid, *((Oracle.name, {"k": k}) for k in sorted({_k(setting) for setting in grid}))]


def _k(setting: Setting) -> int:
    """The window; 1 where the drafter has none by that name."""
    name, settings = setting
    return int(as_used(make_drafter(name, dict(settings))).get("k", 1)) or 1


def _ranked(rows: Sequence[ForecastRow], place: int) -> tuple[ForecastRow, ...]:
    """Fastest first; of equals the smaller window."""
    return tuple(sorted(rows, key=lambda row: (-row.cells[place].speedup.estimate, row.settings.get("k", 0))))


def _concluded(forecast: Forecast, began: float) -> Forecast:
    return replace(
        forecast,
        recommendation=recommendation(forecast),
        next_commands=next_commands(forecast),
        elapsed_s=time.monotonic() - began,
    )


def _of_heads(terms: Terms, context_tokens: float, primary: int, engine: str | None) -> Forecast:
    """All of a forecast that needs no record."""
    cost, levels = terms.cost, terms.concurrencies
    largest = Step(1 + terms.ks[-1], levels[-1], context_tokens)
    drafting = terms.drafting_of_head(engine)
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
        steps=tuple(_parts(cost, k, primary, context_tokens) for k in (0, *terms.ks)),
        coverage=coverage(terms.geometry, cost, terms.ks[-1] + 1, terms.reuse),
        recommendation="",
        next_commands=(),
        skipped={},
        warnings=cost.warnings(largest),
        elapsed_s=0.0,
    )


def _parts(cost: StepCost, k: int, sequences: int, context_tokens: float) -> StepParts:
    step = Step(1 + k, sequences, context_tokens)
    return StepParts(k, cost.parts(step), cost.seconds(step))


def _drafting_words(steps: Sequence[SettingSteps], terms: Terms) -> str:
    """By drafter, where several differ."""
    names: dict[str, dict[str, None]] = {}
    for one in steps:
        names.setdefault(terms.drafting_of(one.drafter).source, {})[one.drafter.name] = None
    if len(names) == 1:
        return next(iter(names))
    return "; ".join(f"{', '.join(of)}: {source}" for source, of in names.items())
