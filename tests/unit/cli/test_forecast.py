"""`breakeven forecast`: which settings it tries where none are named."""

from __future__ import annotations

from typing import Any

import pytest

from breakeven.cli.forecast import (
    CONCURRENCIES,
    ENGINES,
    KS,
    MOST_SETTINGS,
    _concurrencies,
    _grid,
    drafters_of,
)

NOTHING: dict[str, Any] = {"drafter_names": (), "ks": None, "n_ranges": None}


@pytest.mark.parametrize("engine", [*ENGINES, None, "an engine of 2030"])
def test_the_default_grid_is_of_the_engine_and_small(engine: str | None):
    grid = _grid(NOTHING, engine)
    assert {name for name, _ in grid} == set(drafters_of(engine))
    assert len(KS) <= len(grid) <= MOST_SETTINGS
    assert {settings["k"] for _, settings in grid if "k" in settings} == set(KS)


def test_the_drafters_of_an_engine():
    assert list(drafters_of("vllm")) == list(drafters_of(None)) == ["vllm-ngram", "vllm-suffix"]
    assert all(name.startswith("llamacpp-") for name in drafters_of("llama.cpp"))
    assert list(drafters_of("sglang")) == ["sglang-ngram"]


def test_concurrencies_reach_as_far_as_the_calibration():
    assert _concurrencies(None, None) == CONCURRENCIES
    assert _concurrencies(None, 12) == (1, 2, 4, 8, 12) and _concurrencies(None, 16) == (1, 2, 4, 8, 16)
    assert _concurrencies((3, 64), 16) == (3, 64)


def test_what_is_named_is_tried_in_full():
    asked = {"drafter_names": ("vllm-ngram",), "ks": (2, 3), "n_ranges": tuple((1, n) for n in range(1, 40))}
    assert len(_grid(asked, "llama.cpp")) == 78
    assert len(_grid({**NOTHING, "ks": tuple(range(1, 101))}, "vllm")) == 200, "one n range, as none fits"
