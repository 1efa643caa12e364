"""What must be said beside the figures of an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from breakeven.acceptance.counters import LEAST_DRAFTS
from breakeven.eagle.shape import LAYER_IDS
from breakeven.units import count, share

LEAST_GREEDY = 0.95
"""Of the tokens of replies written at temperature 0. Kernels and number formats turn near ties; a wrong layer
or template turns far more. The figure between them is an assumption."""


def doubts(
    drafts: int, greedy_share: float, reply_temperature: float | None, unnamed: Sequence[int] | None
) -> Iterator[str]:
    """A sentence for each; `greedy_share` and `reply_temperature` as in Evaluation.

    `unnamed` are the layers that a head was given whose configuration names none.
    """
    if unnamed is not None:
        yield (
            f"the head's configuration has no {LAYER_IDS}: it was given layers {list(unnamed)}, as engines "
            "give it then"
        )
    if drafts < LEAST_DRAFTS:
        yield (
            f"there are {count(drafts, 'draft')}, and shares of fewer than {LEAST_DRAFTS} tell little: hold "
            "out more prompts"
        )
    if reply_temperature == 0 and greedy_share < LEAST_GREEDY:
        yield (
            f"the replies were written at temperature 0, and by the states only {share(greedy_share)} of "
            "their tokens are the target's most probable: states and replies may be of different targets, "
            "templates or number formats, and then a head learned from the wrong ones"
        )
    if reply_temperature is None:
        yield (
            f"the replies were recorded elsewhere: by the states {share(greedy_share)} of their tokens are "
            "the target's most probable, and what the target would write now may be easier or harder to draft"
        )
    elif reply_temperature > 0:
        yield (
            f"the replies were sampled at temperature {reply_temperature:g}: accepted is what a head that "
            "drafts its most probable token has accepted on them, as vLLM lets it by default"
        )
