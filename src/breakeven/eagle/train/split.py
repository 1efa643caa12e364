"""Which training samples are kept for validation: by prompt, so that no reply to one of them is learned."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.eagle.data.samples import Sample
from breakeven.errors import UsageError

FEWEST = 2


@dataclass(frozen=True, slots=True)
class Split:
    """Samples that are learned from, and others that tell how well."""

    train: tuple[Sample, ...]
    validation: tuple[Sample, ...]


def split(samples: Sequence[Sample], share: float, seed: int) -> Split:
    """By prompt: equal prompts fall on one side. Depends on the prompts and the seed, not on their order.

    At least one prompt is on each side, unless `share` is 0. Samples without a reply are left out: the first
    token counts as none, since a head drafts from the second on. Raises UsageError for too few prompts.
    """
    useful = [sample for sample in samples if sample.loss_mask[1:].any()]
    kept = _kept({_rank(sample, seed) for sample in useful}, share)
    validation = [_rank(sample, seed) in kept for sample in useful]
    return Split(
        tuple(sample for sample, apart in zip(useful, validation, strict=True) if not apart),
        tuple(sample for sample, apart in zip(useful, validation, strict=True) if apart),
    )


def _kept(ranks: set[bytes], share: float) -> set[bytes]:
    if not ranks:
        raise UsageError("no training sample has a reply to learn from: name other sources in the recipe")
    if share == 0:
        return set()
    if len(ranks) < FEWEST:
        raise UsageError(
            "all training samples have one prompt, and some prompts have to be kept for validation: give "
            "more data, or write  validation = 0  under [train] of the recipe"
        )
    kept = min(max(1, round(share * len(ranks))), len(ranks) - 1)
    return set(sorted(ranks)[:kept])


def _rank(sample: Sample, seed: int) -> bytes:
    prompt = sample.input_ids[: sample.prompt_tokens].tobytes()
    return hashlib.sha256(seed.to_bytes(8, "little") + prompt).digest()
