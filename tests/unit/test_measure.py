"""What a run keeps of the server's /metrics page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from breakeven.client.endpoint import Endpoint
from breakeven.client.load import ClosedLoop
from breakeven.client.timeouts import Timeouts
from breakeven.measure import MeasurePlan, measure_endpoint
from breakeven.servers.fake import FakeServer, Script, Speculation, llamacpp_script, vllm_script
from breakeven.servers.fake.connection import Connection, HttpRequest
from breakeven.trace.run import Run
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
        "breakeven.client.asker.QUICK_TIMEOUTS", Timeouts(5.0, 0.3, 0.3) if unknown else Timeouts()
    )
    workload = Workload("mine", (Prompt("p", "c", text="x"),))
    async with server(Script(ttft_s=0.0, tpot_s=0.001, n_tokens=4)) as fake:
        plan = MeasurePlan(workload, Sampling(4), ClosedLoop(1))
        run = await measure_endpoint(Endpoint(fake.url), plan, tmp_path / "run")
    assert [trace.error for trace in run.traces()] == [None]
    said = [why for why in run.meta.warnings if "counters of speculation are unknown" in why]
    assert len(said) == unknown and all("does not answer" in why for why in said)


FOUR = Workload("four", tuple(Prompt(f"p{i}", "c", text=f"prompt {i}") for i in range(4)))
PLAN = MeasurePlan(FOUR, Sampling(20), ClosedLoop(1), repeats=2, warmup=3)
SCRIPT = vllm_script(n_tokens=20, ttft_s=0.005, tpot_s=0.002, speculation=Speculation(3, 0.7, 0.5))


async def ask_other(server: FakeServer, n: int) -> None:
    """Somebody else's requests, one after the other."""
    async with httpx.AsyncClient() as client:
        for number in range(n):
            body = {"messages": [{"role": "user", "content": f"other {number}"}], "stream": True}
            await client.post(f"{server.url}/v1/chat/completions", json=body)


async def measure(
    script: Script,
    out: Path,
    plan: MeasurePlan = PLAN,
    others: int = 0,
    server: Callable[..., FakeServer] = FakeServer,
) -> Run:
    """A run with some traffic of others in it, which begins with the first kept request."""
    async with server(script) as fake:
        strangers: list[asyncio.Task[None]] = []

        def begin(trace: object) -> None:
            if others and not strangers:
                strangers.append(asyncio.create_task(ask_other(fake, others)))

        run = await measure_endpoint(Endpoint(fake.url), plan, out, on_trace=begin)
        await asyncio.gather(*strangers)
        return run


def foreign(run: Run) -> list[str]:
    return [why for why in run.meta.warnings if why.startswith("other traffic")]


async def test_a_run_keeps_what_the_server_worked_in_its_own_time(tmp_path: Path) -> None:
    run = await measure(SCRIPT, tmp_path / "run")
    assert run.meta.load is not None
    assert (run.meta.load.requests, run.meta.load.output_tokens) == (8, 160), "and not of the warm-up"
    assert run.meta.load.running == 0
    drafts = [trace.speculation for trace in run.traces()]
    assert run.meta.counters is not None and run.meta.counters.drafts and drafts
    assert run.meta.warnings == ()


@pytest.mark.parametrize("preset", [vllm_script, llamacpp_script])
async def test_traffic_of_others_in_that_time_is_told(preset: Callable[..., Script], tmp_path: Path) -> None:
    run = await measure(preset(n_tokens=20, ttft_s=0.005, tpot_s=0.005), tmp_path / "run", others=5)
    (why,) = foreign(run)
    assert "8 requests with 160 output tokens were asked of it" in why
    assert run.meta.load is not None and (run.meta.load.output_tokens or 0) > 160 + 20


async def test_a_server_that_starts_anew_within_the_run_is_told(tmp_path: Path) -> None:
    class Forgetful(FakeServer):
        pages = 0

        def _metrics(self) -> str:
            self.pages += 1
            if self.pages > 1:
                self.totals = type(self.totals)()
            return super()._metrics()

    run = await measure(SCRIPT, tmp_path / "run", server=Forgetful)
    assert run.meta.counters is None and run.meta.load is None
    assert any("started anew" in why for why in run.meta.warnings)
