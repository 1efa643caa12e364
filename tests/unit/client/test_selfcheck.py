from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.client.lag import LagHistogram, LagMonitor
from breakeven.client.schedule import ClosedLoop
from breakeven.client.selfcheck import judge
from breakeven.client.witness import Witness
from breakeven.workload.prompts import Prompt, Request
from tests.unit.client.test_load import trace

REQUEST = Request(Prompt("p", "c", text="x"))


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=300))
def test_percentiles_are_right_within_a_bucket(lags: list[float]) -> None:
    histogram = LagHistogram()
    for lag in lags:
        histogram.add(lag)
    for percent in (50, 99):
        true = float(np.percentile(lags, percent, method="inverted_cdf"))
        found = histogram.percentile_ms(percent)
        assert found is not None and min(true, histogram.max_ms) <= found * (1 + 1e-9)
        assert found <= max(true * 1.05, 0.01) + 1e-9
    assert histogram.summary()["max"] == max(lags)


def test_without_samples_nothing_is_claimed() -> None:
    assert LagHistogram().summary() == {"p50": None, "p99": None, "max": None}


async def test_a_block_is_seen_with_all_it_delayed() -> None:
    monitor = LagMonitor()
    monitor.start()
    await asyncio.sleep(0.03)
    time.sleep(0.3)  # noqa: ASYNC251
    await asyncio.sleep(0.03)
    monitor.stop()
    summary = monitor.histogram.summary()
    assert summary["max"] is not None and summary["max"] > 250
    assert summary["p50"] is not None and summary["p50"] > 50


async def test_lag_voids_a_run_whose_tokens_are_fast() -> None:
    for tpot_ms, void in ((10, True), (200, False)):
        witness, lag = Witness(), LagMonitor()
        witness.start(None)
        witness.end(trace(REQUEST, 0, 9 * tpot_ms * 1_000_000, tokens=10))
        for _ in range(100):
            lag.histogram.add(8.0)
        check = judge(ClosedLoop(1), witness, lag, "asyncio")
        assert any("lagged 8" in reason for reason in check.reasons) is void


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=1, max_size=12))
def test_overlap_is_what_counting_every_instant_gives(spans: list[tuple[int, int]]) -> None:
    witness = Witness()
    for start, length in spans:
        witness.start(None)
        witness.end(trace(REQUEST, start, start + length))
    active = [sum(start <= instant < start + length for start, length in spans) for instant in range(101)]
    busy = [count for count in active if count]
    overlap = witness.overlap()
    assert overlap is not None
    assert (overlap.peak, overlap.windows) == (max(active), len(spans))
    assert overlap.mean == pytest.approx(sum(busy) / len(busy))
