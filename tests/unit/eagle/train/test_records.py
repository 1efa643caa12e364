"""Acceptance lengths, and which validation is better."""

from __future__ import annotations

from dataclasses import asdict

import orjson
import pytest

from breakeven.eagle.train.records import Scores, Validation, acceptance_length, validation_from


def validation(length: float, loss: float) -> Validation:
    return Validation(3, Scores(loss, (loss, 1.0), (0.5, None), 7), length)


def test_acceptance_length():
    assert acceptance_length([]) == 1
    assert acceptance_length([0.5, 0.5, 0.2]) == pytest.approx(1 + 0.5 + 0.25 + 0.05)
    assert acceptance_length([0.5, None, None]) == 1.5
    assert Scores(1.0, (), (0.5, 0.5, 0.2), 1).length(2) == 1.75


def test_longer_beats_and_then_the_lower_loss():
    assert validation(2.0, 1.0).beats(None)
    assert validation(2.0, 1.0).beats(validation(1.9, 0.5))
    assert not validation(1.9, 0.5).beats(validation(2.0, 1.0))
    assert validation(2.0, 0.9).beats(validation(2.0, 1.0))
    assert not validation(2.0, 1.0).beats(validation(2.0, 1.0))


def test_round_trip():
    found = validation(2.0, 1.0)
    assert validation_from(orjson.loads(orjson.dumps(asdict(found)))) == found
