"""A service on a machine in memory, which really answers: with what runs there, plainly or with drafts.

The supervisor is that of tests/unit/servers/fake_service.py; behind the address is a fake model server that
looks at what the machine runs whenever it is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from breakeven.client.endpoint import Endpoint
from breakeven.client.load import LoadReport, run_load
from breakeven.client.timeouts import Timeouts
from breakeven.engines.speculation import SpeculationConfig
from breakeven.engines.vllm import Vllm
from breakeven.servers.fake import FakeServer, Script, Speculation, vllm_script
from breakeven.servers.lifecycle import State
from breakeven.servers.progress import Progress
from breakeven.servers.undo_journal import journals_folder
from breakeven.servers.undo_record import read_record
from breakeven.trace.records import RequestTrace
from breakeven.trial import live_side
from breakeven.trial.live import LivePlan, Service, Watch
from breakeven.trial.plan import TrialPlan
from breakeven.workload.prompts import Prompt, Request, Sampling, Workload
from tests.unit.servers import fake_service

N_TOKENS = 13
PLAIN = vllm_script(n_tokens=N_TOKENS, ttft_s=0.002, tpot_s=0.003)
DRAFTS = replace(PLAIN, speculation=Speculation(k=3, acceptance=1.0))
"""Four times as fast, whatever else the machine does."""
PROMPTS = Workload("four", tuple(Prompt(f"p{i}", "c", text=f"prompt number {i}") for i in range(4)))
NGRAM = SpeculationConfig("ngram", k=3, min_n=2, max_n=4)
SUFFIX = SpeculationConfig("suffix", k=3)
TRIAL = TrialPlan(PROMPTS, Sampling(max_tokens=N_TOKENS), repeats=2, concurrency=2)
PLAN = LivePlan(TRIAL, (NGRAM,), start_limit_s=20.0)
STARTS = (
    "Initializing a V1 LLM engine (v0.32.0)",
    "KV cache size: 1,024 tokens",
    "INFO:     Application startup complete.",
)
BASELINE_LOG = (*STARTS, "Asynchronous scheduling is enabled.")
CANDIDATE_LOG = (*STARTS, "Async scheduling not supported")

Answering = Callable[[dict[str, Any]], Script]


def lag(ms: float) -> str:
    """What a self-check says that found so much of it."""
    return (
        f"the client fell behind: its event loop lagged {ms:.1f} ms (p99) where a token takes 3.0 ms: free "
        "the machine, run the client elsewhere, or lower --concurrency"
    )


def falls_behind(patch: pytest.MonkeyPatch, *behind: int, only: range = range(1000)) -> None:
    """Has the client fall behind in these repeats, of the loads `only` (counted from 0, warm-ups too)."""
    n = 0

    async def lagging(requests: Sequence[Request], *given: Any) -> LoadReport:
        nonlocal n
        report, number = await run_load(requests, *given), requests[0].repeat
        n += 1
        if number not in behind or n - 1 not in only:
            return report
        check = replace(report.self_check, ok=False, reasons=(lag(10 + number),))
        return replace(report, self_check=check)

    patch.setattr(live_side, "run_load", lagging)


class Supervised(fake_service.Service):
    """Its log tells which of the two runs; it may be told to have died, or to fail its restarts."""

    def __init__(self, machine: fake_service.Machine) -> None:
        super().__init__(machine)
        self.dead: Callable[[bool], str | None] = lambda is_changed: None
        self.logs_of: Mapping[bool, Sequence[str]] = {False: BASELINE_LOG, True: CANDIDATE_LOG}

    @property
    def is_changed(self) -> bool:
        return b"--speculative-config" in self.machine.running

    async def state(self) -> State:
        why = self.dead(self.is_changed)
        return State("running", since_s=self.since_s) if why is None else State("failed", why)

    async def logs(self) -> AsyncIterator[str]:
        for line in self.logs_of[self.is_changed]:
            yield line
        while True:
            if self.dead(self.is_changed) is not None:
                return
            await asyncio.sleep(0.01)


class Told(Watch):
    """Keeps what it is told. `on_answer` is called with the side of each request."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, int, int, int]] = []
        self.lines: list[str] = []
        self.asked: list[tuple[str, str]] = []
        self.progress: list[Progress] = []
        self.on_answer: Callable[[str], None] = lambda side: None

    def begins(self, part: str, number: int, of: int, requests: int) -> None:
        self.parts.append((part, number, of, requests))

    def starting(self, progress: Progress) -> None:
        self.progress.append(progress)

    def answered(self, side: str, trace: RequestTrace) -> None:
        self.asked.append((side, trace.id))
        self.on_answer(side)

    def said(self, line: str) -> None:
        self.lines.append(line)


class Site:
    """The machine, its service, and who watches. Replies are as `baseline` and `candidate` say."""

    def __init__(self) -> None:
        self.machine = fake_service.Machine()
        self.lifecycle = Supervised(self.machine)
        self.told = Told()
        self.baseline: Answering = lambda body: PLAIN
        self.candidate: Answering = lambda body: DRAFTS
        self.bodies: list[tuple[bool, dict[str, Any]]] = []
        """What came, each with whether the candidate was up."""
        self.service: Service
        self.before = self.machine.everything()

    def answer(self, body: dict[str, Any], index: int) -> Script:
        is_changed = self.lifecycle.is_changed
        self.bodies.append((is_changed, body))
        return (self.candidate if is_changed else self.baseline)(body)

    def prompts(self, is_changed: bool) -> list[str]:
        """Texts that came while the one or the other was up."""
        return [str(body["messages"][0]["content"]) for changed, body in self.bodies if changed is is_changed]

    @property
    def is_back(self) -> bool:
        """Byte for byte, but for how often it was restarted; and nothing is left to recover."""
        return self.machine.everything() == self.before and not list(journals_folder().glob("*.jsonl"))

    @property
    def closed(self) -> list[str | None]:
        """How each journal was closed."""
        files = sorted(journals_folder().glob("closed/*.jsonl"))
        return [record.closed for file in files if (record := read_record(file)) is not None]


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    made = Site()
    async with FakeServer(made.answer, dialect=PLAIN.dialect) as server:
        made.service = Service(
            made.lifecycle,
            Vllm(),
            made.machine,
            fake_service.FOUND,
            Endpoint(server.url),
            {"sudo": False},
            timeouts=Timeouts(connect_s=2, first_token_s=2, idle_s=2),
        )
        yield made
