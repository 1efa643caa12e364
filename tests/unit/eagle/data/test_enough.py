"""What few samples are said to give."""

from __future__ import annotations

import pytest

from breakeven.eagle.data.enough import too_few


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (1, ["1 training sample is few", "none is published of fewer than"]),
        (11, ["11 training samples are few", "none is published of fewer than"]),
        (
            50_000,
            [
                "50,000 training samples are few",
                "reached an acceptance length of 1.94",
                "SpecForge/issues/128",
            ],
        ),
        (299_999, ["acceptance length of"]),
    ],
)
def test_figures_of_published_heads(samples: int, words: list[str]) -> None:
    said = too_few(samples)
    assert said is not None
    for word in (*words, "general heads are trained on"):
        assert word in said


def test_enough_is_not_spoken_of() -> None:
    assert too_few(1_000_000) is None
