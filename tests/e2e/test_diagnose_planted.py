"""Causes planted one at a time on a server that follows a script: `breakeven diagnose` names that one first,
and nothing on a healthy server."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from breakeven import ClosedLoop, Endpoint, MeasurePlan, Sampling, measure_endpoint
from breakeven.servers.fake import FakeServer, Script, Speculation, vllm_script
from breakeven.servers.fake.metrics import Totals
from breakeven.workload.prompts import Prompt, Workload
from tests.e2e.command import breakeven

PLAIN_S = 0.008
"""A plain step: long beside what a loaded machine holds a read up."""
TOKENS = 96
PROMPTS = Workload(
    "planted", tuple(Prompt(f"p{i}", "test", text=f"Tell me about number {i}.") for i in range(6))
)
GOOD = Speculation(k=4, acceptance=0.7, draft_share=0.8, verify_cost=0.15, overhead=0.02)
"""About 1.9 times as fast as without."""
BANNER = "INFO 11-29 10:00:00 [api_server.py:1772] vLLM API server version 0.32.0\n"
ON = "INFO 11-29 10:00:01 [config.py:580] Asynchronous scheduling is enabled.\n"
OFF = (
    "WARNING 11-29 10:20:01 [config.py:588] Async scheduling not supported with ngram-based speculative "
    "decoding and will be disabled.\n"
)
SERVED = "INFO 11-29 10:21:00 [launcher.py:46] Application startup complete.\n"
POST = 'INFO:     127.0.0.1:40000 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
COMPILING = (
    "INFO 11-29 10:21:04 [backends.py:215] Compiling a graph for dynamic shape takes 3.41 s\n"
    "INFO 11-29 10:21:09 [monitor.py:34] torch.compile takes 4.86 s in total\n"
)


def script(speculation: Speculation | None = None, **changes: Any) -> Script:
    fields = {"ttft_s": 0.005, "tpot_s": PLAIN_S, "n_tokens": TOKENS, "speculation": speculation}
    return vllm_script(**{**fields, **changes})


def measured(
    server: FakeServer, folder: Path, meanwhile: Callable[[str], AbstractContextManager[None]] | None = None
) -> Path:
    """A run of all prompts three times, one request after the other. The client is not
    looked at: a busy machine makes it lag."""
    plan = MeasurePlan(PROMPTS, Sampling(TOKENS), ClosedLoop(1), repeats=3)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("breakeven.client.selfcheck.LEAST_LAG_MS", math.inf)
        with server.in_thread(), meanwhile(server.url) if meanwhile else nullcontext():
            asyncio.run(measure_endpoint(Endpoint(server.url), plan, folder))
    return folder


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured(FakeServer(script()), tmp_path_factory.mktemp("runs") / "baseline")


def found(*words: object) -> list[str]:
    """Ids of the findings, most telling first."""
    return [one["id"] for one in breakeven("diagnose", *words, "--json").succeeded().json()["findings"]]


def log(path: Path, *lines: str) -> Path:
    path.write_text("".join((BANNER, *lines)))
    return path


def test_a_healthy_server(baseline: Path, tmp_path: Path) -> None:
    candidate = measured(FakeServer(script(GOOD, timings=True)), tmp_path / "candidate")
    logs = (
        *("--logs", log(tmp_path / "candidate.log", ON, SERVED, POST)),
        *("--baseline-logs", log(tmp_path / "baseline.log", ON, SERVED, POST)),
    )
    assert found(baseline, candidate, "--k", 4, *logs) == []
    assert found(candidate, "--k", 4) == []
    server = FakeServer(script(GOOD))
    with server.in_thread():
        assert found("--url", server.url, "--seconds", 0.5, "--k", 4) == []


def test_async_scheduling_lost(baseline: Path, tmp_path: Path) -> None:
    """Every step, drafted or not, takes two thirds longer."""
    slow = Speculation(k=4, acceptance=0.6, draft_share=0.5, verify_cost=0.1, overhead=0.9)
    candidate = measured(FakeServer(script(slow)), tmp_path / "candidate")
    logs = (
        *("--logs", log(tmp_path / "candidate.log", OFF, SERVED, POST)),
        *("--baseline-logs", log(tmp_path / "baseline.log", ON, SERVED, POST)),
    )
    assert found(baseline, candidate, "--k", 4, "--method", "ngram", *logs)[0] == "async_scheduling"


def test_a_window_that_is_too_long(baseline: Path, tmp_path: Path) -> None:
    """Of eight positions the first two are accepted now and then, and all are verified."""
    long = Speculation(k=8, acceptance=0.35, draft_share=0.9, verify_cost=1.2)
    candidate = measured(FakeServer(script(long)), tmp_path / "candidate")
    assert found(baseline, candidate, "--k", 8)[0] == "window_too_long"


def test_rare_drafts(baseline: Path, tmp_path: Path) -> None:
    """What vLLM makes of prompt_lookup_max alone: matches of exactly four tokens."""
    rare = Speculation(k=5, acceptance=0.6, draft_share=0.05, verify_cost=0.3, overhead=0.05)
    candidate = measured(FakeServer(script(rare, timings=True)), tmp_path / "candidate")
    config = '{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}'
    words = (baseline, candidate, "--speculative-config", config, "--engine", "vllm")
    assert found(*words)[0] == "lookup_only_longest"


def test_compilation_inside_the_window(baseline: Path, tmp_path: Path) -> None:
    """The first requests after the warm-up wait for kernels."""

    def compiles(_body: dict[str, Any], index: int) -> Script:
        return script(GOOD, stall_at=30, stall_s=2.0) if index in (1, 2, 3) else script(GOOD)

    candidate = measured(FakeServer(compiles), tmp_path / "candidate")
    assert found(candidate, "--k", 4)[0] == "warm_up_in_window"
    told = log(tmp_path / "candidate.log", SERVED, POST, COMPILING)
    assert found(baseline, candidate, "--k", 4, "--logs", told)[0] == "warm_up_in_window"


@contextmanager
def others(url: str) -> Iterator[None]:
    """Somebody else who asks all the while."""
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            connection = HTTPConnection(url.removeprefix("http://"), timeout=10)
            connection.request("POST", "/v1/completions", '{"prompt": "Hello", "max_tokens": 16}')
            connection.getresponse().read()
            connection.close()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_foreign_traffic(baseline: Path, tmp_path: Path) -> None:
    candidate = measured(FakeServer(script(GOOD)), tmp_path / "candidate", others)
    assert found(baseline, candidate, "--k", 4)[0] == "foreign_traffic"


def test_a_loop_of_two_tokens(baseline: Path, tmp_path: Path) -> None:
    """Replies that loop are accepted nearly whole."""
    loops = Speculation(k=4, acceptance=0.97, verify_cost=0.2)
    candidate = measured(
        FakeServer(script(loops, n_tokens=4 * TOKENS, loop_from=10, timings=True)), tmp_path / "candidate"
    )
    assert found(baseline, candidate, "--k", 4)[0] == "degenerate_output"


class Restarted(FakeServer):
    """Counts from 0 again once its page has been read."""

    def _metrics(self) -> str:
        page = super()._metrics()
        self.totals = Totals()
        return page


def restarted() -> Restarted:
    server = Restarted(script(GOOD))
    server.totals.generation_tokens, server.totals.finished["stop"] = 9000, 100
    server.totals.speculates = True
    return server


def test_a_restart_between_two_readings(baseline: Path, tmp_path: Path) -> None:
    server = restarted()
    with server.in_thread():
        assert found("--url", server.url, "--seconds", 0.5, "--k", 4)[0] == "counters_reset"
    candidate = measured(restarted(), tmp_path / "candidate")
    assert found(baseline, candidate, "--k", 4)[0] == "counters_reset"


RANK = """vllm:spec_decode_num_drafts_total{{engine="{rank}"}} {drafts}
vllm:spec_decode_num_draft_tokens_total{{engine="{rank}"}} {drafted}
vllm:spec_decode_num_accepted_tokens_total{{engine="{rank}"}} {accepted}
"""


class Ranks(FakeServer):
    """Four data-parallel ranks, of which two report no numbers."""

    readings = 0

    def _metrics(self) -> str:
        self.readings += 1
        each = {"drafts": 500, "drafted": 2000, "accepted": 1000}
        known = {name: n * self.readings for name, n in each.items()}
        null = dict.fromkeys(known, "NaN")
        return "".join(RANK.format(rank=rank, **(known if rank > 1 else null)) for rank in range(4))


def test_ranks_of_which_some_report_nothing() -> None:
    server = Ranks(script(GOOD))
    with server.in_thread():
        assert found("--url", server.url, "--seconds", 0.5, "--k", 4)[0] == "silent_ranks"


def test_a_head_that_does_not_fit(baseline: Path, tmp_path: Path) -> None:
    """An acceptance length of 1.04."""
    wrong = Speculation(k=3, acceptance=0.04, verify_cost=0.2, overhead=0.1)
    candidate = measured(FakeServer(script(wrong)), tmp_path / "candidate")
    assert found(baseline, candidate, "--k", 3, "--method", "eagle3")[0] == "mismatched_head"
