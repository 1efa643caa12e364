"""Settings at one concurrency: their speedups with intervals, and what it takes to break even."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breakeven.cost.curve import Z_95
from breakeven.forecast.bootstrap import Resampler, intervals
from breakeven.forecast.collected import Requests
from breakeven.forecast.decode import Mix
from breakeven.forecast.records import BreakEven, Cell
from breakeven.interval import Interval

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A setting at one concurrency, as far as it is known before its speed is."""

    mix: Mix
    costs: Floats
    """A step by the tokens that it drafts, in plain steps: see step_costs. Shape (3, most drafted + 1)."""
    idle_step: float
    """One in which no sequence drafts, in plain steps: see idle_step."""
    throughput: Interval | None = None


@dataclass(frozen=True, slots=True)
class Decoding:
    """What forecasts of one record share."""

    requests: Requests
    resampler: Resampler

    def cells(self, candidates: Sequence[Candidate], sequences: int) -> list[Cell]:
        """Of settings served by so many sequences at a time. All at once: they share the resamples."""
        emitted = self.requests.emitted_tokens
        steps = np.stack([one.mix.counts.sum(axis=1) for one in candidates], axis=1)
        spent = np.stack([one.mix.counts @ one.costs.T for one in candidates], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(emitted[:, None, None] / spent)
        shift = self._shift(spent[:, :, 0], steps, sequences)
        overall = self._speedups(logs, emitted > 0, shift)
        by_category = self._by_category(logs, shift) or {self.requests.categories[0]: overall}
        mean_steps = spent.sum(axis=0) / np.maximum(steps.sum(axis=0), 1)[:, None]
        return [
            Cell(
                sequences,
                overall[place],
                one.throughput,
                {name: found[place] for name, found in by_category.items()},
                Interval(*mean_steps[place].tolist()),
                break_even(one.mix, emitted, float(mean_steps[place, 0]), one.idle_step),
            )
            for place, one in enumerate(candidates)
        ]

    def _by_category(self, logs: Floats, shift: Floats) -> dict[str, list[Interval]]:
        """Empty where there is but one category; without those whose requests decode nothing."""
        names = self.requests.categories if len(self.requests.categories) > 1 else ()
        decoded = self.requests.emitted_tokens > 0
        mine = {name: decoded & (self.requests.category == place) for place, name in enumerate(names)}
        return {name: self._speedups(logs, of_it, shift) for name, of_it in mine.items() if of_it.any()}

    def _speedups(self, logs: Floats, counted: NDArray[np.bool_], shift: Floats) -> list[Interval]:
        """Of each candidate the geometric mean over the counted requests, as a trial's over prompts.

        `logs` has shape (requests, candidates, 3), `shift` (RESAMPLES, candidates).
        """
        means = self.resampler.means(logs.reshape(len(logs), -1), counted)
        mean, cheap, dear = np.moveaxis(means.reshape(len(means), -1, 3), 2, 0)
        z = self.resampler.z[:, None] / Z_95
        of_cost = np.where(z > 0, z * (dear - mean), -z * (cheap - mean))
        estimates: Floats = logs[counted, :, 0].mean(axis=0)
        sampled = (mean - estimates) * self.resampler.stretch(counted)
        return intervals(estimates, estimates + sampled + of_cost + shift)

    def _shift(self, spent: Floats, steps: NDArray[np.int64], sequences: int) -> Floats:
        """What a resample's other requests change in the logs: each of the c − 1 others is one of its steps.

        To first order, as d E[T(S)] = Σ d share(d) · g(d) for each of the draws in S. Shape (RESAMPLES,
        candidates).
        """
        every = np.ones(len(steps), np.bool_)
        mean_step = spent.sum(axis=0) / np.maximum(steps.sum(axis=0), 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.resampler.means(spent, every) / self.resampler.means(steps, every)
            shift: Floats = -(sequences - 1) * (found / mean_step - 1)
        return shift * self.resampler.stretch(every)


def break_even(mix: Mix, emitted: NDArray[np.int64], mean_step: float, idle_step: float) -> BreakEven:
    """What would make a token take as long as without speculation, costs as they are.

    From TPOT = [(1 − f)(T + d) + f (T + d + V)] / (1 + f · k · a), with f the draft share, k the mean draft
    and a the acceptance rate. Of several sequences all draft as often, so T + d is a step in which none does
    (`idle_step`), and f · V what the drafts of all of them add: to first order in f, exact for one sequence.
    Both steps in plain ones.
    """
    drafted_at = np.arange(mix.counts.shape[1])
    by_drafted = mix.counts.sum(axis=0)
    steps, drafts = int(by_drafted.sum()), int(by_drafted[1:].sum())
    if not drafts:
        return BreakEven(mean_step, None, None)
    gained, added = int(emitted.sum()) / steps - 1, mean_step - idle_step
    times = max(idle_step - 1, 0.0) / (gained - added) if gained > added else None
    share = None if times is None else times * drafts / steps
    return BreakEven(
        mean_step,
        (mean_step - 1) * steps / int(by_drafted @ drafted_at),
        share if share is not None and share <= 1 else None,
    )
