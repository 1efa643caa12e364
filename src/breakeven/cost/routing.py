"""RoutingTrace: which experts the tokens of real replies used, and the coverage that it measures.

A file is an .npz of `experts` [tokens, layers, top_k], `lengths` [sequences] and `about`, a JSON text.
Format history (`version` in `about`; every older format still loads):
    1  0.1.0  the first
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import UsageError
from breakeven.interval import Interval
from breakeven.trace.files import storing, write_atomically

VERSION = 1
TOKENS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Tokens in a step, or sequences in a batch, for which distinct experts are counted."""
STANDARD_ERRORS = 2
"""Half an interval: it holds the truth of a normal estimate in 91 % of cases with 8 sequences, 95 % with many
(Student's t with one degree of freedom less than there are sequences)."""
_SURELY_ASLEEP = 1e-12
"""Least share of experts asleep, so that its logarithm is finite; it has next to no weight in the fit."""
_MOST_BYTES = 2_000_000_000
"""Of a file's arrays when unpacked: a million tokens, 60 layers and 8 experts take as much."""
_RECORD = "type  breakeven models routing MODEL --out FILE.npz"

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Distinct routed experts of one layer that so many tokens wake, the mean over layers."""

    tokens: int
    distinct: Interval
    """STANDARD_ERRORS standard errors to each side, by the jackknife over sequences."""


@dataclass(frozen=True, slots=True, eq=False)
class RoutingTrace:
    """The experts of each token of some sequences. Raises UsageError for what cannot be that."""

    experts: NDArray[np.integer[Any]]
    """[tokens, layers, top_k], sequence after sequence, each in the order of its text."""
    lengths: tuple[int, ...]
    """Tokens of each sequence."""
    count: int
    """Routed experts of a layer."""
    model: str = ""
    random_router: bool = False
    """Whether the router is known to be random, as that of an upcycled model is."""

    def __post_init__(self) -> None:
        experts = self.experts
        if experts.ndim != 3 or not experts.size or not np.issubdtype(experts.dtype, np.integer):
            raise UsageError("a trace of routing holds expert numbers [tokens, layers, top_k]")
        if len(self.lengths) < 2:
            raise UsageError("one sequence does not show how far sequences differ: give two prompts or more")
        if min(self.lengths) < 1 or sum(self.lengths) != len(experts):
            raise UsageError(f"sequences of {sum(self.lengths)} tokens, and experts of {len(experts)}")
        if experts.min() < 0 or experts.max() >= self.count:
            raise UsageError(f"experts {experts.min()} to {experts.max()} of {self.count}")
        if (np.diff(np.sort(experts)) == 0).any():
            raise UsageError("a token that uses one expert twice")
        if self.top_k == self.count:
            raise UsageError("each token uses every expert, so any number of tokens wakes as many")

    @property
    def layers(self) -> int:
        """Layers with experts."""
        return int(self.experts.shape[1])

    @property
    def top_k(self) -> int:
        """Experts that each token uses."""
        return int(self.experts.shape[2])

    def neighbours(self, tokens: Sequence[int] = TOKENS) -> tuple[Coverage, ...]:
        """Of that many consecutive tokens of one sequence: the mean over all such windows.

        Numbers for which fewer than two sequences are long enough are left out.
        """
        kept, windows = self._windows(tokens)
        distinct, errors = _jackknife(_mean_distinct, windows)
        return tuple(map(self._coverage, kept, distinct, errors))

    def sequences(self, tokens: Sequence[int] = TOKENS) -> tuple[Coverage, ...]:
        """Of that many tokens, each of another sequence and anywhere in it: the mean over all such choices.

        Exact, out of the share of its tokens that use each expert. Numbers above all sequences but one are
        left out.
        """
        kept = [t for t in tokens if t < len(self.lengths)]
        asleep = np.array([1 - awake.mean(axis=0) for awake in self._awake()])
        most = max(kept, default=0)
        distinct, errors = _jackknife(
            lambda sequences: self.count * (1 - _all_asleep(sequences, most)[kept].mean(axis=(1, 2))), asleep
        )
        return tuple(map(self._coverage, kept, distinct, errors))

    def reuse(self, tokens: Sequence[int] = TOKENS) -> Interval:
        """The reuse with which `distinct_experts` comes nearest to the neighbours here, see `fitted_reuse`.

        The interval holds how far sequences differ, and how far one reuse fails to fit all of `tokens`:
        STANDARD_ERRORS times the root of the sum of both squares. Raises UsageError where no two sequences
        are two tokens long.
        """
        kept, windows = self._windows([t for t in tokens if t > 1])
        if not kept:
            raise UsageError(f"sequences of one token show no reuse: record longer replies, {_RECORD}")
        (reuse, misfit), errors = _jackknife(
            lambda sequences: np.array(
                fitted_reuse(np.array(kept), _mean_distinct(sequences), self.top_k, self.count)
            ),
            windows,
        )
        return _between(reuse, math.hypot(errors[0], misfit), 0, 1)

    def reuse_beside_sequences(self, tokens: Sequence[int] = TOKENS) -> Interval:
        """The reuse among neighbours as seen from a curve of different sequences, which share experts too.

        t neighbours wake as many distinct experts as n = 1 + (t − 1)(1 − r) sequences, n being interpolated
        in `sequences`. The mean of r over the tokens t that have such an n; the interval holds every one of
        them with its neighbours' own. Raises UsageError where none has.
        """
        others = self.sequences(range(1, len(self.lengths)))
        known = [one.distinct.estimate for one in others]

        def reuse(t: int, distinct: float) -> float:
            n = float(np.interp(distinct, known, [one.tokens for one in others]))
            return min(max(1 - (n - 1) / (t - 1), 0.0), 1.0)

        found = [
            one for one in self.neighbours(tokens) if one.tokens > 1 and one.distinct.estimate <= known[-1]
        ]
        if not found:
            raise UsageError(f"too few sequences to compare neighbours with: record more replies, {_RECORD}")
        each = [reuse(one.tokens, one.distinct.estimate) for one in found]
        ends = [reuse(one.tokens, end) for one in found for end in (one.distinct.low, one.distinct.high)]
        return Interval(float(np.mean(each)), min(*each, *ends), max(*each, *ends))

    def _coverage(self, tokens: int, distinct: float, error: float) -> Coverage:
        return Coverage(tokens, _between(distinct, error, self.top_k, self.count))

    def _awake(self) -> Iterator[NDArray[np.bool_]]:
        """Of each sequence, whether a token uses an expert. [tokens, layers, experts]"""
        for experts in np.split(self.experts, np.cumsum(self.lengths)[:-1]):
            awake = np.zeros((*experts.shape[:2], self.count), np.bool_)
            np.put_along_axis(awake, experts.astype(np.intp), True, axis=2)
            yield awake

    def _windows(self, tokens: Iterable[int]) -> tuple[list[int], Array]:
        """Those of `tokens` that fit into two sequences or more, and for each sequence and each of these the
        distinct experts of a layer, summed over windows, and how many windows there are. [sequences, kept, 2]
        """
        kept = [t for t in tokens if sum(length >= t for length in self.lengths) > 1]
        sums = [[_windowed(uses, t) for t in kept] for uses in map(_running, self._awake())]
        return kept, np.array(sums).reshape(len(self.lengths), len(kept), 2)


def fitted_reuse(tokens: Array, distinct: Array, top_k: int, count: int) -> tuple[float, float]:
    """The reuse r of effective_tokens that fits distinct experts best, and how far single values are from it.

    n = ln(1 − distinct/E) / ln(1 − K/E) independent tokens wake as many, and n − 1 = (t − 1)(1 − r): a line
    through the origin, fitted by least squares. Weights (d distinct/d n / distinct)² make what is least the
    relative error of distinct experts, to first order. The second figure is the root mean square of the r of
    each t less the fitted one, weighted by its influence on that.
    """
    asleep = np.maximum(1 - distinct / count, _SURELY_ASLEEP)
    step = math.log(1 - top_k / count)
    more_tokens, more_independent = tokens - 1, np.log(asleep) / step - 1
    influence = (count * asleep * step / distinct * more_tokens) ** 2
    each = 1 - more_independent / more_tokens
    reuse = float(np.average(each, weights=influence))
    return reuse, math.sqrt(np.average((each - reuse) ** 2, weights=influence))


def _running(awake: NDArray[np.bool_]) -> NDArray[np.int32]:
    """How often each expert was used before each token, and in all. [tokens + 1, layers, experts]"""
    uses = np.zeros((len(awake) + 1, *awake.shape[1:]), np.int32)
    np.cumsum(awake, axis=0, out=uses[1:])
    return uses


def _windowed(uses: NDArray[np.int32], tokens: int) -> tuple[float, float]:
    """Distinct experts of a layer, summed over all windows of so many tokens, and the number of windows."""
    windows = max(len(uses) - tokens, 0)
    if not windows:
        return 0.0, 0.0
    return float((uses[tokens:] > uses[:-tokens]).sum()) / uses.shape[1], float(windows)


def _mean_distinct(sequences: Array) -> Array:
    """[sequences, tokens, 2], sums and windows, → their ratio. [tokens]"""
    sums: Array = sequences.sum(axis=0)
    return sums[:, 0] / sums[:, 1]


def _all_asleep(asleep: Array, most: int) -> Array:
    """The product of the values of c sequences, the mean over all choices of c, for c = 0 … `most`.

    [sequences, …] → [most + 1, …]. Of the choices out of the first s sequences, a share c/s holds the last
    of them. Up to the number of sequences; 0 beyond.
    """
    means = np.zeros((most + 1, *asleep.shape[1:]))
    means[0] = 1
    chosen = np.arange(1, most + 1).reshape(-1, *[1] * (asleep.ndim - 1))
    for s, one in enumerate(asleep, 1):
        means[1:] = means[1:] * (s - chosen) / s + one * means[:-1] * chosen / s
    return means


def _jackknife(statistic: Callable[[Array], Array], sequences: Array) -> tuple[Array, Array]:
    """A statistic of all sequences, and its standard errors by leaving out each in turn (Tukey 1958)."""
    n = len(sequences)
    without = np.array([statistic(np.delete(sequences, i, axis=0)) for i in range(n)])
    return statistic(sequences), np.sqrt((n - 1) * without.var(axis=0))


def _between(estimate: float, error: float, least: float, most: float) -> Interval:
    half = STANDARD_ERRORS * error
    values = (min(max(value, least), most) for value in (estimate, estimate - half, estimate + half))
    return Interval(*map(float, values))


def save_routing(trace: RoutingTrace, path: Path) -> None:
    """Replaces the file as a whole. Raises StorageError."""
    about = {
        "version": VERSION,
        "count": trace.count,
        "model": trace.model,
        "random_router": trace.random_router,
    }

    def write(partial: Path) -> None:
        with partial.open("wb") as file:
            np.savez_compressed(
                file,
                experts=trace.experts.astype(np.int32),
                lengths=np.array(trace.lengths, np.int64),
                about=np.array(json.dumps(about)),
            )

    with storing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, write)


def _check_unpacked(path: Path) -> None:
    """Raises ValueError for arrays larger than any trace: a few kilobytes may unpack to any size."""
    with zipfile.ZipFile(path) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
            raise ValueError("too large")


def load_routing(path: Path) -> RoutingTrace:
    """What `save_routing` wrote. Raises UsageError for anything else."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UsageError(f"{path} is no regular file: {_RECORD}")
    try:
        _check_unpacked(path)
        with np.load(path, allow_pickle=False) as arrays:
            about = json.loads(str(arrays["about"]))
            experts, lengths = arrays["experts"], arrays["lengths"]
        version = about["version"]
    except OSError as error:
        raise UsageError(f"cannot read {path} ({error.strerror or error}): {_RECORD}") from error
    except Exception as error:  # numpy, zipfile, zlib and tokenize each raise their own on damaged bytes
        raise UsageError(f"{path} is no trace of routing: {_RECORD}") from error
    if type(version) is not int or not 1 <= version <= VERSION:
        raise UsageError(
            f"{path} has format {version}, and this version reads up to {VERSION}: "
            "type  pip install -U breakeven"
        )
    try:
        if not np.issubdtype(lengths.dtype, np.integer):
            raise TypeError("lengths are no whole numbers")
        counts = tuple(lengths.tolist())
        trace = RoutingTrace(experts, counts, about["count"], about["model"], about["random_router"])
        for name, kind in (("count", int), ("model", str), ("random_router", bool)):
            if type(about[name]) is not kind:
                raise TypeError(f"{name} is {about[name]!r:.60}")
        return trace
    except (KeyError, TypeError, ValueError, UsageError) as error:
        raise UsageError(f"{path} is damaged ({error}): {_RECORD}") from error
