"""The client against the package's fake server, which knows the truth about what it did."""

from __future__ import annotations

from time import perf_counter_ns

import pytest

from breakeven.client.endpoint import Endpoint
from breakeven.client.load import ClosedLoop, run_load
from breakeven.client.openai import DEFAULT_ASK_FOR, AskFor, ask, preflight
from breakeven.client.transport import Pool
from breakeven.servers.fake.presets import llamacpp_script, vllm_script
from breakeven.servers.fake.script import Script, Speculation, Wire
from breakeven.servers.fake.server import FakeServer
from breakeven.trace.records import Kind, RequestTrace
from breakeven.workload.prompts import Prompt, Request, Sampling

SLACK_S = 0.1
"""These machines are shared; what is exact has tests of its own."""


async def one(script: Script, ask_for: AskFor = DEFAULT_ASK_FOR) -> tuple[RequestTrace, FakeServer]:
    async with FakeServer(script) as server, Pool() as pool:
        endpoint = await preflight(pool, Endpoint(server.url))
        zero_ns = perf_counter_ns()
        request = Request(Prompt("p", "c", text="Hello"))
        trace = await ask(
            pool, endpoint, request, Sampling(max_tokens=512), clock_zero_ns=zero_ns, ask_for=ask_for
        )
        assert trace.error is None
        return trace, server


def seconds(trace: RequestTrace, number: int) -> float:
    return (trace.events[number].read_ns - trace.sent_ns) / 1e9


async def test_case_15_the_role_chunk_is_no_token() -> None:
    trace, _ = await one(vllm_script(ttft_s=0.1, tpot_s=0.002, n_tokens=10, role_at_s=0.005))
    assert 0.095 < seconds(trace, 0) < 0.1 + SLACK_S


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content", "inline"])
async def test_cases_1_and_4_reasoning_comes_first(key: str) -> None:
    script = vllm_script(ttft_s=0.05, tpot_s=0.005, n_tokens=40, reasoning_tokens=20, reasoning_key=key)
    trace, _ = await one(script)
    assert [event.kind for event in trace.events] == [Kind.REASONING] * 20 + [Kind.CONTENT] * 20
    assert 0.045 < seconds(trace, 0) < 0.05 + SLACK_S
    assert 0.145 < seconds(trace, 20) < 0.15 + SLACK_S


async def test_stamps_lie_between_the_servers_own_and_a_little_later() -> None:
    async with FakeServer(vllm_script(ttft_s=0.02, tpot_s=0.01, n_tokens=20)) as server, Pool() as pool:
        endpoint = await preflight(pool, Endpoint(server.url))
        trace = await ask(pool, endpoint, Request(Prompt("p", "c", text="x")), Sampling(max_tokens=512))
        truth = server.log[0]
    assert trace.sent_ns <= truth.received_ns + 1_000_000
    for event, written_ns in zip(trace.events, truth.written_ns, strict=True):
        assert -2_000_000 < event.read_ns - written_ns < SLACK_S * 1e9


async def test_bundles_are_counted_by_token_ids_and_by_running_usage() -> None:
    script = vllm_script(ttft_s=0.01, tpot_s=0.001, n_tokens=32, tokens_per_chunk=4, first_chunk_tokens=8)
    by_ids, _ = await one(script, AskFor(token_ids=True))
    assert [event.n_tokens for event in by_ids.events] == [8] + [4] * 6
    assert by_ids.output_token_ids is not None and len(by_ids.output_token_ids) == 32
    running = vllm_script(
        ttft_s=0.01, tpot_s=0.001, n_tokens=32, tokens_per_chunk=4, first_chunk_tokens=8, usage="every_chunk"
    )
    by_usage, _ = await one(running)
    assert [event.n_tokens for event in by_usage.events] == [8] + [4] * 6
    plain, _ = await one(script)
    assert [event.n_tokens for event in plain.events] == [None] * 7


@pytest.mark.parametrize(
    "wire",
    [
        Wire(split="utf8", split_gap_s=0.003),
        Wire(split="anywhere", split_gap_s=0.002),
        Wire(line_end="\r\n", comments=True, multi_line=True),
        Wire(line_end="\r", comments=True),
        Wire(ping_s=0.005),
        Wire(gzip=True),
        Wire(transfer="close"),
        Wire(trickle_header=True),
        Wire(events_per_write=5),
        Wire(done=False),
    ],
)
async def test_how_bytes_travel_changes_nothing_that_is_said(wire: Wire) -> None:
    plain, _ = await one(vllm_script(ttft_s=0.01, tpot_s=0.001, n_tokens=24))
    trace, _ = await one(vllm_script(ttft_s=0.01, tpot_s=0.001, n_tokens=24, wire=wire))
    assert (trace.text, trace.finish_reason, trace.usage) == (plain.text, plain.finish_reason, plain.usage)
    assert len(trace.events) == len(plain.events)


async def test_llamacpps_end_token_and_timings() -> None:
    script = llamacpp_script(
        ttft_s=0.01, tpot_s=0.001, n_tokens=20, speculation=Speculation(k=3, acceptance=0.7)
    )
    trace, server = await one(script)
    assert trace.events[-1].kind is Kind.END
    assert (trace.usage or {})["completion_tokens"] == 20
    assert trace.speculation is not None
    assert trace.speculation.accepted_tokens == server.log[0].counters.accepted_tokens


async def test_many_at_once() -> None:
    async with FakeServer(vllm_script(ttft_s=0.02, tpot_s=0.002, n_tokens=20)) as server, Pool() as pool:
        endpoint = await preflight(pool, Endpoint(server.url))
        traces: list[RequestTrace] = []

        async def send(request: Request, scheduled_ns: int | None) -> RequestTrace:
            return await ask(pool, endpoint, request, Sampling(max_tokens=20), scheduled_ns=scheduled_ns)

        asked = (Request(Prompt(str(i), "c", text=f"Say {i}.")) for i in range(128))
        report = await run_load(asked, send, ClosedLoop(32), traces.append)
    assert (report.finished, report.failed) == (128, 0)
    assert {len(trace.events) for trace in traces} == {20}
    assert report.self_check.decoding_peak is not None and report.self_check.decoding_peak > 8
    assert sum(trace.connect_ns is not None for trace in traces) <= 32
