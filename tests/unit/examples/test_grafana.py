"""The dashboard and the alerting rules are well formed, and name only metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from breakeven.acceptance.pages import llamacpp, sglang, vllm
from breakeven.watch.exporter import GAUGES, PER_POSITION, PREFIX
from tests.unit.examples.promql import metrics

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "grafana"
RULES = FOLDER / "alert-rules.yaml"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
EXPORTED = {PREFIX + gauge.name for gauge in GAUGES} | {PREFIX + PER_POSITION}
ENGINES = vllm.NAMES | llamacpp.NAMES | sglang.NAMES
"""Without the `_total` of counters."""
DURATION = re.compile(r"[1-9]\d*[smhd]")
COLUMNS = 24


def expressions() -> list[str]:
    found = [target["expr"] for panel in PANELS for target in panel.get("targets", ())]
    return found + [one["expr"] for one in DASHBOARD["annotations"]["list"]]


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_the_dashboard_has_what_grafana_10_asks_of_one():
    assert DASHBOARD["schemaVersion"] >= 38 and "id" not in DASHBOARD
    assert re.fullmatch(r"[a-zA-Z0-9_-]{8,40}", DASHBOARD["uid"]) and DASHBOARD["title"]
    assert set(DASHBOARD["time"]) == {"from", "to"} and DURATION.fullmatch(DASHBOARD["refresh"])
    assert DASHBOARD["graphTooltip"] in (0, 1, 2)
    for variable in DASHBOARD["templating"]["list"]:
        assert variable["type"] in ("datasource", "query") and variable["name"]
    names = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(DASHBOARD)))
    assert used == names


def test_panels_have_ids_of_their_own_a_place_and_a_description():
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for panel in PANELS:
        place = panel["gridPos"]
        assert place["x"] >= 0 and place["y"] >= 0 and place["h"] > 0
        assert place["w"] > 0 and place["x"] + place["w"] <= COLUMNS
        assert panel["type"] in ("row", "stat", "timeseries") and panel["title"]
        if panel["type"] != "row":
            assert panel["description"] and panel["targets"]
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert {"defaults", "overrides"} == set(panel["fieldConfig"])
            refs = [target["refId"] for target in panel["targets"]]
            assert len(set(refs)) == len(refs)


def test_panels_do_not_overlap():
    def meet(a: dict[str, int], b: dict[str, int]) -> bool:
        across = a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"]
        return across and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]

    for one, other in combinations(PANELS, 2):
        assert not meet(one["gridPos"], other["gridPos"]), (one["title"], other["title"])


@pytest.mark.parametrize("expression", expressions())
def test_every_expression_names_metrics_that_there_are(expression: str):
    for name in metrics(expression):
        if name.startswith(PREFIX):
            assert name in EXPORTED
        else:
            assert name.removesuffix("_total") in ENGINES


def test_every_exported_gauge_but_those_of_the_watch_itself_is_shown():
    shown = {name for expression in expressions() for name in metrics(expression)}
    own = {"window_seconds", "last_reading_timestamp_seconds"}
    assert EXPORTED - shown == {PREFIX + name for name in own}


def test_the_rules_have_what_prometheus_asks_of_one():
    assert [rule["alert"] for rule in rules()] == ["SpeculationCosts", "SpeculationNotWatched"]
    for rule in rules():
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert DURATION.fullmatch(rule["for"]) and metrics(rule["expr"]) <= EXPORTED
        assert rule["labels"]["severity"] and rule["annotations"]["summary"]
        used = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
        assert used <= {"url", "model"}
    assert rules()[0]["for"] == "15m" and rules()[0]["expr"].endswith(
        "breakeven_speculation_speedup_high[5m]) < 1"
    )


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize(
    "words", [("check", "rules", RULES), ("test", "rules", Path(__file__).with_name("alert-rules.test.yaml"))]
)
def test_promtool_takes_the_rules_and_they_fire_when_they_should(words: tuple[object, ...]):
    done = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        "sum by (instance (rate(up[5m]))",
        "rate(up[5m]))",
        "sum breakeven_up",
        "breakeven_up{url=~'x'}",
        "up ? 1",
        "1 + 2",
    ],
)
def test_the_check_can_fail(wrong: str):
    with pytest.raises(ValueError, match=r"closes nothing|is not closed|is a function|what is"):
        metrics(wrong)
