"""What is watched, as a picture, as lines, and as JSON."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from breakeven.acceptance.counters import DEFINITIONS as RATIOS
from breakeven.report.watch_json import watch_json
from breakeven.report.watch_live import LiveView, asked_words, print_lines, print_view
from breakeven.report.watch_words import TITLES, row, sentence
from breakeven.watch.state import DEFINITIONS, ServerState
from tests.unit.watch.states import DOWN, HOSTILE, NOW, PAYS, UNKNOWN, UP

ASKED = asked_words(5.0, 60.0, "runs/c")


def picture(*states: ServerState, width: int = 140) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_view(states, console, ASKED)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(len(line) <= width for line in text.splitlines())
    return text


@pytest.mark.parametrize("width", [60, 100, 140])
def test_every_figure_and_its_definition(width: int):
    text = picture(UP, width=width)
    said = " ".join(text.split())
    for words in (
        "breakeven watch, every 5.0 s, over the last 1 min 00 s, by runs/c",
        "http://h:8000 (some-model, vllm)",
        "pays 1.32× (1.18 to 1.44)",
        "37.5 %",
        "40.0 %",
        "1.60",
        "2.50",
        "25.0 %",
        "61.2",
        "75 % 50 % 25 % 0 %",
        "drafting: what is known of it",
    ):
        assert " ".join(words.split()) in said.replace(
            "http://h:8000 (some- model", "http://h:8000 (some-model"
        )
    for name in (*TITLES, "accepted_per_position"):
        assert DEFINITIONS[name] in said


@pytest.mark.parametrize("width", [60, 100, 160])
def test_a_server_that_is_gone_stands_beside_one_that_is_there(width: int):
    text = picture(UP, DOWN, width=width)
    assert "no answer" in text and "nothing answers at http://gone:8000" in text and "1.32×" in text


def test_what_is_not_derivable_says_why():
    said = " ".join(picture(UNKNOWN).split())
    assert "speculation: not derivable: no drafts" in said
    assert "draft share: not derivable: llama.cpp /metrics does not count" in said
    assert row(UNKNOWN).cells["acceptance_rate"] == "–" and row(UNKNOWN).cells["requests_running"] == "–"


def test_a_range_is_shown_as_one():
    ratios = tuple(
        replace(one, value=replace(one.value, low=0.35, high=0.5))
        if one.name == "draft_share" and one.value
        else one
        for one in NOW.ratios
    )
    assert row(replace(UP, now=replace(NOW, ratios=ratios))).cells["draft_share"] == "40.0 % (35.0 to 50.0)"


def test_resets_are_told():
    assert "started anew" in picture(replace(UP, resets=2))


@pytest.mark.parametrize("width", [60, 140])
def test_hostile_text_is_shown_safely(width: int):
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_view([HOSTILE], console, ASKED)
    print_lines([HOSTILE], console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text
    assert "[bold]" in text.replace("\n", "")
    text.encode()


def test_one_line_for_each_server():
    console = Console(file=io.StringIO(), width=60, highlight=False)
    print_lines([UP, DOWN, UNKNOWN], console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 3
    assert "speculation pays 1.32× (1.18 to 1.44); acceptance 37.5 %; draft share 40.0 %" in lines[0]
    assert lines[0].endswith("by position 75 %, 50 %, 25 %, 0 %")
    assert lines[1].endswith("http://gone:8000: nothing answers at http://gone:8000")
    assert "speculation not derivable (no drafts)" in lines[2]


def test_long_windows_are_cut():
    long = replace(UP, now=replace(NOW, per_position=tuple(1 - n / 100 for n in range(64))))
    assert sentence(long).endswith("93 %, and 56 more")


def test_the_live_picture_stays_at_the_end():
    console = Console(file=io.StringIO(), width=140, force_terminal=True, highlight=False)
    with LiveView(console, ASKED, lambda: [UP]) as live:
        live.show()
    assert "1.32×" in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("state", [UP, DOWN, UNKNOWN, HOSTILE])
def test_json_says_why_a_value_is_null(state: ServerState):
    shown = json.loads(json.dumps(watch_json([state], 5.0, None)))

    def check(value: object) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                if item is None:
                    assert value["absent"][key]
                check(item)
        elif isinstance(value, list):
            for item in value:
                check(item)

    check(shown)
    assert set(shown["definitions"]) >= {*RATIOS, *TITLES}


def test_json_has_every_figure():
    server = watch_json([UP], 5.0, "runs/c")["servers"][0]
    now = server["now"]
    assert server["model"] == "some-model" and server["engine"] == "vllm" and server["problem"] is None
    assert now["speculation"]["answer"] == PAYS.answer
    assert now["speculation"]["speedup"] == {"estimate": 1.32, "low": 1.18, "high": 1.44}
    assert now["counters"]["drafts"] == 40 and now["accepted_per_position"] == [0.75, 0.5, 0.25, 0.0]
    assert now["ratios"]["acceptance_rate"]["value"]["estimate"] == 0.375
    assert server["read_at"] == "2023-11-14T22:13:20+00:00"
