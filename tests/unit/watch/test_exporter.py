"""Gauges for Prometheus."""

from __future__ import annotations

import http.client
import socket
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from breakeven.errors import UsageError
from breakeven.watch.exporter import GAUGES, PREFIX, Gauges, exporting
from breakeven.watch.state import DEFINITIONS, ServerState
from tests.unit.watch.states import DOWN, HOSTILE, UNKNOWN, UP


def families(*states: ServerState) -> dict[str, Metric]:
    registry = CollectorRegistry()
    registry.register(Gauges(lambda: states))
    text = generate_latest(registry).decode()
    return {family.name.removeprefix(PREFIX): family for family in text_string_to_metric_families(text)}


def values(*states: ServerState) -> dict[str, float]:
    return {name: family.samples[0].value for name, family in families(*states).items() if family.samples}


@pytest.mark.parametrize(("host", "port"), [("a" * 70, 0), ("a\0b", 0), ("127.0.0.1", 70_000)])
def test_an_address_that_no_socket_takes(host: str, port: int):
    with pytest.raises(UsageError, match="--prometheus-host"), exporting(list, host, port):
        pass


def test_every_number_is_a_gauge():
    found = values(UP)
    assert found["speculation_speedup"] == 1.32
    assert (found["speculation_speedup_low"], found["speculation_speedup_high"]) == (1.18, 1.44)
    assert found["acceptance_rate"] == 0.375 and found["draft_share"] == 0.4
    assert found["mean_acceptance_length_tokens"] == 2.5 and found["tokens_per_step"] == 1.6
    assert (found["requests_running"], found["requests_waiting"]) == (2, 1)
    assert (found["kv_cache_usage_ratio"], found["output_tokens_per_second"]) == (0.25, 61.25)
    assert (found["up"], found["window_seconds"], found["counter_resets"]) == (1, 60, 0)
    assert found["step_ratio"] == 1.2 and found["drafted_tokens_per_draft"] == 4
    assert found["last_reading_timestamp_seconds"] == 1.7e9


def test_labels_and_positions():
    samples = families(UP)["accepted_per_position"].samples
    assert [(one.labels["position"], one.value) for one in samples] == [
        ("0", 0.75),
        ("1", 0.5),
        ("2", 0.25),
        ("3", 0),
    ]
    assert samples[0].labels == {"url": "http://h:8000", "model": "some-model", "position": "0"}


def test_what_is_not_known_is_absent():
    assert set(values(DOWN)) == {"up", "counter_resets"} and values(DOWN)["up"] == 0
    assert set(values(UNKNOWN)) == {"up", "counter_resets", "last_reading_timestamp_seconds"}
    assert len(families(UP, DOWN)["up"].samples) == 2


def test_help_is_the_definition():
    found = families(UP)
    for name in DEFINITIONS:
        family = found.get(name) or found.get(f"{name}_ratio") or found[f"{name}_tokens"]
        assert DEFINITIONS[name] in family.documentation
    assert {gauge.name for gauge in GAUGES} | {"accepted_per_position"} == set(found)
    assert all(family.type == "gauge" for family in found.values())


def test_a_hostile_name_is_only_a_label():
    samples = families(HOSTILE)["up"].samples
    assert len(samples) == 1
    assert samples[0].labels["model"].isprintable() and samples[0].labels["model"].startswith("evil")


def test_it_is_served_and_ends_with_its_context():
    with exporting(lambda: [UP], "127.0.0.1", 0) as url:
        address = urlsplit(url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
    assert 'breakeven_speculation_speedup{model="some-model",url="http://h:8000"} 1.32' in text
    with socket.socket() as probe:
        assert probe.connect_ex((address.hostname, address.port)) != 0


def test_a_port_that_is_taken_is_refused():
    with (
        exporting(list, "127.0.0.1", 0) as url,
        pytest.raises(UsageError, match="another --prometheus-port"),
        exporting(list, "127.0.0.1", urlsplit(url).port or 0),
    ):
        pass
    with (
        pytest.raises(UsageError, match="--prometheus-host"),
        exporting(list, "no.such.host.invalid", 0),
    ):
        pass
