"""A shift by one layer is silent, and costs acceptance."""

from __future__ import annotations

import pytest

from breakeven.eagle.layers import (
    LEAST_LAYERS,
    SHIFT,
    Convention,
    check_layers,
    default_layers,
    engine_layers,
    read_from,
    written_as,
)
from breakeven.errors import UsageError


@pytest.mark.parametrize(
    ("layers", "chosen"),
    [(32, (2, 16, 29)), (36, (2, 18, 33)), (61, (2, 30, 58)), (80, (2, 40, 77)), (7, (2, 3, 4))],
)
def test_the_defaults_are_the_published_ones(layers: int, chosen: tuple[int, ...]) -> None:
    assert default_layers(layers) == chosen == engine_layers(layers)
    assert check_layers(chosen, layers) == chosen


@pytest.mark.parametrize("layers", range(LEAST_LAYERS))
def test_too_few_layers_are_told_to_name_three(layers: int) -> None:
    with pytest.raises(UsageError, match=r"layers = \[1, 2, 3\]"):
        default_layers(layers)


@pytest.mark.parametrize("layers", range(LEAST_LAYERS, 200))
def test_the_defaults_are_three_of_the_targets_layers(layers: int) -> None:
    assert len(set(default_layers(layers))) == 3
    check_layers(default_layers(layers), layers)


@pytest.mark.parametrize("chosen", [[], [1, 2], [1, 2, 3, 4], [3, 2, 1], [1, 1, 2], [0, 1, 2], [1, 2, 9]])
def test_other_choices_are_refused(chosen: list[int]) -> None:
    with pytest.raises(UsageError, match="three rising numbers from 1 to 8"):
        check_layers(chosen, 8)


def test_sglang_and_specforge_name_the_layer_before() -> None:
    layers = default_layers(32)
    assert written_as(layers, "vllm") == written_as(layers, "speculators") == [2, 16, 29]
    assert written_as(layers, "sglang") == written_as(layers, "specforge") == [1, 15, 28]
    assert set(SHIFT) == {"vllm", "speculators", "sglang", "specforge"}


@pytest.mark.parametrize("convention", SHIFT)
def test_what_was_written_is_read_again(convention: Convention) -> None:
    assert read_from(written_as((2, 16, 29), convention), convention) == (2, 16, 29)
