"""The explanation on a terminal, and as JSON."""

from dataclasses import replace
from io import StringIO

import orjson
import pytest
from rich.console import Console

from breakeven.explain.explain import explain
from breakeven.explain.records import Explanation, Observation
from breakeven.report.explain_html import explain_page
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


SIX = {
    "a": 0.0034, "b": 0.0033, "c": 0.0032, "d": 0.0031, "e": 0.0035, "f": 0.0099,
}  # fmt: skip
"""Candidate TPOTs of six prompts, five of them far faster than half of four drafted tokens can make them."""


def six(**candidates: float) -> Explanation:
    seen = [Observation(name, 0.010, tpot, (0.2, 0.3), (0.0, 1.0)) for name, tpot in candidates.items()]
    return explain(replace(llama(seen[0]), observations=tuple(seen)))


@pytest.mark.parametrize("page", [False, True])
def test_one_prompt_that_the_model_allows_does_not_speak_for_the_others(page: bool):
    made = six(**SIX)
    said = explain_page(made) if page else flat(shown(made))
    assert "Faster than the model allows in 5 of 6 (a, b, c, d, e), within it in 1." in said
    assert "Nothing need be left over" not in said


def test_all_sides_of_the_model_are_counted():
    made = six(**{**SIX, "e": 0.014, "d": 0.02})
    said = flat(shown(made))
    assert "Faster than the model allows in 3 of 6 (a, b, c), slower than the model allows in 2 of 6" in said
    assert "(d, e), within it in 1." in said and "Unexplained: at least 10.0 (d), 4.0 (e) ms per step" in said
    sides = [one["against_model"] for one in explain_json(made)["explained"]]
    assert sides == ["faster"] * 3 + ["slower"] * 2 + ["within"]


def test_where_all_lie_within_the_model_that_is_said():
    said = flat(shown(six(a=0.0099, f=0.0098)))
    assert "Nothing need be left over: what was observed lies within what the model allows." in said


def test_many_names_are_cut_and_counted():
    assert "(p0, p1, p2, p3, p4, p5 and 2 more)" in flat(
        shown(six(**{f"p{n}": 0.003 for n in range(8)}, f=0.0099))
    )


def test_the_least_assumes_what_holds_for_each():
    seen = [
        Observation("a", 0.010, 0.014, (0.2, 0.3), (0.5, 0.5)),
        Observation("b", 0.010, 0.014, (0.2, 0.3), (0.4, 0.4)),
    ]
    said = flat(shown(explain(replace(llama(seen[0]), observations=tuple(seen)))))
    assert "Unexplained: at least" in said and "ms per step. Slower" not in said and "even if" not in said


def test_outcomes_that_differ_are_counted():
    seen = [
        Observation(name, 0.010, 0.010, rates)
        for name, rates in (("a", (0.6, 0.7)), ("b", (0.0, 0.0)), ("c", (0.0, 1.0)))
    ]
    made = explain(replace(llama(seen[0]), observations=tuple(seen)))
    said = "predicted: a speedup for 1, a slowdown for 1, a speedup or a slowdown for 1 of 3."
    assert said in flat(shown(made))


def test_without_hardware_the_heading_is_what_is_known():
    seen = Observation("all", 0.013, 0.014, (0.5, 0.5), (1.0, 1.0))
    curve = calibrated(moe=False)
    bare = llama(seen, model=None, geometry=None, hardware=None, measured=curve, engine="llama.cpp")
    text = shown(explain(replace(bare, engine_version="b0-unknown")))
    assert "A model without a name, llama.cpp (build not known), eagle3 k=4" in text
    values = explain_json(explain(bare))
    assert values["model"] is values["hardware"] is None and {"model", "hardware"} <= set(values["absent"])


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
    said = flat(shown(explain(llama(seen))))
    assert "Faster than the model allows: the step took less time than the cheapest one possible." in said


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
