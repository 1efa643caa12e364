from dataclasses import replace
from typing import Any

import orjson

from breakeven.acceptance.counters import SpecCounters
from breakeven.compare.records import Drift, Lossless
from breakeven.report.jsonout import trial_json
from breakeven.report.plain import NO_COUNTS, acceptance_json
from tests.unit.report.builders import HOSTILE, result, traces

STABLE = {"verdict", "reason", "speedup", "prompts", "acceptance", "lossless", "stopped_after", "reload_s"}
STABLE |= {"confounders", "run_dir", "definitions"}
BESIDE = {"drift", "quality", "by_category", "confidence", "floor", "next_command", "stop_reason", "model"}
PROMPT = {"id", "category", "baseline_tpot_ms", "candidate_tpot_ms", "speedup", "low", "high"}
ACCEPTANCE = {"steps", "drafts", "drafted_tokens", "accepted_tokens", "accepted_per_position", "source"}
ACCEPTANCE |= {"acceptance_rate", "mean_acceptance_length", "tokens_per_step", "draft_share"}


def test_keys():
    body = trial_json(result())
    assert (STABLE | BESIDE) - body.keys() == set()
    assert body["speedup"].keys() == {"estimate", "low", "high"}
    for prompt in body["prompts"]:
        assert PROMPT - prompt.keys() == set()
    assert ACCEPTANCE - body["acceptance"].keys() == set()
    assert {"identical", "compared", "first_divergence"} - body["lossless"].keys() == set()
    assert {"baseline", "candidate"} - body["reload_s"].keys() == set()


def test_values():
    trial = result()
    body = trial_json(trial)
    first = trial.comparison.prompts[0]
    assert body["prompts"][0]["baseline_tpot_ms"] == first.baseline_tpot_s * 1e3
    assert (body["prompts"][0]["speedup"], body["prompts"][0]["low"]) == (
        first.speedup.estimate,
        first.speedup.low,
    )
    assert body["lossless"]["first_divergence"] == {
        "prompt_id": "extract-json", "repeat": 1, "unit": "character", "position": 120,
    }  # fmt: skip
    assert body["reload_s"] == {"baseline": 1.84, "candidate": 1.91, "absent": {}}


def test_acceptance_ratios_stand_beside_their_counts():
    counters = SpecCounters(100, 40, 200, 50, (30, 15, 5), "vllm /metrics")
    body = acceptance_json(counters)
    assert body["acceptance_rate"] == 0.25
    assert body["mean_acceptance_length"] == 2.25
    assert body["tokens_per_step"] == 1.5
    assert body["draft_share"] == 0.4
    assert body["accepted_per_position"] == [30, 15, 5]
    assert body["absent"] == {}


def test_an_unknown_count_names_what_is_missing():
    body = acceptance_json(
        SpecCounters(steps=100, drafted_tokens=9, accepted_tokens=3, source="llama.cpp timings")
    )
    assert body["draft_share"] is None
    assert body["absent"]["draft_share"] == "llama.cpp timings does not count drafts"
    assert "mean_acceptance_length" in body["absent"]
    assert "acceptance_rate" not in body["absent"]


def test_nothing_drafted_is_no_rate_of_zero():
    body = acceptance_json(SpecCounters(100, 0, 0, 0, (), "vllm /metrics"))
    assert body["acceptance_rate"] is None
    assert "nothing to divide" in body["absent"]["acceptance_rate"]
    assert body["draft_share"] == 0


def test_no_counts_at_all():
    body = acceptance_json(None)
    assert {body[key] for key in ACCEPTANCE - {"accepted_per_position"}} == {None}
    assert set(body["absent"]) == ACCEPTANCE
    assert set(body["absent"].values()) == {NO_COUNTS}


def bare() -> Any:
    """A trial in which nothing is known that may be unknown."""
    trial = result()
    comparison = replace(
        trial.comparison,
        speedup=None,
        prompts=(),
        by_category={},
        lossless=Lossless(0, 0, None, "the temperature is 0.7"),
        drift=Drift(None, significant=False),
    )
    sides = {
        name: replace(getattr(trial, name), reload_s=None, acceptance=None, acceptance_by_prompt={})
        for name in ("baseline", "candidate")
    }
    return replace(trial, comparison=comparison, verdict=replace(trial.verdict, next_command=None), **sides)


def nulls(value: Any, path: str = "") -> list[tuple[str, bool]]:
    """Every null below `value`, and whether a reason stands beside it."""
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in nulls(item, f"{path}[{index}]")]
    if not isinstance(value, dict):
        return []
    absent = value.get("absent", {})
    found = [(f"{path}.{key}", bool(absent.get(key))) for key, item in value.items() if item is None]
    return found + [inner for key, item in value.items() for inner in nulls(item, f"{path}.{key}")]


def test_every_null_has_a_reason_beside_it():
    unexplained = [
        path for trial in (result(), bare()) for path, explained in nulls(trial_json(trial)) if not explained
    ]
    assert len(nulls(trial_json(bare()))) > 10
    assert unexplained == []


def test_hostile_strings_survive_a_json_round_trip():
    trial = replace(result(), model=HOSTILE, confounders=(HOSTILE,), workload="\ud800")
    body = trial_json(trial)
    again = orjson.loads(orjson.dumps(body))
    assert again == body
    assert "<img src=x" in again["model"]


def test_a_hostile_prompt_id_is_kept():
    sides = traces(1, ((HOSTILE, HOSTILE, 1.2, 0.0),))
    body = trial_json(result(sides=sides))
    assert orjson.loads(orjson.dumps(body))["prompts"][0]["id"] == HOSTILE.replace(
        "\ud800", "\ufffd"
    ).replace("\u202e", "\\u202e")


def test_a_key_in_the_url_is_not_shown():
    trial = result()
    body = trial_json(
        replace(trial, baseline=replace(trial.baseline, url="http://me:secret@h:1/v1?key=secret"))
    )
    assert body["sides"]["baseline"]["url"] == "http://h:1/v1"
    assert "secret" not in str(body)
