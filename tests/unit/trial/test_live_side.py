"""One side of a live trial against a fake server: what it keeps of the server's own counters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from breakeven.client import selfcheck
from breakeven.client.asker import Asker
from breakeven.client.endpoint import Endpoint
from breakeven.client.load import ClosedLoop
from breakeven.client.transport import Pool
from breakeven.measure import MeasurePlan, describe, send_warmup
from breakeven.servers.fake import FakeServer, Speculation, vllm_script
from breakeven.trace.journal import RunWriter
from breakeven.trace.run import Run, load_run
from breakeven.trial.live_side import MeasuredSide, measuring, unanswered
from breakeven.trial.live_watch import Watch
from breakeven.trial.plan import TrialPlan
from breakeven.workload.prompts import Prompt, Sampling, Workload

PROMPTS = Workload(
    "four", tuple(Prompt(f"p{i}", "c", text=f"prompt {i}") for i in range(4)), warnings=("few prompts",)
)
PLAN = TrialPlan(PROMPTS, Sampling(max_tokens=20), warmup=2)
SCRIPT = vllm_script(n_tokens=20, ttft_s=0.002, tpot_s=0.001, speculation=Speculation(3, 0.7, 0.5))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfcheck, "LEAST_LAG_MS", 1e9)
    monkeypatch.setattr(selfcheck, "LEAST_SHARE", 0.0)
    monkeypatch.setattr(selfcheck, "ONE_AT_A_TIME", 0.0)


async def repeats(
    plan: TrialPlan, writer: RunWriter | None, out: Path, *numbers: int, others: int = 0
) -> Run:
    """These repeats, each on a server of its own; a stranger is served after each."""
    made: list[MeasuredSide] = []
    for number in numbers:
        async with FakeServer(SCRIPT) as fake, Pool() as pool:
            asker = await Asker.find(pool, Endpoint(fake.url), plan.sampling)
            if writer is None:
                asked = MeasurePlan(PROMPTS, plan.sampling, ClosedLoop(plan.concurrency), len(numbers))
                writer = RunWriter.create(out, describe(asker, asked, "trial-side"), PROMPTS.prompts)
            if not made:
                entered = measuring("candidate", plan, writer, Watch(), lambda trace: None)
                side, end = entered.__enter__()
                made.append(side)
            await side.begin(asker, fresh=False)
            for _ in range(others):
                await send_warmup(asker, PROMPTS, 4)
            await side.repeat(number)
            for _ in range(others):
                await send_warmup(asker, PROMPTS, 4)
    side.finish(end)
    entered.__exit__(None, None, None)
    return load_run(out)


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_what_is_served_outside_its_windows_is_not_its_own(concurrency: int, tmp_path: Path) -> None:
    plan = replace(PLAN, concurrency=concurrency)
    run = await repeats(plan, None, tmp_path / "run", 0, 1, others=2)
    assert run.meta.load is not None and run.meta.counters is not None
    assert (run.meta.load.requests, run.meta.load.output_tokens) == (8, 160), "over two starts of the server"
    assert run.meta.warnings == PROMPTS.warnings
    if concurrency == 1:
        parts = [trace.speculation for trace in run.traces()]
        assert sum(part.drafts or 0 for part in parts if part) == run.meta.counters.drafts


async def test_a_side_that_is_asked_again_keeps_what_was_counted_before(tmp_path: Path) -> None:
    first = await repeats(PLAN, None, tmp_path / "run", 0)
    writer, _ = RunWriter.resume(tmp_path / "run")
    both = await repeats(PLAN, writer, tmp_path / "run", 1)
    assert first.meta.load is not None and both.meta.load is not None
    assert (first.meta.load.requests, both.meta.load.requests) == (4, 8)


async def test_a_candidate_has_none_of_the_baselines_counts_and_warnings(tmp_path: Path) -> None:
    meta = (await repeats(PLAN, None, tmp_path / "run", 0)).meta
    asked = unanswered(replace(meta, warnings=(*meta.warnings, "other traffic"), notes=("a",)), PROMPTS)
    assert (asked.load, asked.counters, asked.notes) == (None, None, ())
    assert asked.warnings == PROMPTS.warnings
