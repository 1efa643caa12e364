"""Drafters without training on the same replies, and what a choice between them and the head would gain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from breakeven.drafters.recorded import Recorded
from breakeven.eagle.evaluate.journal import COLUMN, COUNTS
from breakeven.eagle.evaluate.part import intervals
from breakeven.eagle.evaluate.records import Combined, Rival
from breakeven.forecast.bootstrap import Floats, resampler
from breakeven.replay.grid import default_grid
from breakeven.replay.records import Replay
from breakeven.replay.run import replay_source
from breakeven.replay.sources import Source

RIVALS = ("vllm-ngram", "vllm-suffix")


def replayed(source: Source, k: int) -> Replay:
    """The head, from its own record."""
    return replay_source(source, Recorded.name, {"source": COLUMN, "k": k}, jobs=1)


def rivals(source: Source, k: int) -> list[Replay]:
    """Each of RIVALS at its best settings with drafts of k tokens at most."""
    return [_best(source, name, k) for name in RIVALS]


def _best(source: Source, drafter: str, k: int) -> Replay:
    grid = default_grid((drafter,), (k,))
    return max((replay_source(source, *setting, jobs=1) for setting in grid), key=_tokens_per_step)


def ranked(replays: Sequence[Replay]) -> tuple[Rival, ...]:
    """Best first by tokens per step."""
    return tuple(
        Rival(_name(one), one.settings, one.total.counters, _tokens_per_step(one))
        for one in sorted(replays, key=_tokens_per_step, reverse=True)
    )


def combined(replays: Sequence[Replay]) -> Combined:
    """For each request the one of the replays with the fewest steps; all replays are of the same requests."""
    best_first = sorted(replays, key=_tokens_per_step, reverse=True)
    steps = np.array([[request.counters.steps or 0 for request in one.requests] for one in best_first])
    choice = steps.argmin(axis=0)
    fewest = np.stack([steps[0], steps.min(axis=0)], axis=1).astype(np.float64)
    requests = best_first[0].requests
    names = list(dict.fromkeys(request.category for request in requests))
    draws = resampler(np.array([names.index(request.category) for request in requests]))
    (gain,) = intervals(fewest, np.ones(len(requests), np.bool_), draws, _gain, (1.0, np.inf))
    assert gain is not None  # noqa: S101  a reply of two tokens has a step
    chosen = Counter(choice.tolist())
    emitted = sum(request.emitted_tokens for request in requests)
    return Combined(
        emitted / int(fewest[:, 1].sum()),
        _name(best_first[0]),
        gain,
        {_name(one): chosen[place] for place, one in enumerate(best_first)},
    )


def _gain(sums: Floats) -> Floats:
    gains: Floats = sums[..., :1] / sums[..., 1:]
    return gains


def _tokens_per_step(replay: Replay) -> float:
    return replay.total.tokens_per_step or 0.0


def _name(replay: Replay) -> str:
    return COUNTS if replay.drafter == Recorded.name else replay.drafter
