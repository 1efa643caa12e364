"""A diagnosis as JSON: its stable keys, and a reason beside every null."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from breakeven.acceptance.logs.summary import LogSummary
from breakeven.diagnose.diagnosis import Diagnosis
from breakeven.report.diagnose_json import diagnose_json
from tests.unit.report.builders import HOSTILE
from tests.unit.report.diagnoses import FINDING, evidence, live, log, silent, slow

KEYS = {
    *(
        "answer",
        "engine",
        "version",
        "refused",
        "drafting",
        "acceptance",
        "by_position",
        "other_sources",
        "resets",
    ),
    *("observed", "waterfall", "unexplained_ms", "explanation", "replay", "traffic", "baseline_traffic"),
    *("log", "baseline_log", "findings", "unknown", "notes", "definitions", "absent"),
}


def printed(made: Diagnosis) -> dict[str, Any]:
    value: dict[str, Any] = orjson.loads(orjson.dumps(diagnose_json(made), option=orjson.OPT_SERIALIZE_NUMPY))
    return value


def nulls(value: Any, path: str = "") -> Iterator[str]:
    """Keys whose value is null without a reason beside it."""
    if isinstance(value, dict):
        for key, item in value.items():
            if item is None and key not in value.get("absent", {}):
                yield f"{path}.{key}"
            yield from nulls(item, f"{path}.{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from nulls(item, f"{path}[{number}]")


@pytest.mark.parametrize("made", [slow(), live(), live(0, 0), silent()])
def test_the_keys_are_stable_and_every_null_has_its_reason(made: Diagnosis):
    values = printed(made)
    assert values.keys() == KEYS
    assert list(nulls(values)) == []


def test_what_is_promised():
    values = printed(slow())
    assert values["acceptance"]["acceptance_rate"] == 0.5
    assert values["acceptance"]["source"] == "vLLM /metrics"
    assert [one["name"] for one in values["acceptance"]["stated"]] == [
        *("acceptance_rate", "mean_acceptance_length", "tokens_per_step", "draft_share"),
    ]
    assert {part["part"] for part in values["waterfall"]} >= {"weights", "experts", "all_reduce", "rest"}
    assert all(isinstance(part["ms"], float) for part in values["waterfall"])
    assert round(values["unexplained_ms"]["low"], 1) == 1.2
    assert round(values["unexplained_ms"]["high"], 1) == 35.2
    finding = values["findings"][0]
    assert finding["id"] == "async_scheduling" and finding["confidence"] == "high"
    assert finding["evidence"] == FINDING.evidence and finding["next_command"] == FINDING.next_command
    assert values["by_position"][0] == {
        "position": 1,
        "accepted": 1300,
        "share": {"low": 0.8125, "high": 0.8125},
        "absent": {},
    }
    assert values["replay"]["k"] == 4 and values["replay"]["others"][0]["cost_per_token"] == 0.7
    assert values["observed"][0]["step_ms"]["low"] == pytest.approx(21.55, abs=0.01)
    lengths = {"min_n": 4, "max_n": 4, "min_left_out": False, "is_assumed": False, "is_off": False}
    assert values["drafting"] == {"method": "ngram", "k": 5, **lengths, "absent": {}}
    assert values["log"]["lines"] == 145 and values["log"]["from"] == "11-29 11:18:25"


def test_events_of_a_log():
    told: LogSummary = log(events={"compile": (3, "Compiling a graph")})
    values = printed(Diagnosis(evidence(log=told), ()))
    assert values["log"]["events"] == {"compile": {"lines": 3, "first": "Compiling a graph"}}


def test_a_live_server():
    values = printed(live())
    assert values["traffic"]["seconds"] == 30.0 and values["traffic"]["output_tokens"] == 4000
    assert values["waterfall"] is None and "--calibration" in values["absent"]["waterfall"]


def test_strings_that_no_text_can_carry():
    bad = replace(FINDING, title=HOSTILE, evidence=HOSTILE)
    values = printed(Diagnosis(evidence(version=HOSTILE, notes=(HOSTILE,)), (bad,), {HOSTILE: HOSTILE}))
    assert "\ud800" not in values["version"]
