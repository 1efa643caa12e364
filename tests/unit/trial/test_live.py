"""The trial of a live service, on a machine in memory: what is asked when, and that it always comes back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from breakeven.client import selfcheck
from breakeven.client.endpoint import ApiKey, Endpoint
from breakeven.compare.records import Comparison, Verdict
from breakeven.compare.sequential import Decision, StoppingRule
from breakeven.engines.speculation import SpeculationConfig
from breakeven.engines.vllm import Vllm
from breakeven.errors import BreakevenError, EndpointError, ServerError, StorageError, UsageError
from breakeven.report.jsonout import trial_json
from breakeven.servers import readiness, recovery
from breakeven.servers.fake import http_error
from breakeven.servers.host import LocalHost
from breakeven.servers.lifecycle import Condition, Found, State
from breakeven.servers.operation_kinds import RunCommand
from breakeven.servers.operations import Operation
from breakeven.servers.process import ProcessServer
from breakeven.servers.start_times import last_start_s
from breakeven.servers.undo_journal import UndoJournal, journals_folder
from breakeven.servers.watch import Bounds
from breakeven.trace.run import load_run
from breakeven.trial import confounded, live_guard, live_side
from breakeven.trial.live import LivePlan, Order, Service, dry_run, measure_baseline, try_candidate
from breakeven.trial.live_candidate import NO_RETURN
from breakeven.trial.result import TrialResult
from breakeven.trial.store import TrialRecord, load_record, load_trial
from tests.unit.servers import fake_service
from tests.unit.trial.live_service import (
    BASELINE_LOG,
    DRAFTS,
    N_TOKENS,
    NGRAM,
    PLAIN,
    PLAN,
    STARTS,
    SUFFIX,
    TRIAL,
    Site,
    falls_behind,
    site,
)
from tests.unit.trial.test_conductor import ask_other

Outcome = Literal["faster", "slower", "same", "undecided", "refused"]
TARGET = fake_service.FOUND.target
RUNS = State("running")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A busy machine leaves no repeat out, a disk is not waited for, and nobody waits for quiet logs."""
    monkeypatch.setattr(selfcheck, "LEAST_LAG_MS", 1e9)
    monkeypatch.setattr(selfcheck, "LEAST_SHARE", 0.0)
    monkeypatch.setattr(selfcheck, "ONE_AT_A_TIME", 0.0)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr("platformdirs.user_state_dir", lambda *a, **k: str(tmp_path / "state"))
    monkeypatch.setattr(confounded, "QUIET_S", 0.05)
    monkeypatch.setattr(readiness, "PAUSE_S", 0.02)
    monkeypatch.setattr(live_guard, "LAST_LOOKS_S", 0.3)
    monkeypatch.setattr(recovery, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr("breakeven.servers.startup_log.DRAIN_S", 0.1)


@pytest.fixture
async def here() -> AsyncIterator[Site]:
    async with site() as made:
        yield made


Decide = Callable[[Outcome], None]
"""Has every comparison come to this: on a machine that does other things too none is sure."""


@pytest.fixture
def decide(monkeypatch: pytest.MonkeyPatch) -> Decide:
    def decided(outcome: Outcome) -> None:
        monkeypatch.setattr("breakeven.trial.store.judge", lambda *given: Verdict(outcome, "as told"))

    return decided


async def trial(here: Site, out: Path, plan: LivePlan = PLAN) -> TrialResult:
    await measure_baseline(here.service, plan, out, here.told)
    return await try_candidate(here.service, plan, plan.candidates[0], out, here.told)


def repeats_asked(here: Site) -> list[tuple[str, list[int]]]:
    """Side by side in the order in which they were asked: the repeats of each stretch."""
    stretches: list[tuple[str, list[int]]] = []
    for side, name in here.told.asked:
        repeat = int(name.rpartition("#")[2])
        if not stretches or stretches[-1][0] != side:
            stretches.append((side, []))
        if repeat not in stretches[-1][1]:
            stretches[-1][1].append(repeat)
    return stretches


async def test_a_faster_candidate_and_the_service_as_it_was(here: Site, tmp_path: Path):
    result = await trial(here, tmp_path)
    assert result.comparison.speedup is not None and result.comparison.speedup.estimate > 1
    assert result.comparison.repeats == 2
    assert repeats_asked(here) == [("baseline", [0]), ("candidate", [0, 1]), ("baseline", [1])]
    assert here.is_back and here.closed == ["put back"]
    assert here.machine.restarts == 2
    assert [part[:3] for part in here.told.parts] == [
        ("baseline, as it runs", 1, 3),
        ("candidate", 2, 3),
        ("baseline, once it is back", 3, 3),
    ]


async def test_the_folder_is_that_of_any_trial(here: Site, tmp_path: Path):
    result = await trial(here, tmp_path)
    again = load_trial(tmp_path)
    assert again == result
    baseline, candidate = (load_run(tmp_path / side) for side in ("baseline", "candidate"))
    assert (baseline.meta.status, candidate.meta.status) == ("complete", "complete")
    assert [trace.block for trace in baseline.traces()] == [0] * 4 + [1] * 4
    ends = [trace.end_ns for trace in baseline.traces()]
    assert ends == sorted(ends)
    assert result.candidate.description == "vLLM, ngram, k 3, n-grams of 2 to 4 tokens"
    assert result.baseline.description == "vLLM as found, no speculation"
    assert result.comparison.drift.ratio is not None
    assert result.candidate.acceptance is not None and result.candidate.acceptance.drafts


async def test_reloads_are_timed_on_both_sides_and_remembered(here: Site, tmp_path: Path):
    result = await trial(here, tmp_path)
    assert result.baseline.reload_s is not None and result.candidate.reload_s is not None
    assert last_start_s(TARGET, changed=True) == result.candidate.reload_s
    assert last_start_s(TARGET, changed=False) == result.baseline.reload_s


async def test_differences_between_the_logs_are_confounders(here: Site, tmp_path: Path):
    result = await trial(here, tmp_path)
    assert "the sides' logs differ in asynchronous scheduling: on → off" in result.confounders
    assert not any("version" in sentence or "KV cache" in sentence for sentence in result.confounders)


async def test_a_baseline_that_comes_back_otherwise_is_a_confounder(here: Site, tmp_path: Path):
    await measure_baseline(here.service, PLAN, tmp_path, here.told)
    here.lifecycle.logs_of = {**here.lifecycle.logs_of, False: ("KV cache size: 900 tokens", STARTS[-1])}
    result = await try_candidate(here.service, PLAN, NGRAM, tmp_path, here.told)
    assert "the baseline came back with other tokens in the KV cache: 1024 → 900" in result.confounders


async def test_what_the_sides_were_not_made_of_alike_is_a_confounder(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    images = iter(("sha256:a", "sha256:b", "sha256:c"))

    async def made_of() -> dict[str, str]:
        return {"image": next(images)}

    monkeypatch.setattr(here.lifecycle, "made_of", made_of)
    result = await trial(here, tmp_path)
    assert "the sides differ in image: sha256:a → sha256:b" in result.confounders
    assert "the baseline came back with other image: sha256:a → sha256:c" in result.confounders
    assert load_run(tmp_path / "baseline").meta.extra["made_of"] == {"image": "sha256:a"}


async def test_ab_asks_the_baseline_once_and_says_so(here: Site, tmp_path: Path):
    result = await trial(here, tmp_path, replace(PLAN, order="AB"))
    assert repeats_asked(here) == [("baseline", [0, 1]), ("candidate", [0, 1])]
    assert NO_RETURN in result.confounders
    assert here.is_back


async def test_abba_restarts_the_candidate_in_between(here: Site, tmp_path: Path):
    plan = replace(PLAN, order="ABBA", trial=replace(TRIAL, repeats=4))
    result = await trial(here, tmp_path, plan)
    assert repeats_asked(here) == [
        ("baseline", [0, 1]),
        ("candidate", [0, 2, 1, 3]),
        ("baseline", [2, 3]),
    ]
    assert here.machine.restarts == 3
    assert result.comparison.repeats == 4
    assert NO_RETURN not in result.confounders


async def test_every_prompt_is_met_once_before_it_counts(here: Site, tmp_path: Path):
    """Cut short: so each side has it in its prefix cache, if it has one, from the first kept request on."""
    await trial(here, tmp_path, replace(PLAN, order="AB", trial=replace(TRIAL, repeats=1)))
    for is_changed in (False, True):
        bodies = [body for changed, body in here.bodies if changed is is_changed]
        of_p3 = [body["max_tokens"] for body in bodies if body["messages"][0]["content"] == "prompt number 3"]
        assert of_p3[-1] == TRIAL.sampling.max_tokens
        assert len(of_p3) >= 2 and max(of_p3[:-1]) < TRIAL.sampling.max_tokens


async def test_a_drafter_that_learns_is_asked_each_prompt_once(here: Site, tmp_path: Path):
    result = await trial(here, tmp_path, replace(PLAN, candidates=(SUFFIX,)))
    own = [text for text in here.prompts(is_changed=True) if text.startswith("prompt number")]
    assert sorted(own) == [f"prompt number {i}" for i in range(4)]
    assert result.comparison.repeats == 1
    assert any("suffix learns across requests" in sentence for sentence in result.confounders)
    assert repeats_asked(here)[-1] == ("baseline", [1])
    assert result.comparison.drift.ratio is not None


async def test_fresh_prompts_may_be_asked_for(here: Site, tmp_path: Path):
    await trial(here, tmp_path, replace(PLAN, fresh_prompts=True))
    own = [text for text in here.prompts(is_changed=True) if text.startswith("prompt number")]
    assert len(own) == 4


async def test_auto_stops_where_the_answer_is_clear_and_asks_the_baseline_as_often(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    looks: list[int] = []

    def decide(self: StoppingRule, comparison: Comparison, repeats: int) -> Decision:
        looks.append(repeats)
        return Decision(repeats == 3, f"decided after {repeats} repeats: faster")

    monkeypatch.setattr(StoppingRule, "decide", decide)
    plan = replace(PLAN, trial=replace(TRIAL, repeats=None, cap=8))
    result = await trial(here, tmp_path, plan)
    assert repeats_asked(here) == [
        ("baseline", [0, 1, 2, 3]),
        ("candidate", [0, 4, 1, 5, 2, 6]),
        ("baseline", [4, 5, 6]),
    ]
    assert looks == [2, 3]
    assert result.stop_reason == (
        "decided after 3 repeats: faster, against the baseline before the candidate"
    )
    assert result.comparison.confidence == pytest.approx(1 - 0.05 / 3)
    assert result.comparison.repeats == 6


async def test_time_ends_it_where_the_sides_are_balanced(here: Site, tmp_path: Path):
    plan = replace(PLAN, trial=replace(TRIAL, repeats=8, time_limit_s=0.001))
    result = await trial(here, tmp_path, plan)
    assert repeats_asked(here) == [("baseline", [0]), ("candidate", [0, 1]), ("baseline", [1])]
    assert result.comparison.repeats == 2


async def test_a_candidate_that_dies_at_its_start(here: Site, tmp_path: Path):
    here.lifecycle.dead = lambda is_changed: "exit code 1" if is_changed else None
    here.lifecycle.logs_of = {
        False: BASELINE_LOG,
        True: (
            "loading",
            "torch.OutOfMemoryError: CUDA out of memory",
        ),
    }
    result = await trial(here, tmp_path)
    assert result.verdict.outcome == "refused"
    assert "the candidate failed" in result.verdict.reason
    assert "CUDA out of memory" in result.verdict.reason
    assert here.is_back and here.closed == ["put back"]
    assert result.stopped_after == 0
    assert load_trial(tmp_path) == result
    assert repeats_asked(here) == [("baseline", [0])]


async def test_a_candidate_that_is_not_ready_in_time(here: Site, tmp_path: Path):
    here.candidate = lambda body: http_error(503, "loading model")
    result = await trial(here, tmp_path, replace(PLAN, start_limit_s=1.0))
    assert result.verdict.outcome == "refused"
    assert "not ready within" in result.verdict.reason and "loading model" in result.verdict.reason
    assert here.is_back


async def test_a_candidate_that_fails_at_the_first_full_batch(here: Site, tmp_path: Path):
    """The first answers alone; of several at once one fails."""
    count = iter(range(1000))
    here.candidate = lambda body: http_error(500, "out of memory") if next(count) == 2 else DRAFTS
    result = await trial(here, tmp_path)
    assert "2 requests at once" in result.verdict.reason and "out of memory" in result.verdict.reason
    assert here.is_back


async def test_a_candidate_that_refuses_requests(here: Site, tmp_path: Path):
    here.candidate = lambda body: http_error(400, "min_p is not supported with speculation")
    result = await trial(here, tmp_path)
    assert result.verdict.outcome == "refused" and "min_p" in result.verdict.reason
    assert here.is_back


async def test_a_candidate_that_dies_while_it_is_asked(here: Site, tmp_path: Path):
    died: list[str] = []
    here.lifecycle.dead = lambda is_changed: died[0] if is_changed and died else None
    here.lifecycle.logs_of = {
        False: BASELINE_LOG,
        True: (
            *STARTS,
            "RuntimeError: illegal memory access",
        ),
    }
    here.told.on_answer = lambda side: died.append("exit code 139") if side == "candidate" else None
    here.candidate = lambda body: replace(DRAFTS, die_at=0) if died else replace(DRAFTS, ttft_s=0.05)
    result = await trial(here, tmp_path)
    assert result.verdict.outcome == "refused"
    assert "exit code 139" in result.verdict.reason and "illegal memory access" in result.verdict.reason
    assert here.is_back
    assert load_run(tmp_path / "candidate").meta.status == "interrupted"


async def test_a_baseline_that_dies_while_it_is_asked(here: Site, tmp_path: Path):
    died: list[str] = []
    here.lifecycle.dead = lambda is_changed: died[0] if died else None
    here.told.on_answer = lambda side: died.append("exit code 1")
    here.baseline = lambda body: replace(PLAIN, ttft_s=0.05)
    with pytest.raises(ServerError, match="the baseline's process is failed \\(exit code 1\\)"):
        await trial(here, tmp_path)
    assert here.machine.touches == 0


@pytest.mark.parametrize("condition", ["stopped", "failed", "starting"])
async def test_a_service_that_does_not_run_is_no_baseline(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: Condition
):
    """Whatever answers at its address."""

    async def state() -> State:
        return State(condition, "exit code 1")

    monkeypatch.setattr(here.lifecycle, "state", state)
    with pytest.raises(UsageError, match=f"is {condition} \\(exit code 1\\): start it first"):
        await measure_baseline(here.service, PLAN, tmp_path, here.told)
    assert here.bodies == []


async def test_the_key_is_not_in_what_a_failed_candidate_said(here: Site, tmp_path: Path):
    """vLLM writes its command line into its log."""
    endpoint = replace(here.service.endpoint, api_key=ApiKey("sk-very-secret"))
    here.service = replace(here.service, endpoint=endpoint)
    here.lifecycle.dead = lambda is_changed: "exit code 1" if is_changed else None
    here.lifecycle.logs_of = {
        False: BASELINE_LOG,
        True: (
            *STARTS,
            "args: api_key=sk-very-secret",
        ),
    }
    result = await trial(here, tmp_path)
    assert "args: api_key=***" in result.verdict.reason
    assert "sk-very-secret" not in (tmp_path / "trial.json").read_text()


async def test_a_candidate_whose_requests_fail(here: Site, tmp_path: Path):
    asked: list[str] = []
    here.told.on_answer = asked.append
    here.candidate = lambda body: replace(DRAFTS, error_at=2) if "candidate" in asked else DRAFTS
    plan = replace(PLAN, bounds=Bounds(least=3))
    result = await trial(here, tmp_path, plan)
    assert result.verdict.outcome == "refused" and "requests failed" in result.verdict.reason
    assert here.is_back


async def test_a_candidate_that_answers_garbage(here: Site, tmp_path: Path):
    here.baseline = lambda body: replace(PLAIN, tpot_s=0.0005, n_tokens=80)
    here.candidate = lambda body: replace(DRAFTS, tpot_s=0.0005, n_tokens=80, loop_from=4)
    sampling = replace(TRIAL.sampling, max_tokens=80)
    plan = replace(PLAN, trial=replace(TRIAL, sampling=sampling, repeats=4), bounds=Bounds(least=3))
    result = await trial(here, tmp_path, plan)
    assert result.verdict.outcome == "refused" and "garbage" in result.verdict.reason
    assert here.is_back


async def test_a_model_that_loops_by_itself_is_no_fault_of_the_candidate(here: Site, tmp_path: Path):
    here.baseline = lambda body: replace(PLAIN, tpot_s=0.0005, n_tokens=80, loop_from=4)
    here.candidate = lambda body: replace(DRAFTS, tpot_s=0.0005, n_tokens=80, loop_from=4)
    sampling = replace(TRIAL.sampling, max_tokens=80)
    plan = replace(PLAN, trial=replace(TRIAL, sampling=sampling), bounds=Bounds(garbage_share=0.5, least=3))
    result = await trial(here, tmp_path, plan)
    assert "failed" not in result.verdict.reason
    assert result.comparison.repeats == 2


async def test_a_winner_is_kept_for_good(here: Site, tmp_path: Path, decide: Decide):
    decide("faster")
    result = await trial(here, tmp_path, replace(PLAN, keep_if="faster"))
    assert result.verdict.outcome == "faster"
    assert here.lifecycle.is_changed and fake_service.DROPIN in here.machine.files
    assert here.closed == ["put back", "kept"]
    assert not list(journals_folder().glob("*.jsonl"))
    assert (
        f"to undo it by hand: remove {fake_service.DROPIN}; run systemctl daemon-reload; restart {TARGET}"
        in here.told.lines
    )
    assert result.stop_reason.endswith("the candidate was kept")


async def test_a_winner_of_ab_is_kept_without_the_baseline_in_between(
    here: Site, tmp_path: Path, decide: Decide
):
    decide("faster")
    await trial(here, tmp_path, replace(PLAN, order="AB", keep_if="faster"))
    assert here.lifecycle.is_changed
    assert here.closed == ["kept"]
    assert here.machine.restarts == 2


@pytest.mark.parametrize("outcome", ["slower", "same", "undecided", "refused"])
@pytest.mark.parametrize("order", ["AB", "ABA"])
async def test_what_is_not_faster_is_not_kept(
    here: Site, tmp_path: Path, decide: Decide, outcome: Outcome, order: Order
):
    decide(outcome)
    await trial(here, tmp_path, replace(PLAN, order=order, keep_if="faster"))
    assert here.is_back


async def test_a_winner_that_cannot_be_kept_is_put_back(here: Site, tmp_path: Path, decide: Decide):
    decide("faster")
    starts: list[bool] = []
    restart = here.lifecycle.restart

    async def counted() -> None:
        await restart()
        starts.append(here.lifecycle.is_changed)

    here.lifecycle.restart = counted  # type: ignore[method-assign]
    here.lifecycle.dead = lambda is_changed: "exit code 1" if starts.count(True) == 2 and is_changed else None
    with pytest.raises(ServerError, match="exit code 1"):
        await trial(here, tmp_path, replace(PLAN, keep_if="faster"))
    assert starts == [True, False, True, False]
    assert here.is_back
    assert load_trial(tmp_path).verdict.outcome == "faster"


async def test_cancelled_it_is_put_back_before_anything_is_saved(here: Site, tmp_path: Path):
    await measure_baseline(here.service, PLAN, tmp_path, here.told)
    task = asyncio.ensure_future(try_candidate(here.service, PLAN, NGRAM, tmp_path, here.told))
    here.told.on_answer = lambda side: task.cancel() and None
    with pytest.raises(asyncio.CancelledError):
        await task
    assert here.is_back and here.closed == ["put back"]
    result = load_trial(tmp_path)
    assert result.stop_reason == "interrupted"
    assert "interrupted: the service is put back as it was found" in here.told.lines


async def test_what_is_on_disk_of_a_trial_that_is_killed_is_true(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kept: list[TrialRecord] = []
    monkeypatch.setattr(here.told, "starting", lambda progress: kept.append(load_record(tmp_path)))
    await measure_baseline(here.service, PLAN, tmp_path, here.told)
    here.candidate = slow_once(kept)
    here.told.on_answer = lambda side: side == "candidate" and kept.append(load_record(tmp_path)) and None
    await try_candidate(here.service, PLAN, NGRAM, tmp_path, here.told)
    for record in kept:
        assert (record.stop_reason, record.elapsed_s, record.finished) == ("cut off", None, False)
    assert kept[0].sides["candidate"].reload_absent == "was cut off before it was noted"
    assert kept[0].sides["candidate"].reload_s is None and kept[-1].sides["candidate"].reload_s is not None
    assert load_record(tmp_path).elapsed_s is not None


def slow_once(seen: list[TrialRecord]) -> Callable[[dict[str, Any]], Any]:
    """Not ready before it was seen to start."""
    return lambda body: DRAFTS if seen else http_error(503, "loading")


@pytest.mark.parametrize("touch", range(8))
async def test_a_machine_that_fails_at_any_touch_is_put_back(here: Site, tmp_path: Path, touch: int):
    """Once: what fails again and again is left to `breakeven recover`."""
    await measure_baseline(here.service, PLAN, tmp_path, here.told)
    here.machine.fail_at = here.machine.touches + touch
    try:
        await try_candidate(here.service, PLAN, NGRAM, tmp_path, here.told)
    except BreakevenError as error:
        assert any("breakeven recover" in note for note in error.__notes__)
        assert list(journals_folder().glob("*.jsonl"))
    else:
        assert here.is_back


async def test_a_baseline_that_does_not_come_back_is_said_loudly_and_can_be_recovered(
    here: Site, tmp_path: Path
):
    here.lifecycle.dead = lambda is_changed: (
        "exit code 1" if here.machine.restarts > 1 and not is_changed else None
    )
    with pytest.raises(ServerError, match="exit code 1") as raised:
        await trial(here, tmp_path)
    assert f"breakeven recover {TARGET}" in "".join(raised.value.__notes__)
    (journal,) = journals_folder().glob("*.jsonl")
    assert UndoJournal.adopt(journal).record.touched


async def test_whoever_watches_may_be_gone(here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As when the terminal was closed: writing to it fails from then on."""
    await measure_baseline(here.service, PLAN, tmp_path, here.told)
    task = asyncio.ensure_future(try_candidate(here.service, PLAN, NGRAM, tmp_path, here.told))

    def hang_up(side: str) -> None:
        def gone(*given: Any) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(here.told, "said", gone)
        monkeypatch.setattr(here.told, "starting", gone)
        task.cancel()

    here.told.on_answer = hang_up
    with pytest.raises(asyncio.CancelledError):
        await task
    assert here.is_back


async def test_a_full_disk_at_the_results_puts_back_all_the_same(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    await measure_baseline(here.service, PLAN, tmp_path, here.told)

    def full(self: Any, trace: Any) -> None:
        raise StorageError("no space left")

    monkeypatch.setattr("breakeven.trace.journal.RunWriter.append", full)
    with pytest.raises(StorageError):
        await try_candidate(here.service, PLAN, NGRAM, tmp_path, here.told)
    assert here.is_back


async def test_a_journal_that_cannot_be_written_has_nothing_touched(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    await measure_baseline(here.service, PLAN, tmp_path, here.told)
    touches = here.machine.touches

    def full(*given: Any) -> UndoJournal:
        raise StorageError("no space left")

    monkeypatch.setattr(UndoJournal, "open", full)
    with pytest.raises(StorageError):
        await try_candidate(here.service, PLAN, NGRAM, tmp_path, here.told)
    assert here.machine.touches == touches
    assert not (tmp_path / "trial.json").exists()


async def test_a_baseline_that_is_gone_afterwards_is_an_error_and_the_trial_is_saved(
    here: Site, tmp_path: Path
):
    here.baseline = lambda body: (
        http_error(500, "gone") if here.machine.restarts > 1 and body["max_tokens"] == N_TOKENS else PLAIN
    )
    with pytest.raises(EndpointError, match="gone"):
        await trial(here, tmp_path)
    result = load_trial(tmp_path)
    assert result.stopped_after == 1
    assert NO_RETURN in result.confounders


async def test_a_second_candidate_has_the_baseline_copied(here: Site, tmp_path: Path):
    """Without what was asked of the baseline after the first one."""
    first = tmp_path / "one"
    await trial(here, first)
    second = await try_candidate(
        here.service, PLAN, replace(NGRAM, k=5), tmp_path / "two", here.told, first / "baseline"
    )
    assert second.comparison.repeats == 2
    assert len(load_run(tmp_path / "two" / "baseline")) == 8
    assert len(load_run(first / "baseline")) == 8
    assert here.is_back and here.closed == ["put back", "put back"]


@pytest.mark.parametrize("order", ["AB", "ABA", "ABBA"])
async def test_a_baseline_of_which_all_is_left_out_restarts_nothing(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Order
):
    falls_behind(monkeypatch, 0, 1)
    with pytest.raises(UsageError, match=r"left out \(.*client fell behind.*Nothing was restarted"):
        await trial(here, tmp_path, replace(PLAN, order=order))
    assert here.is_back and here.closed == [] and not here.prompts(is_changed=True)
    assert load_run(tmp_path / "baseline").meta.status == "void"


async def test_a_second_candidate_is_not_tried_either(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    falls_behind(monkeypatch, 0)
    run = await measure_baseline(here.service, PLAN, tmp_path / "one", here.told)
    with pytest.raises(UsageError, match="the one repeat of the baseline is left out"):
        await try_candidate(here.service, PLAN, NGRAM, tmp_path / "two", here.told, run.path)
    assert here.closed == []


async def test_what_is_left_of_the_baseline_is_enough(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    falls_behind(monkeypatch, 1)
    plan = replace(PLAN, trial=replace(TRIAL, repeats=4))
    result = await trial(here, tmp_path, plan)
    assert result.comparison.repeats == 3 and result.verdict.outcome != "refused"
    (note,) = [said for said in result.confounders if "fell behind" in said]
    assert note.startswith("1 repeat left out of the comparison (1 for the baseline, 1 for the candidate)")


async def test_a_candidate_in_whose_time_the_client_fell_behind_has_one_note_of_it(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its two repeats follow the baseline's warm-up and repeat, and its own warm-up."""
    falls_behind(monkeypatch, 0, 1, only=range(3, 5))
    result = await trial(here, tmp_path)
    assert result.verdict.outcome == "refused" and result.comparison.speedup is None
    told = [result.verdict.reason, *result.confounders, *result.comparison.warnings]
    assert " ".join(told).count("fell behind") == 1
    assert "2 repeats left out of the comparison (2 for the candidate)" in result.confounders
    why = "all 2 repeats that both sides answered were left out of the comparison"
    assert result.comparison.lossless.reason == why


async def test_a_folder_is_not_used_twice(here: Site, tmp_path: Path):
    await trial(here, tmp_path)
    with pytest.raises(UsageError, match="holds a trial already"):
        await try_candidate(here.service, PLAN, NGRAM, tmp_path, here.told)
    assert here.is_back


async def test_nobody_without_the_right_touches_anything(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def refused() -> None:
        raise UsageError("type --sudo")

    await measure_baseline(here.service, PLAN, tmp_path, here.told)
    monkeypatch.setattr(here.lifecycle, "check_rights", refused)
    with pytest.raises(UsageError, match="--sudo"):
        await try_candidate(here.service, PLAN, NGRAM, tmp_path, here.told)
    assert here.is_back and here.closed == []


async def test_the_api_key_is_not_in_the_journal_but_where_it_is_from_is(here: Site, tmp_path: Path):
    here.service = replace(here.service, api_key_env="VLLM_KEY")
    await trial(here, tmp_path)
    (journal,) = journals_folder().glob("closed/*.jsonl")
    assert '"api_key_env":"VLLM_KEY"' in journal.read_text()


def test_a_dry_run_touches_nothing_and_says_all(tmp_path: Path):
    made = Site()
    service = unanswered(made)
    said = dry_run(service, replace(PLAN, keep_if="faster", trial=replace(TRIAL, repeats=None)), RUNS)
    assert made.machine.touches == 0 and made.is_back
    for words in (
        "systemd:vllm.service: vLLM",
        "Candidate: ngram, k 3, n-grams of 2 to 4 tokens",
        f"write {fake_service.DROPIN}",
        f"remove {fake_service.DROPIN}",
        "run systemctl daemon-reload",
        "2 requests at once",
        "ready within 20.0 s",
        "24 requests: 4 prompts × 6 repeats, 2 at a time",
        "48 requests at most: 4 prompts × 12 repeats, 2 at a time",
        "If the verdict is faster",
        "turns asynchronous scheduling off",
    ):
        assert words in said, words
    assert said.index(f"write {fake_service.DROPIN}") < said.index("  restart")
    assert said.index("  restart") < said.index(f"remove {fake_service.DROPIN}")
    assert made.machine.commands == []


def test_a_dry_run_of_a_drafter_that_learns_asks_each_prompt_once():
    said = dry_run(unanswered(Site()), replace(PLAN, candidates=(SUFFIX,)), RUNS)
    assert "  4 requests: 4 prompts × 1 repeat, 2 at a time" in said.partition("Candidate:")[2]
    assert "short ones of ours" in said


def test_a_dry_run_refuses_what_cannot_be_tried():
    with pytest.raises(UsageError):
        dry_run(unanswered(Site()), replace(PLAN, candidates=(SpeculationConfig("eagle3"),)), RUNS)


def test_a_dry_run_warns_of_a_service_that_does_not_run():
    said = dry_run(unanswered(Site()), PLAN, State("failed", "exit code 1"))
    assert f"  warning: {TARGET} is failed (exit code 1): start it first" in said
    assert "start it first" not in dry_run(unanswered(Site()), PLAN, RUNS)


def test_a_dry_run_says_only_what_would_be_done():
    made = Site()
    nothing = (RunCommand(None, ("systemctl", "daemon-reload")),)
    made.lifecycle.change = lambda found, argv: nothing  # type: ignore[method-assign]
    said = dry_run(unanswered(made), PLAN, RUNS)
    assert "afterwards run" not in said and "\n    run systemctl daemon-reload" in said


async def test_a_dry_run_of_a_process_promises_no_journal(tmp_path: Path):
    server = ProcessServer(("vllm", "serve", "m"), tmp_path / "log")
    endpoint = Endpoint("http://127.0.0.1:9")
    service = Service(server, Vllm(), LocalHost(), await server.inspect(), endpoint)
    said = dry_run(service, PLAN, await server.state())
    assert "start it; it ends with breakeven" in said
    for words in ("journal", "as it runs, without a restart", "start it first"):
        assert words not in said


async def test_a_dry_run_without_a_command_line_shows_none(here: Site):
    service = replace(unanswered(here), found=replace(fake_service.FOUND, argv=(), as_run=None))
    assert all(line.strip() or not line for line in dry_run(service, PLAN, RUNS).splitlines())


def unanswered(made: Site) -> Service:
    """A service at whose address nothing listens."""
    endpoint = Endpoint("http://127.0.0.1:9")
    return Service(made.lifecycle, Vllm(), made.machine, fake_service.FOUND, endpoint)


# What is looked at before anything is measured, and again before anything is touched


async def test_rights_are_asked_for_before_the_baseline_is_measured(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def refused() -> None:
        raise UsageError("type --sudo")

    monkeypatch.setattr(here.lifecycle, "check_rights", refused)
    with pytest.raises(UsageError, match="--sudo"):
        await measure_baseline(here.service, PLAN, tmp_path / "out", here.told)
    assert here.bodies == [] and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"argv": ("vllm", "serve", "another")}, "its command line"),
        ({"environment": {"NCCL_ALGO": "Tree"}}, "its environment"),
        ({"evidence": {"/etc/systemd/system/vllm.service.d/new.conf": "[Service]\n"}}, "new.conf"),
    ],
)
async def test_a_service_that_somebody_changed_meanwhile_is_not_touched(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], said: str
):
    """Their change would come with ours, and be measured as if it were speculation."""
    await measure_baseline(here.service, PLAN, tmp_path, here.told)

    async def inspect() -> Found:
        return replace(here.service.found, **change)

    monkeypatch.setattr(here.lifecycle, "inspect", inspect)
    with pytest.raises(UsageError, match=f"not as it was when its baseline was measured.*{said}.*again"):
        await try_candidate(here.service, PLAN, NGRAM, tmp_path, here.told)
    assert here.machine.touches == 0 and here.is_back and here.closed == []


async def test_a_server_that_says_when_it_started_was_restarted_by_the_trial_itself(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[Found] = []
    change = here.lifecycle.change

    async def inspect() -> Found:
        return replace(here.service.found, evidence={**here.service.found.evidence, "started": "2"})

    def changed(found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        seen.append(found)
        return change(found, argv)

    monkeypatch.setattr(here.lifecycle, "inspect", inspect)
    monkeypatch.setattr(here.lifecycle, "change", changed)
    await trial(here, tmp_path)
    assert seen[0].evidence["started"] == "2"


# A baseline that speculates itself


SPECULATING = ("vllm", "serve", "m", "--speculative-config", '{"method":"ngram","num_speculative_tokens":2}')


async def test_a_baseline_that_speculates_is_named_and_what_that_means(here: Site, tmp_path: Path):
    found = replace(here.service.found, argv=SPECULATING)
    here.service = replace(here.service, found=found)
    here.lifecycle.inspect = lambda: asyncio.sleep(0, found)  # type: ignore[method-assign]
    result = await trial(here, tmp_path)
    assert result.baseline.description == "vLLM as found, ngram, k 2"
    assert any("the baseline speculates too (ngram, k 2)" in sentence for sentence in result.confounders)
    said = dry_run(here.service, PLAN, RUNS)
    assert "warning: it speculates already (ngram, k 2): the trial compares with that" in said


def test_speculation_by_a_variable_is_seen_and_refused():
    """What the unit has is not what runs: only the filled-in words tell."""
    argv = ("vllm", "serve", "m", "$SPECULATION")
    service = unanswered(Site())
    service = replace(service, found=replace(service.found, argv=argv, as_run=SPECULATING))
    assert service.speculation == SpeculationConfig("ngram", k=2)
    with pytest.raises(UsageError, match=r"speculates already \(ngram, k 2\) by a variable"):
        service.candidate_argv(NGRAM, None)
    written = replace(service.found, argv=(*SPECULATING[:-1], "${SPECULATION}"))
    argv = replace(service, found=written).candidate_argv(NGRAM, None)
    assert argv[:3] == ("vllm", "serve", "m") and argv.count("--speculative-config") == 1
    assert "${SPECULATION}" not in argv


async def test_warnings_of_both_sides_runs_are_confounders(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Such as requests of others, which only the side that they came to knows of."""
    finish = live_side.MeasuredSide.finish

    def warned(self: live_side.MeasuredSide, end: Any) -> None:
        meta = self.writer.meta
        self.writer.meta = replace(meta, warnings=(*meta.warnings, f"somebody else asked the {self.name}"))
        finish(self, end)

    monkeypatch.setattr(live_side.MeasuredSide, "finish", warned)
    result = await trial(here, tmp_path)
    for name in ("baseline", "candidate"):
        said = [one for one in result.confounders if one.endswith(f"somebody else asked the {name}")]
        assert len(said) == 1


async def test_a_candidate_that_was_never_ready_did_not_run_already(here: Site, tmp_path: Path):
    here.lifecycle.dead = lambda is_changed: "exit code 1" if is_changed else None
    result = await trial(here, tmp_path)
    assert result.candidate.reload_s is None
    assert result.candidate.reload_absent == "was never ready"
    assert trial_json(result)["reload_s"]["absent"] == {"candidate": "it was never ready"}


async def test_requests_of_others_are_a_confounder_of_their_side(here: Site, tmp_path: Path):
    """They come while the trial's own are asked, which take long."""
    here.candidate = lambda body: replace(DRAFTS, ttft_s=0.2) if "max_tokens" in body else DRAFTS
    url = here.service.endpoint.base_url.removesuffix("/v1")
    strangers: list[asyncio.Future[None]] = []

    def also(side: str) -> None:
        if side == "candidate":
            strangers.append(asyncio.ensure_future(ask_other(url, 3)))

    here.told.on_answer = also
    result = await trial(here, tmp_path)
    await asyncio.gather(*strangers)
    said = [line for line in result.confounders if "other traffic shared the server" in line]
    assert any(line.startswith("candidate: ") for line in said), result.confounders
