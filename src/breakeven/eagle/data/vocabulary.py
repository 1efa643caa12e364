"""vocabulary.json: which of the target's tokens a head can draft, by how often the target wrote them."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from breakeven.errors import RunFormatError, UsageError
from breakeven.trace.files import storing, write_bytes_atomically

VOCABULARY = "vocabulary.json"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A head's own vocabulary: draft id i is target id `draft_ids[i]`."""

    target_size: int
    """Rows of the target's output layer."""
    draft_ids: NDArray[np.int64]
    """Target ids, ascending."""
    coverage: float
    """Share of the training tokens, those with loss, that are in it: no head can be right more often."""

    @property
    def size(self) -> int:
        """How many tokens can be drafted."""
        return len(self.draft_ids)


def choose(counts: NDArray[np.int64], size: int, always: Collection[int]) -> Vocabulary:
    """The `size` tokens that occur most, of `counts` by target id; of equals the lower ids.

    `always` are in it however rare: what ends or structures a reply. A size of 0, or one that the target's
    vocabulary does not exceed, is the target's own. Raises what `check_size` does.
    """
    target_size = len(counts)
    kept = check_size(size, always, target_size)
    if not 0 < size < target_size:
        chosen = np.arange(target_size)
    else:
        ranked = np.argsort(-counts, kind="stable")
        others = ranked[~np.isin(ranked, kept)]
        chosen = np.sort(np.concatenate([kept, others[: size - len(kept)]]))
    return Vocabulary(target_size, chosen, share_in(counts, chosen) or 0.0)


def check_size(size: int, always: Collection[int], target_size: int) -> NDArray[np.int64]:
    """Those of `always` that the target has, ascending. Raises UsageError where they alone are more than
    `size`."""
    kept = np.array(sorted({token for token in always if 0 <= token < target_size}), np.int64)
    if 0 < size < len(kept):
        raise UsageError(
            f"draft_vocabulary = {size} has no room for the target's {len(kept)} special tokens: write  "
            f"draft_vocabulary = {min(max(32_000, len(kept)), target_size)}  under [data] of the recipe"
        )
    return kept


def share_in(counts: NDArray[np.int64], ids: NDArray[np.int64]) -> float | None:
    """Of the tokens that `counts` holds by target id, the share that `ids` have; None where it holds none."""
    total = int(counts.sum())
    return int(counts[ids].sum()) / total if total else None


def write_vocabulary(path: Path, vocabulary: Vocabulary) -> None:
    """Whole or not at all. Raises StorageError."""
    record = {
        "target_size": vocabulary.target_size,
        "draft_ids": vocabulary.draft_ids.tolist(),
        "coverage": vocabulary.coverage,
    }
    data = orjson.dumps(record)
    with storing(path.parent):
        write_bytes_atomically(path, data)


def read_vocabulary(path: Path, target_size: int | None = None) -> Vocabulary:
    """The map in a file.

    Raises RunFormatError for a file that is missing or damaged; UsageError where the target has fewer tokens
    than the map, or another number than it was made for.
    """
    try:
        said: Any = orjson.loads(path.read_bytes())
        size, ids, coverage = said["target_size"], said["draft_ids"], said["coverage"]
        _check(size, ids, coverage)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFormatError(
            f"{path} cannot be read ({error}): type  breakeven eagle data RECIPE --fresh"
        ) from error
    if target_size is not None and target_size != size:
        smaller = ", fewer than the map reaches" if target_size <= ids[-1] else ""
        raise UsageError(
            f"{path} was made for a target of {size:,} tokens, and this one has {target_size:,}{smaller}: "
            "name the model that the data were made for under [target] of the recipe, or type  breakeven "
            "eagle data RECIPE --fresh"
        )
    return Vocabulary(size, np.array(ids, np.int64), float(coverage))


def _check(size: Any, ids: Any, coverage: Any) -> None:
    """Raises ValueError or TypeError."""
    if type(size) is not int or type(coverage) not in (int, float) or not 0 <= coverage <= 1:
        raise ValueError("target_size is no number, or coverage no share")
    if not isinstance(ids, list) or not ids or not set(map(type, ids)) <= {int}:
        raise ValueError("draft_ids is no list of token ids")
    if any(one >= other for one, other in itertools.pairwise(ids)):
        raise ValueError("draft_ids do not rise")
    if ids[0] < 0 or ids[-1] >= size:
        raise ValueError(f"draft_ids reach beyond the vocabulary of {size} tokens")
