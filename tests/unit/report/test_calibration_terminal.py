"""A calibration in words."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from breakeven.cost.calibration import Calibration
from breakeven.cost.curve import CurvePoint
from breakeven.cost.measured import Measured
from breakeven.cost.step import PLAIN_STEP, Step
from breakeven.cost.visits import with_visit
from breakeven.report.calibration_terminal import print_calibration
from breakeven.trace.run import ServerInfo

POINTS = tuple(
    CurvePoint(c, ms / 1e3, ms / 1e3 * 0.99, ms / 1e3 * 1.01, 24)
    for c, ms in ((1, 10.0), (2, 10.5), (4, 11.5), (8, 14.0))
)
CALIBRATION = Calibration(
    "2026-01-01T12:00:00+00:00", "0.1.0", "http://h/v1", "chat", "some-model", ServerInfo("vllm", "0.32.0"),
    "default", 128, True, POINTS, True,
)  # fmt: skip


def shown(calibration: Calibration, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_calibration(calibration, "runs/x/calibration.json", console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(len(line) <= width for line in text.splitlines())
    return " ".join(text.split())


@pytest.mark.parametrize("width", [60, 100])
def test_points_windows_line_and_bound(width: int):
    said = shown(CALIBRATION, width)
    for words in (
        "some-model, vllm 0.32.0",
        "11.50",
        "11.38 – 11.62",
        "+15.0 %",
        "ms per token; off by",
        "upper bound of the cost of verification",
        "Calibration: runs/x/calibration.json",
        "Next: breakeven forecast RECORD --calibration runs/x",
        "added = step / that of 1 in flight − 1",
    ):
        assert words in said


def test_a_dense_model_verifies_at_the_curve_itself():
    said = shown(replace(CALIBRATION, moe=False))
    assert "3: 1.15× (1.13× to 1.17×)" in said and "; 7: 1.40×" in said


@pytest.mark.parametrize("moe", [True, None])
def test_where_there_may_be_experts_it_agrees_with_a_forecast(moe: bool | None):
    of = Measured(CALIBRATION.curve(), moe).relative(Step(4), PLAIN_STEP)
    said = shown(replace(CALIBRATION, moe=moe))
    assert f"3: {of.estimate:.2f}× ({of.low:.2f}× to {of.high:.2f}×)" in said
    assert of.low < 1.13, "neighbouring tokens may share experts"


def test_what_the_visits_tell_of_the_machine_is_said():
    points: tuple[CurvePoint, ...] = ()
    for c, factor in ((1, 1.0), (2, 1.0), (4, 1.0), (4, 1.2), (2, 1.2), (1, 1.2)):
        step_s = (0.010 + 0.001 * c) * factor
        points = with_visit(points, CurvePoint(c, step_s, step_s * 0.999, step_s * 1.001, 8))
    said = shown(replace(CALIBRATION, points=points))
    assert "the machine differed by 12.9 % (standard deviation, beyond scatter, of 3 second visits)" in said
    assert "more than their scatter explains, at concurrency 1 (+20.0 %), 2 (+20.0 %)" in said


def test_without_a_fit_the_points_are_there():
    said = shown(replace(CALIBRATION, points=POINTS[:2], moe=False))
    assert "Next:" not in said
    assert "10.50" in said and "Straight line" not in said and "upper bound" not in said


def test_a_build_that_llama_cpp_does_not_know_is_said_to_be_unknown():
    said = shown(replace(CALIBRATION, server=ServerInfo("llama.cpp", "b0-unknown")))
    assert "some-model, llama.cpp (build not known): a decode step" in said


def test_no_draft_is_said_to_make_a_step_shorter():
    noisy = tuple(
        CurvePoint(c, ms / 1e3, ms / 5e3, ms / 0.2e3, 6) for c, ms in ((1, 10.0), (2, 10.1), (4, 11.0))
    )
    for moe in (True, False, None):
        said = shown(replace(CALIBRATION, points=noisy, moe=moe))
        assert "3: " in said and said.count("(1.00× to") == 2


def test_nothing_that_a_server_says_reaches_the_terminal_raw():
    said = shown(replace(CALIBRATION, model="\x1b[31mred\x1b]0;x\x07[bold]", notes=("\x1b[2Jgone",)))
    assert "\x1b" not in said and "red[bold]" in said and "gone" in said
