import math
from dataclasses import replace
from typing import Any

import orjson
import pytest

from breakeven.forecast.records import Forecast
from breakeven.interval import Interval
from breakeven.replay.records import Origin
from breakeven.report.forecast_json import forecast_json
from tests.unit.report.builders import HOSTILE
from tests.unit.report.forecasts import forecast, given, interval, row, rows, without_record


def test_the_stable_keys_are_those_of_the_best_row():
    body, best = forecast_json(forecast()), forecast().rows[0]
    cell = best.cells[0]
    assert body["speedup"] == {
        "estimate": cell.speedup.estimate,
        "low": cell.speedup.low,
        "high": cell.speedup.high,
    }
    assert body["throughput_speedup"]["estimate"] == cell.throughput_speedup.estimate
    assert body["by_category"]["math"]["high"] == cell.by_category["math"].high
    assert {key: body["best"][key] for key in ("k", "min_n", "max_n")} == best.settings
    assert body["break_even"]["tokens_per_step"] == cell.break_even.tokens_per_step
    assert body["break_even"]["acceptance_rate"] == cell.break_even.acceptance_rate
    assert body["recommendation"] == forecast().recommendation
    assert body["source_of_cost"] == "measured"
    assert [one["concurrency"] for one in body["by_concurrency"]] == [1, 8, 32, 128]


def test_at_each_concurrency_stand_the_recommended_row_and_the_one_to_take_there():
    at_32 = forecast_json(forecast())["by_concurrency"][2]
    assert at_32["speedup"]["estimate"] == forecast().rows[0].cells[2].speedup.estimate
    assert at_32["outcome"] == "slower"
    assert at_32["best"]["k"] == 3 and at_32["best"]["outcome"] == "faster"


def test_the_first_keys_are_of_the_forecasts_concurrency():
    body = forecast_json(forecast(concurrency=8))
    assert body["concurrency"] == 8
    assert body["speedup"] == body["by_concurrency"][1]["speedup"]


def test_everything_else_is_there():
    whole = forecast(given=given())
    body = forecast_json(whole)
    assert len(body["rows"]) == 8 and len(body["oracle"]) == 4 and len(body["given"]) == 4
    assert [len(one["cells"]) for one in body["rows"]] == [4] * 8
    assert body["rows"][0]["tokens_per_step"] == whole.rows[0].tokens_per_step
    assert body["rows"][0]["draft_share"] == 0.4
    of_1 = next(one for one in body["needed"] if (one["k"], one["concurrency"]) == (1, 1))
    assert [target["possible"] for target in of_1["targets"]] == [True, True, True, False]
    assert body["published"][0]["source"] == "https://example.org/a"
    assert sum(body["steps"][1]["parts_s"].values()) == pytest.approx(body["steps"][1]["total_s"]["estimate"])
    assert body["coverage"]["points"][0] == {
        "tokens": 1,
        "distinct_experts": {"estimate": 8.0, "low": 8.0, "high": 8.0},
    }
    assert body["origin"]["engine"] == "vllm" and body["requests"] == 60
    assert body["definitions"]["speedup"] != body["definitions"]["throughput_speedup"]
    assert body["skipped"] and body["warnings"] and body["next_commands"] and body["elapsed_s"]


def nulls(value: Any, path: str = "") -> list[str]:
    """Paths of the nulls that have no reason beside them."""
    if isinstance(value, dict):
        absent = value.get("absent", {})
        bare = [f"{path}/{key}" for key, one in value.items() if one is None and not absent.get(key)]
        return bare + [found for key, one in value.items() for found in nulls(one, f"{path}/{key}")]
    if isinstance(value, list):
        return [found for place, one in enumerate(value) for found in nulls(one, f"{path}/{place}")]
    return []


def not_a_number() -> Forecast:
    nan = Interval(math.nan, math.nan, math.nan)
    cells = tuple(replace(cell, speedup=nan, throughput_speedup=None) for cell in rows()[0].cells)
    return forecast(rows=(replace(rows()[0], cells=cells),))


@pytest.mark.parametrize(
    "made",
    [
        forecast(),
        forecast(given=given(), coverage=None),
        without_record(),
        forecast(origin=Origin("x", "jsonl", None), rows=(row("oracle", 3, 0.0, 0.0, flags=""),)),
        not_a_number(),
    ],
    ids=range(5),
)
def test_a_reason_stands_beside_every_null(made: Forecast):
    body = orjson.loads(orjson.dumps(forecast_json(made)))
    assert nulls(body) == []
    assert not {key for key, why in body["absent"].items() if body[key] is not None}


def test_without_a_record_there_is_no_best():
    body = forecast_json(without_record())
    assert body["best"] is None and body["speedup"] is None and body["origin"] is None
    assert body["absent"]["best"] == "no drafter was replayed on a record"
    assert body["by_concurrency"][0]["best"] is None
    assert len(body["needed"]) == 16


def test_text_that_utf_8_can_not_carry_does_no_harm():
    bad = HOSTILE + "\ud800"
    made = forecast(
        rows=(row(bad, 3, 0.4, 0.5, settings={bad: bad}, flags=bad),),
        warnings=(bad,),
        recommendation=bad,
        skipped={bad: 1},
    )
    orjson.dumps(forecast_json(made))


def test_what_is_sure_to_pay_is_the_best():
    unsure = replace(rows()[0], cells=tuple(replace(c, speedup=interval(2, 0.9)) for c in rows()[0].cells))
    body = forecast_json(forecast(rows=(unsure, rows()[1])))
    assert body["best"]["k"] == rows()[1].settings["k"] and body["outcome"] == "faster"
