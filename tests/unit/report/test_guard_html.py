import json
from dataclasses import replace
from pathlib import Path

import pytest

from breakeven.errors import StorageError
from breakeven.guard.simulate.records import Request
from breakeven.replay.records import Origin
from breakeven.report.guard_html import guard_page, write_guard_html
from breakeven.report.guard_json import guard_json
from breakeven.report.guard_words import GUARD_DEFINITIONS
from tests.unit.report.builders import HOSTILE
from tests.unit.report.guards import fixed, played, simulation
from tests.unit.report.test_html import Page, assert_harmless

PAGES = {
    "whole": guard_page(simulation()),
    "bare": guard_page(simulation(by_epsilon=(), by_concurrency=(), fixed=())),
}


@pytest.mark.parametrize("name", PAGES)
def test_links_have_targets_and_nothing_is_loaded(name: str):
    parsed = Page(PAGES[name])
    ids = [attrs["id"] for _, attrs in parsed.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {(attrs["href"] or "").removeprefix("#") for attrs in parsed.all("a")} <= set(ids)
    assert {f"def-{definition.key}" for definition in GUARD_DEFINITIONS} <= set(ids)
    for _, attrs in parsed.elements:
        assert "src" not in attrs and "style" not in attrs


def test_the_plot_of_gain_against_epsilon_is_told_in_words_too():
    (plot,) = [attrs for attrs in Page(PAGES["whole"]).all("svg") if attrs.get("role") == "img"]
    assert (plot["aria-label"] or "").startswith("guard, mean over requests, ε = 1 %: 1.200×")
    assert "No other ε was simulated." in Page(PAGES["bare"]).text


def test_the_data_is_the_json_and_carries_no_infinity():
    data = Page(PAGES["whole"]).scripts[0]
    assert json.loads(data) == json.loads(json.dumps(guard_json(simulation())))
    assert "Infinity" not in data and "NaN" not in data


def test_the_json_says_what_is_absent():
    found = guard_json(simulation(fixed=()))
    assert found["best_fixed"] is None and found["absent"]["best_fixed"] == "no fixed setting was tried"
    assert [one["epsilon"] for one in found["by_epsilon"]] == [None, 0.05, 0.01]
    assert found["by_epsilon"][0]["epsilon_absent"] == "without a ledger"
    assert found["guard"]["requests"][1] == {
        "id": "t1",
        "category": "chat",
        "emitted_tokens": 100,
        "speedup": 0.985,
    }


def test_hostile_names_do_nothing():
    row = Request(HOSTILE, HOSTILE, 10, 0.9)
    guard = played("guard", "guard", 1.2, 0.9)
    speed = replace(guard.speed, worst=row)
    made = simulation(
        origin=Origin(HOSTILE, "jsonl", None),
        cost_words=HOSTILE,
        warnings=(HOSTILE,),
        fixed=(replace(fixed(3, 1.2, 0.8), name=HOSTILE, flags=HOSTILE),),
        guard=replace(guard, speed=speed),
    )
    assert_harmless(guard_page(replace(made, next_commands=(HOSTILE,))))


def test_what_to_type_next_is_on_the_page():
    text = Page(guard_page(simulation(next_commands=("breakeven guard x", "breakeven trial")))).text
    assert "Next: breakeven guard x" in " ".join(text.split()) and "Then: breakeven trial" in text
    assert "Next:" not in Page(PAGES["whole"]).text


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path):
    write_guard_html(simulation(), tmp_path / "guard.html")
    assert (tmp_path / "guard.html").read_text(encoding="utf-8") == guard_page(simulation())
    (tmp_path / "file").touch()
    with pytest.raises(StorageError):
        write_guard_html(simulation(), tmp_path / "file" / "guard.html")
