"""calibration.json: what is written is read back, and nothing else is."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.cost.calibration import FILE, Calibration, load_calibration, save_calibration
from breakeven.cost.curve import CurvePoint
from breakeven.cost.visits import with_visit
from breakeven.errors import UsageError
from breakeven.trace.run import ServerInfo

POINTS = (
    CurvePoint(1, 0.010, 0.0099, 0.0101, 24, 6, 0, 90.5),
    CurvePoint(2, 0.012, 0.0118, 0.0123, 16, 6, 1, None, ("the client fell behind",)),
    CurvePoint(4, 0.015, 0.0148, 0.0151, 16, 8, 0, 91.0),
)
VISITED = reduce(
    with_visit,
    (
        CurvePoint(1, 0.010, 0.0099, 0.0101, 24, 3, 0, 90.0),
        CurvePoint(2, 0.012, 0.0118, 0.0123, 16, 3, 1, None, ("the client fell behind",)),
        CurvePoint(4, 0.015, 0.0148, 0.0151, 16, 4, 0, 91.0),
        CurvePoint(2, 0.013, 0.0128, 0.0133, 12, 3, 0, 92.0),
        CurvePoint(1, 0.011, 0.0109, 0.0111, 20, 3, 0, 94.0),
    ),
    cast(tuple[CurvePoint, ...], ()),
)
CALIBRATION = Calibration(
    created="2026-01-01T12:00:00+00:00",
    breakeven_version="0.1.0",
    url="http://127.0.0.1:8000/v1",
    api="chat",
    model="m",
    server=ServerInfo("vllm", "0.32.0", {"max_model_len": 4096}, {"later": 1}),
    workload="default",
    max_tokens=128,
    moe=True,
    points=POINTS,
    complete=True,
    notes=("a note",),
)


def written(path: Path, **changes: Any) -> Path:
    """A calibration.json with some keys changed."""
    save_calibration(CALIBRATION, path / FILE)
    value = json.loads((path / FILE).read_text())
    (path / FILE).write_text(json.dumps({**value, **changes}))
    return path / FILE


@pytest.mark.parametrize("name", ["", FILE])
def test_it_comes_back_as_it_was(name: str, tmp_path: Path):
    save_calibration(CALIBRATION, tmp_path / FILE)
    assert load_calibration(tmp_path / name) == CALIBRATION
    assert [entry.name for entry in tmp_path.iterdir()] == [FILE]


def test_visits_come_back_as_they_were(tmp_path: Path):
    kept = replace(CALIBRATION, points=VISITED)
    save_calibration(kept, tmp_path / FILE)
    assert load_calibration(tmp_path) == kept
    value = json.loads((tmp_path / FILE).read_text())
    assert [[visit["step_ms"] for visit in point["visits"]] for point in value["points"]] == [
        [10.0, 11.0], [12.0, 13.0], [15.0],
    ]  # fmt: skip
    assert value["between_visits"]["dof"] == 2 and 0.05 < value["between_visits"]["deviation"] < 0.07
    assert sum("calibrate again in a quiet window" in said for said in value["warnings"]) == 1


def test_a_file_of_before_visits_still_loads(tmp_path: Path):
    value = json.loads(written(tmp_path).read_text())
    del value["between_visits"]
    for point in value["points"]:
        del point["visits"]
    (tmp_path / FILE).write_text(json.dumps(value))
    old = load_calibration(tmp_path)
    assert old == CALIBRATION and not any("visit" in said or "twice" in said for said in old.warnings())


@given(st.lists(st.floats(1e-6, 10), min_size=3, max_size=3))
def test_any_times_come_back_to_the_last_bit(seconds: list[float]):
    low_s, step_s, high_s = sorted(seconds)
    kept = replace(CALIBRATION, points=(CurvePoint(1, step_s, low_s, high_s, 5),))
    with TemporaryDirectory() as folder:
        save_calibration(kept, Path(folder) / FILE)
        assert load_calibration(Path(folder)) == kept


def test_the_file_has_the_points_in_ms_and_the_fit(tmp_path: Path):
    value = json.loads(written(tmp_path).read_text())
    first = value["points"][0]
    assert {key: first[key] for key in ("concurrency", "step_ms", "n", "low", "high")} == {
        "concurrency": 1, "step_ms": 10.0, "n": 24, "low": 9.9, "high": 10.1,
    }  # fmt: skip
    assert value["server"]["flags"] == {"max_model_len": 4096} and value["server"]["later"] == 1
    assert [knot["tokens"] for knot in value["fit"]["knots"]] == [1, 2, 4] and value["fit"]["monotone"]
    assert value["points"][1]["absent"]["context_tokens"]


def test_too_few_points_have_no_fit_and_a_reason(tmp_path: Path):
    save_calibration(replace(CALIBRATION, points=POINTS[:2], complete=False), tmp_path / FILE)
    value = json.loads((tmp_path / FILE).read_text())
    assert value["fit"] is None and "3 points" in value["absent"]["fit"] and value["complete"] is False
    with pytest.raises(UsageError, match="2 measured points"):
        load_calibration(tmp_path).curve()


def test_warnings_hold_notes_doubts_and_what_experts_mean():
    said = "; ".join(CALIBRATION.warnings())
    assert "a note" in said and "at concurrency 2: the client fell behind" in said
    assert "upper bound" in said and "not known" not in said
    assert "not known" in replace(CALIBRATION, moe=None).warnings()[-1]
    assert "upper bound" not in "; ".join(replace(CALIBRATION, moe=False).warnings())


def test_the_fit_in_the_file_is_not_believed(tmp_path: Path):
    assert load_calibration(written(tmp_path, fit={"model": "other"})).curve() == CALIBRATION.curve()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": 2}, "pip install -U breakeven"),
        ({"version": "1"}, "is no calibration"),
        ({"version": 0}, "format 0, which there never was"),
        ({"notes": "text"}, "no list of sentences"),
        ({"points": [{}] * 1001}, "1001 points"),
        ({"points": ["x"]}, "is damaged"),
        ({"points": 3}, "is damaged"),
        ({"server": None}, "is damaged"),
        ({"server": "vllm"}, "is damaged"),
        ({"moe": "yes"}, "moe is 'yes'"),
        ({"model": 7}, "model is '7'"),
        ({"api": "grpc"}, "api is 'grpc'"),
    ],
)
def test_what_no_calibration_holds_is_refused(changes: dict[str, Any], said: str, tmp_path: Path):
    path = written(tmp_path, **changes)
    with pytest.raises(UsageError, match=said):
        load_calibration(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"step_ms": 0}, "times out of order"),
        ({"low": 11.0}, "times out of order"),
        ({"step_ms": "fast"}, "'fast' is no time in ms"),
        ({"step_ms": True}, "'True' is no time in ms"),
        ({"high": 1e308}, "a time of 1e.308 ms"),
        ({"n": -1}, "less than nothing"),
        ({"context_tokens": -5}, "less than nothing"),
        ({"concurrency": 2}, "concurrency 2 after 2"),
        ({"n": 1.5}, "n is '1.5'"),
        ({"visits": 3}, "is damaged"),
        ({"visits": ["x"]}, "is damaged"),
        ({"visits": [{"step_ms": 0}]}, "is damaged"),
    ],
)
def test_an_impossible_point_is_refused(change: dict[str, Any], said: str, tmp_path: Path):
    points = json.loads(written(tmp_path).read_text())["points"]
    path = written(tmp_path, points=[{**points[0], **change}, *points[1:]])
    with pytest.raises(UsageError, match=said):
        load_calibration(path)


def test_other_files_are_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot read"):
        load_calibration(tmp_path)
    (tmp_path / FILE).write_text("{")
    with pytest.raises(UsageError, match="is no JSON"):
        load_calibration(tmp_path)
    (tmp_path / FILE).write_text("[1]")
    with pytest.raises(UsageError, match=r"is no calibration.*breakeven calibrate URL"):
        load_calibration(tmp_path)


def test_a_pipe_and_a_device_are_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UsageError, match="is no calibration"):
            load_calibration(path)


def test_a_doubt_of_several_points_is_one_that_names_them():
    lags = [replace(point, reasons=(f"lagged {n}.5 ms",)) for n, point in enumerate(POINTS)]
    said = replace(CALIBRATION, points=tuple(lags), notes=()).warnings()
    of = ", ".join(str(point.concurrency) for point in POINTS)
    assert [one for one in said if "lagged" in one] == [
        f"at concurrency {of}, by the figures of the first: lagged 0.5 ms"
    ]
