"""A run of a server whose /metrics cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.client.endpoint import Endpoint
from breakeven.client.load import ClosedLoop
from breakeven.client.timeouts import Timeouts
from breakeven.measure import MeasurePlan, measure_endpoint
from breakeven.servers.fake import FakeServer, Script
from breakeven.servers.fake.connection import Connection, HttpRequest
from breakeven.workload.prompts import Prompt, Sampling, Workload


class Silent(FakeServer):
    """Takes a request for /metrics and says nothing."""

    def _handle(self, connection: Connection, request: HttpRequest) -> None:
        if request.path != "/metrics":
            super()._handle(connection, request)


@pytest.mark.parametrize(("server", "unknown"), [(Silent, True), (FakeServer, False)])
async def test_a_metrics_page_that_hangs_costs_the_counters_and_no_more(
    server: type[FakeServer], unknown: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "breakeven.measure.QUICK_TIMEOUTS", Timeouts(5.0, 0.3, 0.3) if unknown else Timeouts()
    )
    workload = Workload("mine", (Prompt("p", "c", text="x"),))
    async with server(Script(ttft_s=0.0, tpot_s=0.001, n_tokens=4)) as fake:
        plan = MeasurePlan(workload, Sampling(4), ClosedLoop(1))
        run = await measure_endpoint(Endpoint(fake.url), plan, tmp_path / "run")
    assert [trace.error for trace in run.traces()] == [None]
    said = [why for why in run.meta.warnings if "counters of speculation are unknown" in why]
    assert len(said) == unknown and all("does not answer" in why for why in said)
