"""Steps → counts: per request, per category, by position in the output, reasoning against answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.record import DECILES, Acceptance, counters_of, joined, per_position
from breakeven.replay.batches import Batch
from breakeven.replay.records import RequestReplay
from breakeven.replay.steps import Steps

Counts = NDArray[np.int64]
PARTS = ("reasoning", "answer")


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of one batch; tallies of further batches are joined to it."""

    by_category: Mapping[str, Acceptance]
    requests: tuple[RequestReplay, ...]


def tally(steps: Steps, batch: Batch, first: int, accepted_lengths: NDArray[np.int32] | None = None) -> Tally:
    """Count the steps. With a table's accepted lengths, each request gets its own part of them."""
    request = np.repeat(np.arange(len(batch.ids)), steps.counts)
    joint = _joint(request, steps)
    return Tally(
        _by_category(steps, request, joint, batch, first),
        tuple(_by_request(joint, batch, first, accepted_lengths)),
    )


def _joint(request: Counts, steps: Steps) -> Counts:
    """Rows (request, drafted, accepted, steps), in this order; shape (distinct, 4)."""
    width = int(steps.accepted.max(initial=0)) + 1
    height = int(steps.drafted.max(initial=0)) + 1
    keys = (request * height + steps.drafted) * width + steps.accepted
    distinct, counts = np.unique(keys, return_counts=True)
    pairs, accepted = np.divmod(distinct, width)
    return np.stack([*np.divmod(pairs, height), accepted, counts], axis=1)


def _by_request(
    joint: Counts, batch: Batch, first: int, accepted_lengths: NDArray[np.int32] | None
) -> list[RequestReplay]:
    positions = batch.tokens.positions.tolist()
    rows = np.searchsorted(joint[:, 0], np.arange(len(batch.ids) + 1)).tolist()
    found = []
    for r, (name, category) in enumerate(zip(batch.ids, batch.categories, strict=True)):
        begin, end = positions[r], positions[r + 1]
        histogram = joint[rows[r] : rows[r + 1], 1:]
        found.append(
            RequestReplay(
                name,
                category,
                output_tokens=end - begin,
                emitted_tokens=max(end - begin - first, 0),
                counters=counters_of(histogram),
                histogram=histogram,
                accepted_lengths=None if accepted_lengths is None else accepted_lengths[begin:end],
            )
        )
    return found


def _by_category(
    steps: Steps, request: Counts, joint: Counts, batch: Batch, first: int
) -> dict[str, Acceptance]:
    names = list(dict.fromkeys(batch.categories))
    category = np.array([names.index(name) for name in batch.categories], np.int64)
    lengths = np.diff(batch.tokens.positions)
    place = steps.at - batch.tokens.positions[request]
    decile = place * DECILES // lengths[request]
    answer_from = batch.answer_from[request]
    part = np.where(answer_from < 0, len(PARTS), place >= answer_from)
    deciles = _grouped(steps, category[request], len(names), decile, DECILES)
    parts = _grouped(steps, category[request], len(names), part, len(PARTS) + 1)
    found = {}
    for index, name in enumerate(names):
        mine = category == index
        found[name] = Acceptance(
            requests=int(mine.sum()),
            output_tokens=int(lengths[mine].sum()),
            emitted_tokens=int(np.maximum(lengths[mine] - first, 0).sum()),
            histogram=joined(joint[mine[joint[:, 0]], 1:]),
            deciles=deciles[index],
            parts=_named(parts[index][: len(PARTS)]),
        )
    return found


def _grouped(steps: Steps, outer: Counts, outers: int, inner: Counts, inners: int) -> Counts:
    """Steps, drafts, drafted and accepted tokens of each pair of groups; shape (outers, inners, 4)."""
    group = outer * inners + inner
    columns = (None, steps.drafted > 0, steps.drafted, steps.accepted)
    summed = [np.bincount(group, column, outers * inners) for column in columns]
    return np.stack(summed, axis=1).astype(np.int64).reshape(outers, inners, len(columns))


def _named(counts: Counts) -> Mapping[str, Counts]:
    return dict(zip(PARTS, counts, strict=True)) if counts.any() else {}


def totals(steps: Steps) -> SpecCounters:
    """The counts of all steps together."""
    return counted(steps.drafted, steps.accepted)


def counted(drafted: NDArray[np.int32], accepted: NDArray[np.int32]) -> SpecCounters:
    """The counts of steps that drafted and accepted so many tokens; both of shape (steps,)."""
    return SpecCounters(
        steps=len(drafted),
        drafts=int(np.count_nonzero(drafted)),
        drafted_tokens=int(drafted.sum(dtype=np.int64)),
        accepted_tokens=int(accepted.sum(dtype=np.int64)),
        accepted_per_position=per_position(np.bincount(accepted)),
        source="replay",
    )
