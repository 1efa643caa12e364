import io
import re
import unicodedata
from dataclasses import replace

import pytest
from rich.console import Console

from breakeven.compare.records import Lossless, SideQuality, Verdict
from breakeven.report.jsonout import trial_json
from breakeven.report.terminal import print_trial
from breakeven.trial.result import TrialResult
from breakeven.units import change, rate
from tests.unit.report.builders import HOSTILE, result, traces
from tests.unit.report.test_jsonout import bare


def shown(trial: TrialResult, width: int = 100, report: str | None = None, **options: bool) -> str:
    console = Console(file=io.StringIO(), width=width, **options)
    print_trial(trial, console, report)
    return console.file.getvalue()


def test_the_numbers_are_those_of_the_json():
    text = shown(result())
    for prompt in trial_json(result())["prompts"]:
        row = next(row for row in text.splitlines() if row.startswith(prompt["id"] + " "))
        assert rate(1e3 / prompt["baseline_tpot_ms"]) in row
        assert rate(1e3 / prompt["candidate_tpot_ms"]) in row
        assert change(prompt["speedup"]) in row
        assert "33.3 %" in row and "unknown" in row


def test_all_that_qualifies_the_verdict_is_there():
    text = shown(result(), report="runs/trial/report.html")
    for words in (
        "Faster: decode speed",
        "acceptance = accepted draft tokens / drafted tokens",
        "llama.cpp timings does not count drafts",
        "Greedy replies identical in 62 of 64; first difference at character 120 of extract-json",
        "Stopped after 8 repeats",
        "prompt-cache reuse differs",
        "reload: baseline 1.8 s, candidate 1.9 s",
        "Report: runs/trial/report.html",
    ):
        assert words in text


def test_repeats_that_were_left_out_are_not_said_to_be_compared():
    text = " ".join(shown(replace(result(), left_out=2)).split())
    assert (
        "Stopped: the verdict was decided. Compared: 8 repeats of every prompt on each side; left out: "
        "2 repeats."
    ) in text


def test_without_a_pair_there_is_no_table_and_no_gap():
    rows = shown(nothing_paired()).splitlines()
    assert not [row for row in rows if row.startswith(("tok/s = ", "acceptance = "))]
    assert not [number for number, row in enumerate(rows[1:]) if row == rows[number] == ""]
    assert "\n\nNo verdict: so.\n" in shown(nothing_paired())


def test_replies_that_were_left_out_are_not_said_to_have_been_unanswered():
    said = " ".join(shown(nothing_paired()).split())
    assert "Replies were not compared: all 2 repeats were left out." in said
    assert trial_json(nothing_paired())["absent"]["speedup"] == "nothing could be paired: 2 repeats left out"


def nothing_paired() -> TrialResult:
    """All was answered, and all of it is left out."""
    made, none = result(), SideQuality(0, 0, 0, 0, {})
    comparison = replace(
        made.comparison,
        speedup=None,
        prompts=(),
        baseline=none,
        candidate=none,
        lossless=Lossless(0, 0, None, "all 2 repeats were left out"),
    )
    return replace(
        made, comparison=comparison, left_out=2, verdict=Verdict("refused", "No verdict: so."), confounders=()
    )


@pytest.mark.parametrize("width", [40, 60, 79, 80, 99, 100, 200])
def test_no_line_is_wider_than_the_terminal(width: int):
    assert max(len(row) for row in shown(result(), width).splitlines()) <= width


@pytest.mark.parametrize("width", [40, 60])
def test_narrow_terminals_keep_every_figure(width: int):
    text = " ".join(shown(result(), width).split())
    for prompt in trial_json(result())["prompts"]:
        speeds = (rate(1e3 / prompt["baseline_tpot_ms"]), rate(1e3 / prompt["candidate_tpot_ms"]))
        assert f"{prompt['id']} ({prompt['category']}) {speeds[0]} → {speeds[1]} tok/s" in text


def test_what_is_copied_is_not_wrapped():
    long = "breakeven trial … --prompts " + "x" * 100
    trial = result()
    text = shown(replace(trial, verdict=replace(trial.verdict, next_command=long)), 60)
    assert long in text


def test_no_color(monkeypatch: pytest.MonkeyPatch):
    assert "\x1b[1;32m" in shown(result(), force_terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[\d;]*3\dm", shown(result(), force_terminal=True))


def test_absent_values_have_their_reason():
    text = shown(bare())
    assert "the temperature is 0.7" in text
    assert "was running already" in text


@pytest.mark.parametrize("width", [60, 120])
def test_hostile_strings_are_harmless(width: int):
    sides = traces(1, ((HOSTILE, HOSTILE, 1.2, 0.0),))
    trial = result(sides=sides)
    trial = replace(
        trial,
        model=HOSTILE,
        workload=HOSTILE,
        confounders=(HOSTILE,),
        stop_reason=HOSTILE,
        verdict=replace(trial.verdict, reason=HOSTILE, next_command=HOSTILE),
        candidate=replace(trial.candidate, description=HOSTILE),
    )
    text = shown(trial, width)
    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cs") and c != "\n"]
    assert "\u202e" not in text
    assert "[bold red]x[/bold red][/]" in text


def test_a_side_that_never_was_ready_did_not_run_already():
    trial = bare()
    failed = replace(trial, candidate=replace(trial.candidate, reload_absent="was never ready"))
    text = " ".join(shown(failed).split())
    assert "reload: baseline was running already, candidate was never ready." in text
    assert trial_json(failed)["reload_s"]["absent"] == {
        "baseline": "it was running already",
        "candidate": "it was never ready",
    }
