"""The conductor against two fake servers: what it asks, what it counts, and when it stops."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from breakeven.client import selfcheck
from breakeven.client.endpoint import Endpoint
from breakeven.servers.fake import FakeServer, Script, Speculation, llamacpp_script, vllm_script
from breakeven.trace.run import load_run
from breakeven.trial.conductor import LiveSide, conduct
from breakeven.trial.plan import SIDES, TrialPlan
from breakeven.workload.prompts import Prompt, Sampling, Workload

PROMPTS = Workload("three", tuple(Prompt(f"p{i}", "c", text=f"prompt {i}") for i in range(3)))
PLAN = TrialPlan(PROMPTS, Sampling(max_tokens=24), repeats=2)
PLAIN = vllm_script(n_tokens=24, ttft_s=0.01, tpot_s=0.002)
DRAFTS = Speculation(k=3, acceptance=0.7, draft_share=0.5)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine leaves no repeat out: what is asked and counted is tested here, not the self-check."""
    monkeypatch.setattr(selfcheck, "LEAST_LAG_MS", 1e9)
    monkeypatch.setattr(selfcheck, "LEAST_SHARE", 0.0)
    monkeypatch.setattr(selfcheck, "ONE_AT_A_TIME", 0.0)


@contextmanager
def two(baseline: Script, candidate: Script) -> Iterator[dict[str, LiveSide]]:
    with FakeServer(baseline).in_thread() as first, FakeServer(candidate).in_thread() as second:
        yield {
            name: LiveSide(server.url, Endpoint(server.url))
            for name, server in zip(SIDES, (first, second), strict=True)
        }


async def run(plan: TrialPlan, sides: dict[str, LiveSide], out: Path):
    seen: list[str] = []
    return await conduct(plan, sides, out, seen.append), seen


async def test_each_side_is_asked_in_turn_and_saved(tmp_path: Path):
    with two(PLAIN, PLAIN) as sides:
        result, seen = await run(PLAN, sides, tmp_path / "t")
    assert [note.split()[0][0] for note in seen] == list("bccbbc" + "cbbccb")
    for name in SIDES:
        saved = load_run(tmp_path / "t" / name)
        assert saved.meta.status == "complete"
        assert {(trace.prompt_id, trace.repeat) for trace in saved.traces()} == {
            (f"p{i}", repeat) for i in range(3) for repeat in range(2)
        }
    assert result.stopped_after == 2
    assert result.comparison.lossless.identical == result.comparison.lossless.compared == 6


@pytest.mark.parametrize("preset", [vllm_script, llamacpp_script])
async def test_drafts_that_only_metrics_count_are_known_per_prompt(preset, tmp_path: Path):
    script = preset(n_tokens=24, ttft_s=0.01, tpot_s=0.002)
    with two(script, replace(script, speculation=DRAFTS)) as sides:
        result, _ = await run(PLAN, sides, tmp_path / "t")
    whole = result.candidate.acceptance
    assert whole is not None
    assert None not in (whole.steps, whole.drafts, whole.drafted_tokens, whole.accepted_tokens)
    assert whole.draft_share is not None and 0 < whole.draft_share < 1
    parts = result.candidate.acceptance_by_prompt.values()
    assert sum(part.drafts or 0 for part in parts) == whole.drafts
    assert whole.steps == sum(23 for _ in range(6)) - whole.accepted_tokens


async def test_under_concurrency_metrics_are_counted_per_load(tmp_path: Path):
    plan = replace(PLAN, concurrency=3)
    with two(PLAIN, replace(PLAIN, speculation=DRAFTS)) as sides:
        result, seen = await run(plan, sides, tmp_path / "t")
    assert [note.split()[0][0] for note in seen] == list("bbbccc" + "cccbbb")
    assert result.candidate.acceptance is not None and result.candidate.acceptance.drafts


async def test_a_repeat_in_which_the_client_fell_behind_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    real = selfcheck.judge
    judged = []

    def behind_at_first(*arguments):
        judged.append(real(*arguments))
        return replace(judged[-1], ok=False, reasons=("too slow",)) if len(judged) == 1 else judged[-1]

    monkeypatch.setattr("breakeven.client.load.judge", behind_at_first)
    with two(PLAIN, PLAIN) as sides:
        result, _ = await run(replace(PLAN, repeats=3), sides, tmp_path / "t")
    assert result.stopped_after == 2
    assert any("1 repeat left out" in line and "too slow" in line for line in result.confounders)
    assert len(load_run(tmp_path / "t" / "baseline")) == 9


async def test_no_repeat_is_begun_that_would_pass_the_time_limit(tmp_path: Path):
    with two(PLAIN, PLAIN) as sides:
        result, _ = await run(replace(PLAN, repeats=50, time_limit_s=0.6), sides, tmp_path / "t")
    assert 1 <= result.stopped_after < 50
    assert "another would pass" in result.stop_reason


async def test_auto_stops_once_a_large_difference_is_plain(tmp_path: Path):
    slow, fast = replace(PLAIN, tpot_s=0.016), replace(PLAIN, tpot_s=0.004)
    with two(slow, fast) as sides:
        result, _ = await run(replace(PLAN, repeats=None), sides, tmp_path / "t")
    assert result.verdict.outcome == "faster"
    assert result.stopped_after < 12
    assert result.stop_reason.startswith("decided after")
    assert result.comparison.confidence > 0.95


async def ask_other(url: str, n: int) -> None:
    async with httpx.AsyncClient() as client:
        for number in range(n):
            body = {"messages": [{"role": "user", "content": f"other {number}"}], "stream": True}
            await client.post(f"{url}/v1/chat/completions", json=body)


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_traffic_of_others_is_a_confounder_of_its_side(concurrency: int, tmp_path: Path):
    plan = replace(PLAN, concurrency=concurrency)
    with two(PLAIN, PLAIN) as sides:
        trial = asyncio.create_task(run(plan, sides, tmp_path / "t"))
        strangers = [
            ask_other(sides["candidate"].endpoint.base_url.removesuffix("/v1"), 30) for _ in range(4)
        ]
        await asyncio.gather(trial, *strangers)
    result, _ = trial.result()
    (why,) = (line for line in result.confounders if "other traffic" in line)
    assert why.startswith("candidate: other traffic shared the server: it finished ")
    loads = {name: load_run(tmp_path / "t" / name).meta.load for name in SIDES}
    assert loads["baseline"].requests == 6 < loads["candidate"].requests


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_two_sides_on_one_server_are_not_each_others_traffic(concurrency: int, tmp_path: Path):
    with FakeServer(replace(PLAIN, speculation=DRAFTS)).in_thread() as server:
        sides = {name: LiveSide(server.url, Endpoint(server.url)) for name in SIDES}
        result, _ = await run(replace(PLAN, concurrency=concurrency), sides, tmp_path / "t")
    assert not [line for line in result.confounders if "other traffic" in line]
    for name in SIDES:
        meta = load_run(tmp_path / "t" / name).meta
        assert (meta.load.requests, meta.load.output_tokens) == (6, 6 * 24)
