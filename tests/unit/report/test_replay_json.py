from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest

from breakeven.replay.records import Origin
from breakeven.report.replay_json import ranks_by_acceptance, replay_json, sweep_json
from tests.unit.report.builders import HOSTILE
from tests.unit.report.replays import GREEDY, no_steps, replayed, request, row, swept

STABLE = {"drafter", "settings", "flags", "requests", "steps", "drafts", "drafted_tokens", "accepted_tokens"}
STABLE |= {"accepted_per_position", "tokens_per_step", "acceptance_rate", "mean_acceptance_length"}
STABLE |= {"draft_share", "output_tokens", "emitted_tokens", "first_token", "histogram", "by_category"}
STABLE |= {"deciles", "parts", "per_request", "origin", "skipped", "warnings", "definitions", "elapsed_s"}
STABLE |= {"tokens_per_second", "meaning", "warm_up", "absent"}
SWEEP = {"rows", "origin", "requests", "output_tokens", "first_token", "skipped", "warnings", "definitions"}
ROW = {"drafter", "settings", "flags", "steps", "drafts", "drafted_tokens", "accepted_tokens"}
ROW |= {"tokens_per_step", "acceptance_rate", "draft_share", "pareto", "rank_by_acceptance_rate", "absent"}
CELL = {"drafted", "accepted", "steps"}


def nulls(value: Any, path: str = "") -> list[str]:
    """Paths of the nulls that have no reason beside them."""
    if isinstance(value, dict):
        lacking = [f"{path}.{k}" for k, v in value.items() if v is None and k not in value.get("absent", {})]
        return lacking + [name for key, item in value.items() for name in nulls(item, f"{path}.{key}")]
    if isinstance(value, list):
        return [name for index, item in enumerate(value) for name in nulls(item, f"{path}[{index}]")]
    return []


def test_keys_are_exactly_these():
    body = replay_json(replayed())
    assert body.keys() == STABLE
    assert all(cell.keys() == CELL for cell in body["histogram"])
    assert len(body["deciles"]) == 10
    assert body["parts"].keys() == {"reasoning", "answer"}
    assert body["origin"].keys() == {"path", "kind", "temperature", "ids", "engine", "absent"}
    swept_body = sweep_json(swept())
    assert SWEEP - swept_body.keys() == set()
    assert all(one.keys() == ROW for one in swept_body["rows"])


def test_counts_and_the_ratios_made_from_them():
    body = replay_json(replayed())
    assert (body["requests"], body["output_tokens"], body["emitted_tokens"]) == (6, 70, 64)
    assert (body["steps"], body["drafts"], body["drafted_tokens"], body["accepted_tokens"]) == (
        40,
        16,
        42,
        24,
    )
    assert body["accepted_per_position"] == [14, 8, 2]
    assert body["tokens_per_step"] == 64 / 40
    assert body["acceptance_rate"] == 24 / 42
    assert body["mean_acceptance_length"] == 1 + 24 / 16
    assert body["draft_share"] == 16 / 40
    assert body["tokens_per_second"] == 70 / 0.5
    assert {"drafted": 2, "accepted": 1, "steps": 6} in body["histogram"]
    assert sum(cell["steps"] for cell in body["histogram"]) == 40
    assert body["by_category"]["odd"]["steps"] == 20
    assert body["parts"]["answer"]["acceptance_rate"] == 22 / 32


def test_tokens_per_step_counts_what_was_emitted_and_not_a_token_for_each_step():
    """A last step whose draft ends the record has no token of the target's own in the record."""
    body = replay_json(replayed())
    assert body["tokens_per_step"] == 1.6 == 1 + body["accepted_tokens"] / body["steps"]
    total = replace(replayed().total, emitted_tokens=60)
    assert replay_json(replayed(total=total))["tokens_per_step"] == 1.5


def test_requests_carry_their_counts_and_lengths_only_if_asked():
    one = replay_json(replayed())["per_request"][1]
    assert (one["id"], one["category"], one["steps"], one["tokens_per_step"]) == ("p1", "odd", 20, 1.6)
    assert sum(cell["steps"] for cell in one["histogram"]) == 20
    assert "accepted_lengths" not in one
    with_lengths = replayed(requests=(request(0, lengths=True),))
    assert replay_json(with_lengths)["per_request"][0]["accepted_lengths"] == [0, 1, 3]


@pytest.mark.parametrize("origin", [GREEDY, Origin("x.jsonl", "jsonl", None, "tokenizer")])
def test_every_null_has_its_reason(origin: Origin):
    bare = replace(no_steps(), origin=origin, flags="", elapsed_s=0.0)
    body = replay_json(bare)
    assert body["tokens_per_step"] is None and body["flags"] is None and body["parts"] is None
    assert nulls(body) == []
    assert nulls(sweep_json(swept())) == []


def test_warm_up_compares_the_first_tenth_of_the_requests_with_the_rest():
    slow = replace(request(0), emitted_tokens=22)
    many = replayed(drafter="vllm-suffix", settings={}, requests=(slow, slow, *map(request, range(23))))
    body = replay_json(many)
    assert body["warm_up"] == {
        "first_tenth": {"requests": 2, "tokens_per_step": 1.1},
        "rest": {"requests": 23, "tokens_per_step": 1.6},
    }
    assert "warm_up" not in body["absent"] and "warm_up" in body["definitions"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"drafter": "vllm-ngram", "requests": 20}, "learns nothing"),
        (
            {"drafter": "vllm-suffix", "settings": {"max_cached_requests": 0}, "requests": 20},
            "learns nothing",
        ),
        ({"drafter": "nowhere:Class", "requests": 20}, "learns nothing"),
        ({"drafter": "vllm-suffix", "requests": 9}, "fewer than 10 requests"),
    ],
)
def test_without_warm_up_it_says_why(changes: dict[str, Any], why: str):
    requests = tuple(map(request, range(changes["requests"])))
    body = replay_json(replayed(**{"settings": {}, **changes, "requests": requests}))
    assert body["warm_up"] is None and why in body["absent"]["warm_up"]


def test_requests_without_a_step_are_no_warm_up():
    (empty,) = no_steps().requests
    body = replay_json(replayed(drafter="vllm-suffix", settings={}, requests=(empty,) * 10))
    assert body["warm_up"] is None and "no decode step" in body["absent"]["warm_up"]


def test_a_sweep_that_found_next_to_nothing_suggests_nothing():
    body = sweep_json(swept((row("vllm-ngram", 1.049, 0.5, k=1), row("oracle", 1.0, 0.0, k=1))))
    assert body["suggested"] is None and "at most 1.049 tokens per step" in body["absent"]["suggested"]
    assert nulls(body) == []
    enough = sweep_json(swept((row("vllm-ngram", 1.05, 0.5, k=1),)))
    assert enough["suggested"]["drafter"] == "vllm-ngram" and "suggested" not in enough["absent"]


def test_the_meaning_is_all_that_is_said_of_the_counts():
    said = replay_json(replayed())["meaning"]
    assert "exact for the recorded tokens" in said and "past the end of the reply" in said
    assert "learned" not in said and "chosen" not in said
    assert "chosen and scored on the same 6 requests" in sweep_json(swept())["meaning"]


def test_ranks_by_acceptance():
    rows = (row("a", 1.8, 0.5), row("b", 1.5, 0.9), row("c", 1.0, 0.0), row("d", 1.2, 0.7))
    assert ranks_by_acceptance(rows) == [3, 1, 4, 2]


def test_it_can_be_encoded_whatever_it_holds():
    hostile = replayed(
        drafter=HOSTILE,
        settings={HOSTILE: HOSTILE},
        origin=Origin(HOSTILE, "jsonl", 0.0),
        by_category={HOSTILE: replayed().total},
        requests=(replace(request(0), id=HOSTILE, category=HOSTILE),),
        skipped={HOSTILE: 1},
        warnings=(HOSTILE,),
    )
    body = replay_json(hostile)
    assert orjson.loads(orjson.dumps(body)) == body
    assert orjson.loads(orjson.dumps(sweep_json(swept(warnings=(HOSTILE,)))))
    assert all(type(one) is int for cell in body["histogram"] for one in cell.values())
    assert not any(isinstance(value, np.generic) for value in body.values())
