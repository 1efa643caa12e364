"""The guard's page, as Prometheus reads it."""

from __future__ import annotations

import socket
import urllib.request

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from breakeven.cost.curve import Curve, CurvePoint
from breakeven.errors import UsageError
from breakeven.guard.metrics import GuardMetrics, serve_metrics
from breakeven.guard.settings import GuardSettings
from breakeven.guard.vllm_steps import GuardedSteps, Limits
from tests.unit.guard.fake_vllm import FakeVllm, serve


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += 0.4
        return self.now


def served(curve: Curve | None) -> tuple[GuardedSteps, FakeVllm]:
    steps, fake = GuardedSteps(GuardSettings(), Limits(10, 2048, 2048), Clock(), curve=curve), FakeVllm()
    prompt = np.random.default_rng(3).integers(0, 1000, 200).tolist()
    fake.start(prompt, prompt)
    serve(fake, steps.step)
    return steps, fake


def page(port: int) -> dict[tuple[str, ...], float]:
    """Values by name and labels."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
        text = response.read().decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_the_page_has_what_the_policy_counts() -> None:
    steps, fake = served(Curve(tuple(CurvePoint(n, 0.01, 0.01, 0.01, 9) for n in (1, 2, 64))))
    port = free_port()
    close = serve_metrics(GuardMetrics(steps, lambda: True), "127.0.0.1", port)
    try:
        found = page(port)
    finally:
        close()
    assert found["breakeven_guard_drafted_tokens_total",] == fake.drafted > 0
    assert found["breakeven_guard_accepted_tokens_total",] == fake.accepted > 0
    counters = steps.policy.counters
    decisions = {key[1]: value for key, value in found.items() if key[0] == "breakeven_guard_decisions_total"}
    assert sum(decisions.values()) == counters.decisions and decisions["drafted"] > 0
    assert found["breakeven_guard_ledger_steps",] == pytest.approx(counters.ledger)
    assert found["breakeven_guard_on",] == 1
    assert found["breakeven_guard_steps_total", "drafted"] == steps.cost.told.drafted
    assert found["breakeven_guard_step_seconds", "1", "1"] > 0


def test_an_unknown_cost_is_absent() -> None:
    steps = GuardedSteps(GuardSettings(), Limits(10, 2048, 2048), Clock())
    names = {
        sample.name for family in GuardMetrics(steps, lambda: False).collect() for sample in family.samples
    }
    assert "breakeven_guard_step_seconds" not in names and "breakeven_guard_on" in names


def test_a_taken_port_is_told() -> None:
    steps = GuardedSteps(GuardSettings(), Limits(10, 2048, 2048), Clock())
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(UsageError, match="metrics_port"):
        serve_metrics(GuardMetrics(steps, lambda: True), "127.0.0.1", listener.getsockname()[1])
