"""What a forecast holds. Speedups are baseline / candidate: above 1 speculation pays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from breakeven.acceptance.counters import SpecCounters
from breakeven.cost.step import Source
from breakeven.forecast.alike import alike
from breakeven.interval import Interval
from breakeven.replay.records import FirstToken, Origin

TARGETS = (1.0, 1.2, 1.5, 2.0)
"""Speedups of which the needed acceptance is told; 1 is break-even."""


Outcome = Literal["faster", "slower", "undecided"]


def outcome(speedup: Interval) -> Outcome:
    """`faster` or `slower` where the whole interval lies on one side of 1, else `undecided`."""
    if speedup.low > 1:
        return "faster"
    return "slower" if speedup.high < 1 else "undecided"


@dataclass(frozen=True, slots=True)
class BreakEven:
    """What this window must reach, with its cost as forecast, so that a token takes as long as without."""

    tokens_per_step: float
    """As many as a step of it takes plain steps."""
    acceptance_rate: float | None
    """At the draft share that it has; None where it never drafts. Above 1 it cannot pay."""
    draft_share: float | None
    """At the acceptance that its drafts have; None where no share would do, or it never drafts."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting at one concurrency."""

    concurrency: int
    speedup: Interval
    """Of decoding: TPOT without / with speculation, the geometric mean over requests, as a trial's over
    prompts. Prefill is not in it."""
    throughput_speedup: Interval | None
    """Output tokens per second of the whole record served at this concurrency, with / without: prefill,
    requests that leave the batch and stragglers are in it. None where it was not simulated."""
    by_category: Mapping[str, Interval]
    """As `speedup`, of a category's requests served among all others."""
    step_ratio: Interval
    """A mean step with speculation in plain steps, drafting included."""
    break_even: BreakEven

    @property
    def outcome(self) -> Outcome:
        """Of `speedup`."""
        return outcome(self.speedup)


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """One drafter with its settings."""

    drafter: str
    settings: Mapping[str, Any]
    flags: str
    engine: str
    learns: bool
    counters: SpecCounters
    tokens_per_step: float
    cells: tuple[Cell, ...]
    """By concurrency, as Forecast.concurrencies."""
    warnings: tuple[str, ...] = ()
    """What about these settings would surprise who sets them."""


@dataclass(frozen=True, slots=True)
class Published:
    """An acceptance length that was reached elsewhere."""

    method: str
    model: str
    k: int
    acceptance_length: float
    workload: str
    source: str


@dataclass(frozen=True, slots=True)
class Needed:
    """Mean acceptance length that a drafter which drafts k tokens at every step must have."""

    k: int
    concurrency: int
    acceptance_length: Mapping[float, Interval]
    """By target speedup, each of TARGETS. Above k + 1 no drafter reaches it."""


@dataclass(frozen=True, slots=True)
class StepParts:
    """What one step of the target model consists of."""

    k: int
    """Drafted tokens that every sequence verifies; 0 is the plain step."""
    parts: Mapping[str, float]
    """Seconds by part, as StepCost.parts."""
    total: Interval


@dataclass(frozen=True, slots=True)
class Coverage:
    """Distinct experts of one layer that a step wakes, by the tokens of one sequence that it verifies."""

    experts: int
    top_k: int
    points: tuple[tuple[int, Interval], ...]
    """Tokens, and distinct experts: at the reuse taken, at the most and at the least to be expected."""


@dataclass(frozen=True, slots=True)
class CostBasis:
    """Where the cost of a step comes from."""

    source: Source
    words: str
    """One sentence: which calibration, anchor, model and hardware, and how wide its error is."""
    drafting: str
    """What was taken for the drafter's own time, and from where."""
    prefill: str
    """What was taken for the prefill, and from where."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Rows ranked by their speedup at `concurrency`, best first."""

    origin: Origin | None
    """None: there is no record, only `needed` is told."""
    first_token: FirstToken
    requests: int
    output_tokens: int
    basis: CostBasis
    concurrency: int
    """The one that rows are ranked by and the recommendation begins with: the record's own, or the least."""
    concurrencies: tuple[int, ...]
    """Rising."""
    rows: tuple[ForecastRow, ...]
    oracle: tuple[ForecastRow, ...]
    """By window: every step drafts k tokens, and all are accepted. The upper bound of drafts so long."""
    given: tuple[ForecastRow, ...]
    """A drafter whose acceptance by position was given, by window; empty if none was."""
    needed: tuple[Needed, ...]
    """By window, then by concurrency."""
    needed_for: str
    """The learned method whose drafting cost `needed` assumes, such as eagle3."""
    published: tuple[Published, ...]
    """Beside `needed`: what such heads reached."""
    steps: tuple[StepParts, ...]
    """The plain step and those of each window, at `concurrency`."""
    coverage: Coverage | None
    """None for a model without experts, or one whose geometry is not known."""
    recommendation: str
    """The sentence that a human wants."""
    next_commands: tuple[str, ...]
    """What would try the winner; empty where nothing should be tried."""
    skipped: Mapping[str, int]
    warnings: tuple[str, ...]
    elapsed_s: float

    @property
    def candidates(self) -> tuple[ForecastRow, ...]:
        """Rows of the record's engine, ranked as `rows`; of all where none is, or the engine is unknown.

        Of windows that came to the same (see alike.py) the smallest alone.
        """
        engine = self.origin.engine if self.origin else None
        rows = [same[0] for same in alike(self.rows)]
        return tuple(row for row in rows if row.engine == engine) or tuple(rows)

    @property
    def best(self) -> ForecastRow | None:
        """As `best_at` the forecast's concurrency."""
        return self.best_at(self.concurrency)

    @property
    def best_given(self) -> ForecastRow | None:
        """The window of the drafter with given acceptance that is fastest at `concurrency`; None without."""
        place = self.concurrencies.index(self.concurrency)
        return max(self.given, key=lambda row: row.cells[place].speedup.estimate, default=None)

    def best_at(self, concurrency: int) -> ForecastRow | None:
        """The fastest candidate that is sure to pay there; else that may; else the fastest; or None.

        The highest estimate may be less sure than one below it.
        """
        place = self.concurrencies.index(concurrency)
        order = ("slower", "undecided", "faster")

        def worth(row: ForecastRow) -> tuple[int, float]:
            cell = row.cells[place]
            return order.index(cell.outcome), cell.speedup.estimate

        return max(self.candidates, key=worth, default=None)
