"""Which of the target's hidden states a head reads, as each tool writes it. A shift by one is silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from breakeven.errors import UsageError

Convention = Literal["vllm", "speculators", "sglang", "specforge"]
FIRST, BEFORE_LAST, AUX = 2, 3, 3
LEAST_LAYERS = 7
"""Fewer, and the default layers are not three."""
SHIFT: Mapping[Convention, int] = {"vllm": 0, "speculators": 0, "sglang": -1, "specforge": -1}
"""What is added to the layer whose *input* is read: SGLang and SpecForge name the layer whose output it
is."""


def engine_layers(layers: int) -> tuple[int, ...]:
    """Layers whose inputs vLLM 0.32 and SGLang read for a head that names none: 2, n // 2, n − 3, as the code
    of EAGLE-3 has it; three different ones from a target of LEAST_LAYERS on."""
    return FIRST, layers // 2, layers - BEFORE_LAST


def default_layers(layers: int) -> tuple[int, ...]:
    """The same, for a recipe that names none.

    Raises UsageError for a target with too few layers for three of them.
    """
    if layers < LEAST_LAYERS:
        raise UsageError(
            f"a target of {layers} layers has no three to read by default, as one of {LEAST_LAYERS} or more "
            "has: a recipe names others, such as  layers = [1, 2, 3]  under [states], each from 1 to the "
            "number of layers"
        )
    return engine_layers(layers)


def check_layers(chosen: Sequence[int], layers: int) -> tuple[int, ...]:
    """The same, as a tuple. Raises UsageError unless there are three, rising, from 1 to `layers`."""
    if (
        len(chosen) != AUX
        or list(chosen) != sorted(set(chosen))
        or not 1 <= chosen[0] <= chosen[-1] <= layers
    ):
        raise UsageError(
            f"layers = {list(chosen)}: write three rising numbers from 1 to {layers}; each names the layer "
            "whose input is read, as vLLM counts"
        )
    return tuple(chosen)


def written_as(layers: Sequence[int], convention: Convention) -> list[int]:
    """The same hidden states as that tool's configuration names them."""
    return [layer + SHIFT[convention] for layer in layers]


def read_from(ids: Sequence[int], convention: Convention) -> tuple[int, ...]:
    """What `written_as` wrote: the layers whose inputs are read, as vLLM counts."""
    return tuple(one - SHIFT[convention] for one in ids)
