from typing import Any

import pytest

from breakeven.errors import UsageError
from breakeven.explain.observed import from_speeds
from breakeven.explain.records import Observation
from tests.unit.explain.cases import kimi, llama


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"k": 0}, "--k 1 to"),
        ({"k": 100_000}, "--k 1 to"),
        ({"observations": ()}, "--speeds"),
        ({"reuse": (0.5, 0.2)}, "low first"),
        ({"reuse": (0.0, 1.5)}, "--reuse"),
        ({"observations": (Observation("x", 0.01, 0.0),)}, "above 0"),
        ({"observations": (Observation("x", float("nan"), 0.01),)}, "above 0"),
        ({"observations": (Observation("x", 0.01, 0.01, (0.5, 1.1)),)}, "acceptance rate 0.5 to 1.1"),
        ({"observations": (Observation("x", 0.01, 0.01, None, (0.5, 0.2)),)}, "draft share 0.5 to 0.2"),
        ({"profiled_s": {"nccl": 0.001}}, "there are weights"),
        ({"profiled_s": {"kv": -0.001}}, "milliseconds, 0 or more"),
        ({"profiled_s": {"all_reduce": 0.013}}, "more than the plain step of 12.6 ms"),
        ({"tp": 3, "ep": 2}, "ep must divide tp"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], words: str):
    with pytest.raises(UsageError, match=words):
        kimi(**changes)


@pytest.mark.parametrize(
    "speeds", [(0.0, 1.0), (1.0, 0.0), (-3.0, 1.0), (float("inf"), 1.0), (1.0, float("nan"))]
)
def test_a_speed_is_above_0(speeds: tuple[float, float]):
    with pytest.raises(UsageError, match=r"--speeds coding: .* is no speed"):
        from_speeds("coding", *speeds)


def test_one_device_has_no_link_in_its_name():
    assert llama(Observation("x", 0.01, 0.01)).device == "h100-sxm"


@pytest.mark.parametrize(
    "lacking", [{"geometry": None}, {"hardware": None}, {"geometry": None, "hardware": None}]
)
def test_without_a_calibration_both_model_and_hardware_are_needed(lacking: dict[str, None]):
    with pytest.raises(UsageError, match=r"--calibration FOLDER .* --model X --hardware Y"):
        kimi(**lacking)
