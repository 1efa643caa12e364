"""Bugs that other tools had, row by row of cases.csv with area `server`: none of them is here."""

import csv
from pathlib import Path
from typing import Any

import pytest

from breakeven.client.endpoint import Endpoint
from breakeven.errors import ServerError
from breakeven.servers import readiness
from breakeven.servers.fake import FakeServer, Script, http_error
from breakeven.servers.fake.lifecycle import FakeLifecycle
from breakeven.servers.lifecycle import State
from breakeven.servers.readiness import Ready, Wanted, wait_until_ready
from breakeven.servers.recovery import change, pending, put_back, restart
from breakeven.servers.undo_journal import UndoJournal
from breakeven.servers.undo_record import Verification
from tests.unit.servers.fake_service import CANDIDATE, FOUND, VERIFICATION, Machine, Service
from tests.unit.servers.plain_dialect import PlainDialect

QUICK = Script(ttft_s=0.001, tpot_s=0.0005)


def test_every_row_has_its_test():
    rows = csv.DictReader((Path(__file__).parent / "cases.csv").open())
    wanted = {int(row["id"]): row["source"] for row in rows if row["area"] == "server"}
    tests = {int(name.split("_")[2]): name for name in globals() if name.startswith("test_case_")}
    assert sorted(tests) == sorted(wanted) == [40, 41, 42]
    for number, source in wanted.items():
        repository, issue = source.split("#")
        assert issue in tests[number]
        assert repository.replace("-", "_").replace(".", "_").lower() in tests[number]


async def wait(url: str, lifecycle: FakeLifecycle, deadline_s: float, concurrency: int = 1) -> Ready:
    wanted = Wanted(Endpoint(url, model="fake-model"), deadline_s, concurrency)
    return await wait_until_ready(lifecycle, PlainDialect(), wanted)


class Clock:
    """A monotonic clock that each look moves on."""

    def __init__(self, step_s: float) -> None:
        self.now_s = 0.0
        self.step_s = step_s

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(readiness, "PAUSE_S", 0.01)
    monkeypatch.setattr("platformdirs.user_state_dir", lambda *a, **k: str(tmp_path / "breakeven"))


async def test_case_40_llm_d_benchmark_680_a_server_that_refuses_every_connection():
    """20 of 20 failed there, and the summary divided by zero."""
    async with FakeServer(QUICK) as server:
        url = server.url
    with pytest.raises(ServerError, match=r"not ready within .*nothing answers at") as failure:
        await wait(url, FakeLifecycle(), deadline_s=0.5)
    assert "division" not in str(failure.value)


async def test_case_41_instructlab_3354_loading_for_eight_minutes(monkeypatch: pytest.MonkeyPatch):
    """503 for 8 minutes of the server's time: the limit is one of the clock, and ready is a completion."""
    clock = Clock(step_s=2.0)
    monkeypatch.setattr(readiness, "monotonic", clock)

    def direct(body: dict[str, Any], number: int) -> Script:
        return http_error(503, "Loading model") if clock.now_s < 480 else QUICK

    async with FakeServer(direct) as server:
        ready = await wait(server.url, FakeLifecycle(), deadline_s=3600)
        looks = server.requests
    assert looks > 20
    assert 480 <= ready.seconds < 900
    monkeypatch.undo()
    monkeypatch.setattr(readiness, "PAUSE_S", 0.01)
    async with FakeServer(http_error(503, "Loading model")) as server:
        with pytest.raises(ServerError, match=r"not ready within .*Loading model"):
            await wait(server.url, FakeLifecycle(), deadline_s=0.3)


async def test_case_42_vllm_37521_out_of_memory_on_the_first_full_batch_is_rolled_back():
    """/health and one request are fine; the batch kills the engine, and the baseline comes back."""
    machine = Machine()
    service, before = Service(machine), machine.everything()
    candidate = FakeLifecycle(lines=["PHASE serving"])

    def direct(body: dict[str, Any], number: int) -> Script:
        if number == 0:
            return QUICK
        candidate.lines.append("FATAL torch.OutOfMemoryError: CUDA out of memory")
        candidate.now = State("failed", "exit code 1")
        return http_error(500, "EngineCore encountered an issue")

    verified: list[Verification] = []

    async def verify(verification: Verification, lifecycle: object, is_restarted: bool) -> None:
        verified.append(verification)

    async with FakeServer(direct) as server:
        with UndoJournal.open("systemd", FOUND, VERIFICATION) as journal:
            await change(journal, machine, service.change(FOUND, CANDIDATE))
            await restart(journal, service)
            with pytest.raises(ServerError, match="CUDA out of memory"):
                await wait(server.url, candidate, deadline_s=60, concurrency=8)
            await put_back(journal, machine, service, verify)
    assert machine.everything() == before
    assert verified == [VERIFICATION]
    assert pending() == ()
