"""Acceptance by place in the chain, over all replies and by category, with intervals.

Requests are resampled, each category for itself, as a forecast does it (forecast/bootstrap.py): sums of a
resample give its ratios, and deviations from the estimate are stretched to Student's t. The interval speaks
for requests like those; of one request alone it is the estimate, as nothing shows a spread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breakeven.acceptance.record import Acceptance
from breakeven.eagle.evaluate.drafted import Drafted
from breakeven.eagle.evaluate.records import Chained, Part, Share, TeacherForced
from breakeven.eagle.sampling import expected_tokens
from breakeven.forecast.bootstrap import TAIL, Floats, Resampler, resampler
from breakeven.interval import Interval
from breakeven.replay.records import Replay, RequestReplay

STEPS, DRAFTS, ACCEPTED, EMITTED, POSITIONS = range(5)
"""Columns of what a replay counts; from POSITIONS on drafts accepted to each place or beyond."""
FORCED = ("contexts", "agree", "reached", "passed", "overlap", "survived")
"""Columns of what Drafted counts, k of each."""

Counted = NDArray[np.bool_]
Statistic = Callable[[Floats], Floats]
"""Sums over requests, (…, columns), to ratios, (…, ratios)."""
Limits = tuple[float, float]
"""What ratios can be at least and at most."""
SHARES = (0.0, 1.0)


def parts(replay: Replay, drafted: Sequence[Drafted], sampled: bool) -> tuple[Part, Mapping[str, Part]]:
    """Of all replies, and by category.

    `replay` is of the record, `drafted` what its lines count, in the same order; `sampled` tells whether the
    replies were sampled at the temperature of their overlaps.
    """
    names = list(dict.fromkeys(request.category for request in replay.requests))
    category = np.array([names.index(request.category) for request in replay.requests])
    k = len(drafted[0].contexts)
    table = _Table(
        np.array([_stepped(request, k) for request in replay.requests], np.float64),
        np.array([[getattr(one, name) for name in FORCED] for one in drafted], np.float64),
        resampler(category),
        sampled,
    )
    total = table.part(np.ones(len(category), np.bool_), replay.total)
    return total, {
        name: table.part(category == place, replay.by_category[name]) for place, name in enumerate(names)
    }


def intervals(
    values: Floats, counted: Counted, draws: Resampler, ratios: Statistic, limits: Limits
) -> list[Share]:
    """Ratios of sums over the counted requests of `values`, (requests, columns), within `limits`; None where
    nothing stands below the line."""
    with np.errstate(divide="ignore", invalid="ignore"):
        estimates = ratios(values[counted].sum(axis=0))
        resampled = ratios(draws.means(values, counted))
    known = np.isfinite(estimates)
    found = iter(_around(estimates[known], resampled[:, known], draws.stretch(counted), limits))
    return [next(found) if there else None for there in known]


def _around(estimates: Floats, resampled: Floats, stretch: float, limits: Limits) -> list[Interval]:
    ends = np.nanpercentile(resampled, [100 * TAIL, 100 * (1 - TAIL)], axis=0)
    low, high = estimates + (ends - estimates) * stretch
    low, high = np.clip(low, limits[0], estimates), np.clip(high, estimates, limits[1])
    return [Interval(*column) for column in np.stack([estimates, low, high], axis=1).tolist()]


@dataclass(frozen=True, slots=True)
class _Table:
    """Counts by request."""

    stepped: Floats
    """Shape (requests, POSITIONS + k)."""
    forced: Floats
    """Shape (requests, len(FORCED), k)."""
    draws: Resampler
    sampled: bool

    def part(self, counted: Counted, acceptance: Acceptance) -> Part:
        return Part(
            acceptance.requests,
            acceptance.output_tokens,
            self._chained(counted, acceptance),
            self._teacher_forced(counted),
        )

    def _chained(self, counted: Counted, acceptance: Acceptance) -> Chained:
        k = self.stepped.shape[1] - POSITIONS
        shares = self._of(self.stepped, counted, _shares, SHARES)
        length, tokens = self._of(self.stepped, counted, _lengths, (1, k + 1))
        return Chained(acceptance, tuple(shares[:k]), tuple(shares[k:]), length, tokens)

    def _teacher_forced(self, counted: Counted) -> TeacherForced:
        flat, k = self.forced.reshape(len(self.forced), -1), self.forced.shape[2]
        shares = self._of(flat, counted, _forced_shares, SHARES)
        agreement, conditional, overlap, survived = (tuple(shares[i : i + k]) for i in range(0, 4 * k, k))
        (tokens,) = self._of(flat, counted, _forced_tokens, (1, k + 1))
        contexts = self.forced[counted, FORCED.index("contexts")].sum(axis=0)
        return TeacherForced(
            tuple(contexts.astype(int).tolist()),
            agreement,
            conditional,
            overlap,
            survived if self.sampled else None,
            tokens,
        )

    def _of(self, values: Floats, counted: Counted, ratios: Statistic, limits: Limits) -> list[Share]:
        return intervals(values, counted, self.draws, ratios, limits)


def _stepped(request: RequestReplay, k: int) -> list[int]:
    counters = request.counters
    positions = list(counters.accepted_per_position or ())
    counts = [
        counters.steps or 0,
        counters.drafts or 0,
        counters.accepted_tokens or 0,
        request.emitted_tokens,
    ]
    return [*counts, *positions, *[0] * (k - len(positions))]


def _shares(sums: Floats) -> Floats:
    """Drafts accepted to each place or beyond, of all drafts; then of those accepted to the place before."""
    reached = sums[..., POSITIONS:]
    drafts = sums[..., DRAFTS, None]
    before = np.concatenate([drafts, reached[..., :-1]], axis=-1)
    return np.concatenate([reached / drafts, reached / before], axis=-1)


def _lengths(sums: Floats) -> Floats:
    """Acceptance length, and tokens per step."""
    return np.stack(
        [1 + sums[..., ACCEPTED] / sums[..., DRAFTS], sums[..., EMITTED] / sums[..., STEPS]], axis=-1
    )


def _forced_shares(sums: Floats) -> Floats:
    contexts, agree, reached, passed, overlap, survived = _by_name(sums)
    found = [agree / contexts, passed / reached, overlap / contexts, survived / contexts]
    return np.concatenate(found, axis=-1)


def _forced_tokens(sums: Floats) -> Floats:
    _, _, reached, passed, *_ = _by_name(sums)
    unreached = reached == 0  # and no number where a resample holds no request of the category
    return expected_tokens(np.where(unreached, 0.0, passed / reached))[..., None]


def _by_name(sums: Floats) -> list[Floats]:
    """Of each of FORCED, (…, k)."""
    return np.split(sums, len(FORCED), axis=-1)
