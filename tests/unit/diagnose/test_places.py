"""Commands with what is known put in."""

from __future__ import annotations

import pytest

from breakeven.diagnose.evidence import Evidence, Replies
from breakeven.diagnose.places import filled
from breakeven.explain.records import Finding

MEASURE = "breakeven measure --url URL --prompts PROMPTS"
URL = "http://127.0.0.1:8000"


def command(words: str, candidate: Replies | None, baseline: Replies | None = None) -> str:
    finding = Finding("id", "title", "evidence", "high", words, "See it.")
    return filled(finding, Evidence(replies=candidate, baseline_replies=baseline)).next_command


def test_what_runs_tell_is_put_in() -> None:
    mine, other = Replies(1, run="runs/b", url=URL), Replies(1, run="runs/my a", url=URL)
    assert command(MEASURE, mine) == f"breakeven measure --url {URL} --prompts PROMPTS"
    compare = "breakeven compare BASELINE_RUN CANDIDATE_RUN"
    assert command(compare, mine, other) == "breakeven compare 'runs/my a' runs/b"
    assert command("breakeven replay BASELINE_RUN --sweep", mine) == "breakeven replay BASELINE_RUN --sweep"
    assert command("curl -s URL/metrics", mine) == f"curl -s {URL}/metrics"


@pytest.mark.parametrize(
    ("candidate", "baseline"),
    [
        (None, None),
        (Replies(1), None),
        (Replies(1, url=URL), Replies(1, url="http://127.0.0.1:8001")),
        (Replies(1, url="http://x/$(reboot)"), None),
        (Replies(1, url="--help"), None),
        (Replies(1, url="http://x\nreboot"), None),
    ],
    ids=["nothing", "not known", "two servers", "a shell's words", "an option", "two lines"],
)
def test_what_is_not_known_or_odd_stays(candidate: Replies | None, baseline: Replies | None) -> None:
    assert command(MEASURE, candidate, baseline) == MEASURE
