"""A candidate that fails, answers garbage or dies ends the trial; one that stumbles does not."""

import asyncio
from dataclasses import replace

import pytest

from breakeven.errors import UsageError
from breakeven.servers import watch
from breakeven.servers.fake.lifecycle import FakeLifecycle
from breakeven.servers.lifecycle import State
from breakeven.servers.watch import Bounds, CandidateWatch, until_death
from breakeven.trace.records import RequestError, RequestTrace
from tests.unit.servers.plain_dialect import PlainDialect

GOOD = RequestTrace(
    id="p#0",
    prompt_id="p",
    category="c",
    repeat=0,
    block=0,
    max_tokens=16,
    scheduled_ns=None,
    connect_ns=None,
    sent_ns=0,
    end_ns=10,
    events=(),
    text="good",
    reasoning="",
    tool_calls="",
    finish_reason="stop",
    usage={"completion_tokens": 4},
)
FAILED = replace(GOOD, text="", usage=None, error=RequestError("HttpError", "HTTP 500: boom", 500))
EMPTY = replace(GOOD, text="", usage={"completion_tokens": 0})
LOOP = replace(GOOD, text="loop loop")


def watching(bounds: Bounds | None = None, usual: float = 0.0) -> CandidateWatch:
    return CandidateWatch(bounds or Bounds(), lambda trace: "loop" in trace.text, usual)


def see(candidate: CandidateWatch, *traces: RequestTrace) -> str | None:
    for trace in traces:
        candidate.see(trace)
    return candidate.reason


def test_good_answers_are_no_reason():
    assert see(watching(), *[GOOD] * 200) is None


@pytest.mark.parametrize("bad", [FAILED, EMPTY])
def test_failures_end_it_once_they_are_a_rate(bad: RequestTrace):
    candidate = watching()
    assert see(candidate, *[bad] * 4) is None
    assert "5 of the latest 5 requests failed" in see(candidate, bad)


def test_a_failure_now_and_then_does_not():
    assert see(watching(), *[*[GOOD] * 19, FAILED] * 20) is None


def test_what_was_good_long_ago_does_not_hide_what_fails_now():
    candidate = watching()
    assert see(candidate, *[GOOD] * 1000) is None
    assert "HTTP 500: boom" in see(candidate, *[FAILED] * 6)


def test_garbage_ends_it():
    assert "garbage" in see(watching(), *[LOOP] * 5)
    assert see(watching(), *[GOOD, GOOD, LOOP] * 30) is None


def test_a_baseline_that_loops_itself_is_no_fault_of_the_candidate():
    assert see(watching(usual=0.4), *[LOOP, LOOP, GOOD] * 30) is None
    assert "garbage" in see(watching(usual=0.4), *[LOOP] * 30)


def test_the_first_reason_stays():
    candidate = watching()
    first = see(candidate, *[FAILED] * 5)
    assert see(candidate, *[GOOD] * 500) == first


@pytest.mark.parametrize(
    "bounds", [{"error_share": 1.5}, {"garbage_share": -0.1}, {"least": 0}, {"least": 99}]
)
def test_bounds_that_are_none(bounds: dict[str, float]):
    with pytest.raises(UsageError):
        Bounds(**bounds)


async def test_death_is_told_with_the_logs_reason(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watch, "LOOK_S", 0.01)
    lifecycle = FakeLifecycle(lines=["PHASE serving"])

    def die() -> None:
        lifecycle.lines.append("FATAL illegal memory access")
        lifecycle.now = State("failed", "was killed by SIGABRT")

    asyncio.get_running_loop().call_later(0.05, die)
    async with asyncio.timeout(20):
        reason = await until_death(lifecycle, PlainDialect(), "candidate")
    assert reason == "the candidate's process is failed (was killed by SIGABRT): FATAL illegal memory access"
