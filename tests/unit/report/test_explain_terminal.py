"""The explanation on a terminal, and as JSON."""

from dataclasses import replace
from io import StringIO

import orjson
import pytest
from rich.console import Console

from breakeven.explain.explain import explain
from breakeven.explain.records import Explanation, Observation
from breakeven.report.explain_json import explain_json
from breakeven.report.explain_terminal import print_explanation
from tests.unit.explain.cases import calibrated, explained_kimi, kimi, llama
from tests.unit.report.builders import HOSTILE

MADE = explained_kimi(profiled_s={"all_reduce": 6.2e-3})


def shown(made: Explanation, width: int = 100, report: str | None = None) -> str:
    console = Console(file=StringIO(), width=width, highlight=False)
    print_explanation(made, console, report)
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_all_that_matters_is_said_at_any_width(width: int):
    text = flat(shown(MADE, width, "page.html"))
    for said in (
        "Observed −25.9 % to −8.8 %; predicted: a speedup at every draft share above 0.",
        "Verifying adds 0.24 to 0.49 plain steps to a step that drafts (experts, AllReduce)",
        "at least 5.6 (coding), 2.6 (math), 2.1 (structured), 1.2 (explanatory) ms per step",
        "even if nothing was ever drafted",
        "+3.46 to 4.87",
        "5.58 to 35.17",
        "Check: grep -i cudagraph",
        "Distinct experts as the sole cause",
        "breakeven calibrate URL",
        "Report: page.html",
    ):
        assert said in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_only_what_is_copied_is_wider_than_the_terminal(width: int):
    copied = ("   Check:", "kimi-k2.5 on")
    for text in shown(MADE, width).splitlines():
        assert len(text) <= width or text.startswith(copied), text


def test_the_first_three_lines_are_the_answer():
    first = shown(MADE, 80).splitlines()[:3]
    assert first[0] == "Observed −25.9 % to −8.8 %; predicted: a speedup at every draft share above 0."
    assert flat(" ".join(first[1:])).startswith("Unexplained: at least 5.6 (coding), 2.6 (math)")
    assert first[2].endswith("even if nothing was ever drafted.")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_command_is_alone_on_its_line(width: int):
    lines = [text.strip() for text in shown(MADE, width).splitlines()]
    for one in (*MADE.findings, *MADE.ruled_out):
        assert f"Check: {one.next_command}" in lines and "#" not in one.next_command
        assert one.check in flat(shown(MADE, width)) and one.check.endswith(".")


def test_no_number_is_cut_at_80_columns():
    assert "…" not in shown(MADE, 80).replace(" … ", "")


def test_a_wide_terminal_has_the_sources_beside_the_parts():
    assert any("1.04" in row and "384 distinct" in row for row in shown(MADE, 120).splitlines())
    assert not any("1.04" in row and "384 distinct" in row for row in shown(MADE, 80).splitlines())


def test_what_is_known_has_no_even_if():
    made = explain(llama(Observation("all", 0.010, 0.009, (0.3, 0.3), (1.0, 1.0))))
    text = flat(shown(made))
    assert "Unexplained:" in text and "even if" not in text and "at least" not in text


def test_a_speed_within_the_model_leaves_nothing_over():
    seen = Observation("all", 0.010, 0.0098, (0.0, 1.0), None)
    text = flat(shown(explain(llama(seen))))
    assert "Nothing need be left over" in text and "by what is not known" in text


def test_a_step_faster_than_modelled_is_said_to_be():
    seen = Observation("all", 0.010, 0.0031, (0.5, 0.5), (1.0, 1.0))
    assert "verifying is cheaper than modelled" in flat(shown(explain(llama(seen))))


def test_a_slowdown_that_is_explained_is_the_answer():
    seen = Observation("all", 0.010, 0.0102, (0.0, 0.0), (1.0, 1.0))
    text = flat(shown(explain(llama(seen))))
    assert "predicted: a slowdown at every draft share" in text
    assert "Verifying costs more than the accepted tokens save" in text


def test_names_cannot_write_on_the_terminal():
    first, *others = kimi().observations
    made = explained_kimi(observations=(replace(first, name=HOSTILE), *others))
    assert "\x1b" not in shown(made) and "\u202e" not in shown(made)
    orjson.dumps(explain_json(made))


def test_the_json_has_its_keys_and_a_reason_beside_each_null():
    values = explain_json(MADE)
    assert set(values) >= {"waterfall", "explained", "findings", "ruled_out", "unknown", "warnings"}
    experts = next(part for part in values["waterfall"] if part["part"] == "experts")
    assert experts["added_ms"]["low"] == pytest.approx(3.46163, abs=1e-4)
    first = values["explained"][0]
    assert first["name"] == "coding" and len(first["predicted"]) == 11
    assert first["unexplained_ms"]["low"] == pytest.approx(5.577283, abs=1e-5)
    assert first["observed"]["draft_share"] is None and "draft_share" in first["observed"]["absent"]
    assert {"id", "title", "evidence", "confidence", "next_command", "check"} <= set(values["findings"][0])
    check_nulls(values)


def check_nulls(value: object) -> None:
    if isinstance(value, list):
        for item in value:
            check_nulls(item)
    elif isinstance(value, dict):
        nulls = {key for key, item in value.items() if item is None}
        assert nulls <= set(value.get("absent", {})), value
        for item in value.values():
            check_nulls(item)


def test_a_measured_cost_is_said_to_be_measured():
    made = explained_kimi(measured=calibrated())
    text = flat(shown(made, 80))
    assert "plain steps to a step that drafts (as measured); acceptance pays for 0.85 to 1.55" in text
    assert (
        "whole step, not taken apart: 6 tokens instead of 1 on the concurrency curve of the calibration"
        in text
    )
    assert "Check: breakeven calibrate" not in text
    values = explain_json(made)
    check_nulls(values)
    assert [part["part"] for part in values["waterfall"]] == ["step"]
