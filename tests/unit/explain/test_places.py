"""Commands with what is known put in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import breakeven
from breakeven.explain.explain import explain
from breakeven.explain.places import PLACE, PLACES, all_filled, filled, of_runs
from breakeven.explain.records import Finding
from breakeven.trace.run import Run
from tests.unit.explain.cases import kimi
from tests.unit.report.builders import run_on_disk, trace

PACKAGE = Path(breakeven.__file__).parent
SOURCES = (
    *(PACKAGE / "diagnose" / "causes").glob("*.py"),
    *(PACKAGE / "explain" / name for name in ("causes.py", "vllm_causes.py", "ruled_out.py")),
)
MEASURE = "breakeven measure --url <url> --prompts <prompts>"
COMMANDS = (
    "breakeven ",
    "grep ",
    "curl ",
    "journalctl ",
    "diff ",
    "nvidia-smi ",
    "all_reduce_perf ",
    "VLLM_",
)


def command(words: str, known: dict[str, str]) -> str:
    return filled(Finding("id", "title", "evidence", "high", words, "See it."), known).next_command


def run(folder: Path, **meta: str) -> Run:
    return run_on_disk(folder, [trace("a", "c", 0.01)], {"ok": True, "reasons": []}, **meta)


def written() -> Iterator[str]:
    """Every command of a finding, as it stands in the source: of what is put together, each piece."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                pieces = [getattr(part, "value", "") for part in node.values]
                yield "".join(piece for piece in pieces if isinstance(piece, str))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_what_is_known_is_put_in_and_the_rest_cannot_be_mistaken() -> None:
    assert command(MEASURE, {"url": "http://x:1"}) == "breakeven measure --url http://x:1 --prompts <prompts>"
    assert command("curl -s <url>/metrics", {"url": "http://x:1"}) == "curl -s http://x:1/metrics"
    logs = {"candidate-log": "'my log'", "baseline-log": "<(zcat a.gz)"}
    assert command("grep -i x <baseline-log> <candidate-log>", logs) == "grep -i x <(zcat a.gz) 'my log'"
    assert command("a <b>", {}) == "a <b>"


def test_every_place_of_a_command_is_known_and_has_brackets() -> None:
    found = [text for text in written() if text.startswith(COMMANDS)]
    assert len(found) > 30
    assert {place for text in found for place in PLACE.findall(text)} <= PLACES
    for text in found:
        words = text.replace("VLLM_USE_V2_MODEL_RUNNER", "").split()
        assert not [word for word in words if word.isalpha() and word.isupper() and len(word) > 3], text


def test_what_runs_tell(tmp_path: Path) -> None:
    before, after = run(tmp_path / "my a"), run(tmp_path / "b")
    assert of_runs(before, after) == {
        "url": before.meta.url,
        "baseline-run": f"'{tmp_path}/my a'",
        "candidate-run": str(tmp_path / "b"),
        "prompts": str(tmp_path / "b" / "prompts.jsonl"),
    }
    alone = of_runs(None, after)
    assert alone.keys() == {"url", "prompts"}, "it is not said which side it is"
    assert of_runs(None, None) == {}


def test_two_servers_leave_open_which_is_meant(tmp_path: Path) -> None:
    before, after = run(tmp_path / "a"), run(tmp_path / "b", url="http://127.0.0.1:8001")
    assert "url" not in of_runs(before, after)


@pytest.mark.parametrize("url", ["http://x/$(reboot)", "--help", "http://x;reboot", "http://x/`id`"])
def test_what_is_odd_is_not_put_in(url: str, tmp_path: Path) -> None:
    after = run(tmp_path / "a")
    odd = Run(after.path, replace(after.meta, url=url))
    assert "url" not in of_runs(None, odd)


def test_prompts_that_were_taken_away_are_not_named(tmp_path: Path) -> None:
    after = run(tmp_path / "a")
    (after.path / "prompts.jsonl").unlink()
    assert "prompts" not in of_runs(None, after)


def test_all_findings_of_an_explanation_are_filled() -> None:
    known = {
        "candidate-log": "vllm.log",
        "baseline-log": "base.log",
        "url": "http://x:1",
        "baseline-run": "a",
    }
    made = all_filled(explain(kimi()), known)
    commands = [one.next_command for one in (*made.findings, *made.ruled_out)]
    assert any("vllm.log" in each for each in commands) and any("http://x:1" in each for each in commands)
    assert not any("<url>" in each or "<candidate-log>" in each for each in commands)
