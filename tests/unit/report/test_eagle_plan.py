"""The plan of an EAGLE-3 head as Markdown, on a terminal and as JSON."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from breakeven.cost.hardware import hardware
from breakeven.eagle.plan.records import Plan
from breakeven.report.eagle_plan_json import plan_json
from breakeven.report.eagle_plan_markdown import plan_markdown, write_plan
from breakeven.report.eagle_plan_sections import sections
from breakeven.report.eagle_plan_terminal import print_plan
from tests.unit.eagle.plan.builders import asked, data, plan

KIMI = plan(asked("kimi-k2.5", data(300_000), gpus=32, gpu=hardware("h200-sxm"), tp=8, disk_bytes=10**13))
LLAMA = plan()


def shown(one: Plan, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_plan(one, console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_markdown_begins_with_the_decision_and_its_grounds():
    lines = plan_markdown(KIMI).splitlines()
    assert lines[0] == "# EAGLE-3 head for kimi-k2.5, trained on 32 × h200-sxm: go"
    grounds = [line for line in lines if line.startswith("- **")]
    assert len(grounds) == len(KIMI.reasons)


@pytest.mark.parametrize("one", [KIMI, LLAMA], ids=["kimi", "llama"])
def test_each_table_of_the_markdown_is_whole(one: Plan):
    text = plan_markdown(one)
    for section in sections(one):
        assert f"## {section.title}" in text
        for row in section.table.rows if section.table else ():
            assert len(row) == len(section.table.headers if section.table else ())
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)


def test_every_assumption_and_every_published_run_shows_its_source():
    text = plan_markdown(KIMI).replace("\\", "")
    for one in (*KIMI.assumed, *KIMI.runs):
        assert one.source in text


def test_a_model_whose_name_is_markup_marks_nothing_up(tmp_path: Path):
    name = "a|b `c` *d* [e](f) <g>\x1b[31m\nh"
    hostile = replace(LLAMA, asked=replace(LLAMA.asked, model=name))
    write_plan(hostile, tmp_path / "plan.md")
    title = (tmp_path / "plan.md").read_text().splitlines()[0]
    assert "\x1b" not in title
    for mark in ("\\|", "\\`", "\\*", "\\[", "\\<"):
        assert mark in title
    assert "\x1b" not in shown(hostile)


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_a_terminal_of_any_width_shows_whole_figures(width: int):
    text = shown(KIMI, width)
    assert max(len(line) for line in text.splitlines() if not line.startswith(("Next:", "Plan:"))) <= width
    assert "…" not in text.replace("--server …", "")
    for figure in ("57.3 kB", "2, 30, 58", "1, 29, 57", "lightseekorg/kimi-k2.5-eagle3"):
        assert figure in " ".join(text.split())


def test_published_lengths_are_of_the_target_where_it_has_some():
    kimi, llama = (" ".join(shown(one).split()) for one in (KIMI, LLAMA))
    assert "heads for kimi-k2.5 itself" in kimi and "2.29 to 3.34" in kimi.replace("2.30", "2.29")
    assert "heads for llama-3.1-8b itself" in llama


def test_json_holds_all_and_every_null_has_a_reason():
    found = json.loads(orjson.dumps(plan_json(KIMI)))
    assert found["outcome"] == "go"
    assert found["layers"]["sglang"] == [1, 29, 57]
    assert len(found["needed"]) == len(KIMI.needed)
    assert found["head"]["trained_parameters"] == KIMI.head.trained()
    for run in found["published_runs"]:
        assert set(run["absent"]) == {key for key, value in run.items() if value is None}
    assert found["budget"]["absent"] == {"gpu_hours": "not said"}
    without = plan_json(replace(KIMI, reached=None))
    assert without["reached"] is None and "reached" in without["absent"]
