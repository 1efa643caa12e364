"""Calibrate: one closed loop after the other against the fake server, saved as it goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from breakeven.client.endpoint import Endpoint
from breakeven.cost.calibrate import (
    MOST_ROUNDS,
    CalibrationPlan,
    Visit,
    Watch,
    calibrate,
    concurrencies,
)
from breakeven.cost.calibration import FILE, Calibration, load_calibration
from breakeven.errors import EndpointError, UsageError
from breakeven.servers.fake import FakeServer, Script
from breakeven.servers.fake.script import LLAMACPP, OPENAI, Answer, Speculation
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import load_run
from breakeven.workload.prompts import Prompt, Sampling, Workload

pytestmark = pytest.mark.quiet
PROMPTS = Workload("few", tuple(Prompt(f"p{i}", "c", text=f"prompt {i}", max_tokens=3) for i in range(4)))
SCRIPT = Script(ttft_s=0.005, tpot_s=0.003, n_tokens=400)


@pytest.fixture(autouse=True)
def _as_on_an_idle_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy one makes the client lag, and points of the few tokens here drop out: see test_stretches."""
    monkeypatch.setattr("breakeven.cost.calibrate._lag_s", lambda meta: 0.0)


def plan(most: int = 3, max_tokens: int = 64, quick: bool = True) -> CalibrationPlan:
    return CalibrationPlan(PROMPTS, Sampling(max_tokens), concurrencies(most), quick)


class Paced(Watch):
    """Sets the server's pace by the concurrency that begins, and looks at the file meanwhile."""

    def __init__(self, out: Path, paces_s: dict[int, float]) -> None:
        self.out, self.paces_s = out, paces_s
        self.script = SCRIPT
        self.saved: list[tuple[int, ...]] = []
        self.seen: list[str] = []
        self.plans: list[list[str]] = []

    def begins(self, visit: Visit) -> None:
        self.script = replace(SCRIPT, tpot_s=self.pace_s(visit))
        if (self.out / FILE).exists():
            kept = load_calibration(self.out)
            self.saved.append(tuple(point.concurrency for point in kept.points))
            assert not kept.complete

    def pace_s(self, visit: Visit) -> float:
        return self.paces_s.get(visit.concurrency, SCRIPT.tpot_s)

    def asked(self, visit: Visit, trace: RequestTrace) -> None:
        self.seen.append(str(visit))

    def replans(self, visits: Sequence[Visit]) -> None:
        self.plans.append([str(visit) for visit in visits])


class Slower(Paced):
    """A server on which other work begins half-way."""

    def pace_s(self, visit: Visit) -> float:
        return 0.012 if visit.before else 0.004


@contextmanager
def served(script: Script, **how: int) -> Iterator[str]:
    with FakeServer(script, dialect=script.dialect, **how).in_thread() as server:
        yield server.url


async def measured(url: str, out: Path, asked: CalibrationPlan | None = None) -> Calibration:
    return await calibrate(Endpoint(url, api="completions"), asked or plan(), out)


async def test_the_curve_is_that_of_the_server_and_is_saved_after_each_point(tmp_path: Path):
    watch = Paced(tmp_path / "out", {1: 0.004, 2: 0.012, 3: 0.036})
    with FakeServer(lambda _body, _index: watch.script).in_thread() as server:
        endpoint = Endpoint(server.url, api="completions")
        found = await calibrate(endpoint, plan(), tmp_path / "out", moe=True, watch=watch)
    assert [point.concurrency for point in found.points] == [1, 2, 3]
    for point in found.points:
        assert point.step_s > 0.5 * watch.paces_s[point.concurrency]
        assert point.low_s <= point.step_s <= point.high_s and point.errors == 0 and point.n >= 4
    assert [len(point.visits) for point in found.points] == [2, 2, 1]
    assert watch.saved == [(1,), (1, 2), (1, 2, 3), (1, 2, 3)]
    once = [f"concurrency {c}" for c in (1, 1, 2, 2, 3, 3, 3)]
    assert watch.seen == [*once, *(f"concurrency {c} again" for c in (2, 2, 1, 1))]
    assert found.complete and found == load_calibration(tmp_path / "out")
    assert (found.model, found.server.engine, found.url) == ("fake-model", "vllm", f"{server.url}/v1")
    assert (found.moe, found.workload, found.max_tokens) == (True, "few", 64)


async def test_each_point_leaves_a_run_of_replies_of_one_length(tmp_path: Path):
    with served(SCRIPT) as url:
        await measured(url, tmp_path)
    run = load_run(tmp_path / "concurrency-3")
    assert run.meta.schedule.concurrency == 3 and run.meta.warmup_requests == 0
    assert {trace.max_tokens for trace in run.traces()} == {64}
    assert load_run(tmp_path / "concurrency-1").meta.warmup_requests == 1
    assert load_run(tmp_path / "concurrency-2-again").meta.schedule.concurrency == 2
    assert not (tmp_path / "concurrency-3-again").exists()


async def test_a_machine_that_changes_is_visited_again_and_said(tmp_path: Path):
    watch = Slower(tmp_path / "out", {})
    with FakeServer(lambda _body, _index: watch.script).in_thread() as server:
        endpoint = Endpoint(server.url, api="completions")
        found = await calibrate(endpoint, plan(quick=False), tmp_path / "out", watch=watch)
    rounds = ["1", "2", "3", "3 again", "2 again", "1 again", "1 again 2", "2 again 2", "3 again 2"]
    assert watch.plans[0] == [
        f"concurrency {name}" for name in (*rounds, *(f"{c} again 3" for c in (3, 2, 1)))
    ]
    for point in found.points:
        assert len(point.visits) == 2 * MOST_ROUNDS
        assert 0.010 < point.step_s < point.high_s, "the median: one visit of six was fast"
    said = "; ".join(found.warnings())
    assert "visits differ by more than their scatter explains, at concurrency 1 (+" in said
    assert "calibrate again in a quiet window" in said


@pytest.mark.parametrize("script", [SCRIPT, replace(SCRIPT, dialect=LLAMACPP)])
async def test_a_server_that_speculates_is_refused(script: Script, tmp_path: Path):
    drafting = replace(script, speculation=Speculation(3, 0.5))
    told = r"speculates .*needs the baseline.*--spec"
    with served(drafting) as url:
        with pytest.raises(UsageError, match=told):
            await measured(url, tmp_path / "first")
        assert [entry.name for entry in (tmp_path / "first").iterdir()] == ["concurrency-1"]
        with pytest.raises(UsageError, match=told):
            await measured(url, tmp_path / "second")
    assert not (tmp_path / "second").exists()


async def test_drafts_that_come_late_leave_no_calibration(tmp_path: Path):
    drafting = replace(SCRIPT, speculation=Speculation(3, 0.5))
    with (
        FakeServer(lambda _body, index: SCRIPT if index < 3 else drafting).in_thread() as server,
        pytest.raises(UsageError, match="the server speculates"),
    ):
        await measured(server.url, tmp_path)
    assert (tmp_path / "concurrency-2").exists() and not (tmp_path / FILE).exists()


async def test_counters_without_drafts_are_told(tmp_path: Path):
    with served(replace(SCRIPT, speculation=Speculation(3, 0.5, draft_share=0.0))) as url:
        found = await measured(url, tmp_path)
    assert sum("speculation seems to be on" in note for note in found.notes) == 1


async def test_bundled_tokens_are_told(tmp_path: Path):
    with served(replace(SCRIPT, tokens_per_chunk=2)) as url:
        found = await measured(url, tmp_path, plan(max_tokens=80))
    assert "at concurrency 1 a chunk carries 2 tokens" in found.notes[0]


async def test_tokens_that_nobody_counts_are_told(tmp_path: Path):
    with served(replace(SCRIPT, usage="absent", dialect=OPENAI)) as url:
        found = await measured(url, tmp_path)
    assert sum("does not count tokens" in note for note in found.notes) == 1


async def test_it_ends_where_the_slots_do_and_says_so(tmp_path: Path):
    with served(SCRIPT, slots=2) as url:
        found = await measured(url, tmp_path, plan(6))
    assert [point.concurrency for point in found.points] == [1, 2] and found.complete
    assert found.fitted() is None
    assert "decoded at most 2 at once" in found.notes[-1] and "--parallel" in found.notes[-1]
    assert not (tmp_path / "concurrency-4").exists() and not (tmp_path / "concurrency-3-again").exists()


async def test_it_turns_round_where_the_slots_end(tmp_path: Path):
    watch = Paced(tmp_path / "out", {})
    with FakeServer(SCRIPT, slots=3).in_thread() as server:
        endpoint = Endpoint(server.url, api="completions")
        found = await calibrate(endpoint, plan(6, quick=False), tmp_path / "out", watch=watch)
    assert [len(point.visits) for point in found.points] == [2, 2, 2] and found.complete
    (visits,) = watch.plans
    assert "concurrency 6" not in visits and "concurrency 4 again" not in visits
    assert visits[-1] == "concurrency 1 again"
    assert "concurrency 4 and above have no point: the server decoded at most 3" in found.notes[-1]


async def test_replies_too_short_for_a_point_are_named(tmp_path: Path):
    with served(SCRIPT) as url:
        found = await measured(url, tmp_path, plan(max_tokens=3))
    assert found.points == () and "a visit to concurrency 1 gave no times" in found.notes[0]
    assert "raise --max-tokens" in found.notes[0] and len(found.notes) == 3, "each said once"


async def test_errors_are_counted_and_named(tmp_path: Path):
    broken = Script(answer=Answer(500, b'{"error": {"message": "out of luck"}}'))
    with FakeServer(lambda _body, index: broken if index == 2 else SCRIPT).in_thread() as server:
        found = await measured(server.url, tmp_path)
    assert [point.errors for point in found.points] == [1, 0, 0]
    assert "at concurrency 1 1 of 2 requests failed" in found.notes[0] and "out of luck" in found.notes[0]


async def test_a_server_that_goes_away_leaves_the_points_before(tmp_path: Path):
    gone = Script(answer=Answer(500, b"{}"))
    with (
        FakeServer(lambda _body, index: SCRIPT if index < 3 else gone).in_thread() as server,
        pytest.raises(EndpointError),
    ):
        await measured(server.url, tmp_path)
    kept = load_calibration(tmp_path)
    assert [point.concurrency for point in kept.points] == [1] and not kept.complete
    assert any("no concurrency was measured twice" in said for said in kept.warnings())


def test_the_concurrencies():
    assert concurrencies(16) == (1, 2, 3, 4, 6, 8, 12, 16)
    assert concurrencies(20) == (1, 2, 3, 4, 6, 8, 12, 16, 20)
    assert concurrencies(8, quick=True) == (1, 2, 4, 8)
    assert concurrencies(1000)[-3:] == (192, 256, 1000)


def visited(asked: CalibrationPlan) -> list[tuple[int, bool]]:
    return [(visit.concurrency, bool(visit.before)) for visit in asked.visits()]


def test_a_plan_goes_up_and_down_again():
    up = [(c, False) for c in (1, 2, 3, 4, 6)]
    assert visited(plan(6, quick=False)) == [*up, *((c, True) for c in (6, 4, 3, 2, 1))]


@pytest.mark.parametrize(("most", "again"), [(3, [2, 1]), (8, [2, 1]), (64, [4, 2, 1])])
def test_a_quick_one_visits_the_lower_half_again(most: int, again: list[int]):
    quick = CalibrationPlan(PROMPTS, Sampling(64), concurrencies(most, quick=True), True)
    assert [concurrency for concurrency, twice in visited(quick) if twice] == again


@pytest.mark.parametrize(
    ("quick", "expected"), [(False, {1: 6, 2: 6, 3: 6, 4: 8, 6: 12}), (True, {1: 4, 2: 4, 3: 3, 4: 4, 6: 6})]
)
def test_the_requests_of_a_point_are_shared_by_its_visits(quick: bool, expected: dict[int, int]):
    asked, found = plan(6, quick=quick), Counter[int]()
    for visit in asked.visits():
        requests = asked.measure_plan(visit).requests
        assert requests >= visit.concurrency
        found[visit.concurrency] += requests
    assert found == expected
    assert asked.measure_plan(Visit(1)).workload.prompts[0].max_tokens is None


def test_only_the_first_visit_warms_up():
    asked = plan(6)
    warmups = [asked.measure_plan(visit).warmup for visit in asked.visits()]
    assert warmups == [1, *[0] * (len(warmups) - 1)]


def test_progress_counts_shared_steps():
    asked = plan(3, max_tokens=60)
    assert [asked.steps_each(c) for c in (1, 3, 100)] == [60, 20, 1]
    assert asked.steps(*asked.visits()) == 2 * (2 * 60 + 2 * 30) + 3 * 20
    assert asked.steps(Visit(3)) == 3 * 20


def test_two_concurrencies_are_no_curve():
    with pytest.raises(UsageError, match="type --max-concurrency 4 or more"):
        plan(2)
