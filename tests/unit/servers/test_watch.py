"""A candidate that fails, answers garbage or dies ends the trial; one that stumbles does not."""

import asyncio
from dataclasses import replace

import pytest

from breakeven.errors import ServerError, UsageError
from breakeven.servers import looks, startup_log
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


def watching() -> CandidateWatch:
    return CandidateWatch(Bounds(), lambda trace: "loop" in trace.text)


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


def baseline(bad: RequestTrace, of_ten: int) -> list[RequestTrace]:
    """Ten requests, so many of them bad."""
    return [*[bad] * of_ten, *[GOOD] * (10 - of_ten)]


@pytest.mark.parametrize(
    ("bound", "usual", "now", "ends"),
    [
        (0.5, 0, 5, False),
        (0.5, 0, 6, True),
        (0.5, 4, 9, False),
        (0.5, 4, 10, True),
        (0.5, 5, 10, False),
        (1.0, 0, 10, False),
        (0.0, 10, 10, False),
        (0.0, 3, 3, False),
        (0.0, 3, 4, True),
    ],
)
@pytest.mark.parametrize("name", ["garbage_share", "error_share"])
def test_a_bound_is_a_share_beyond_the_baselines_own_that_is_to_be_exceeded(
    name: str, bound: float, usual: int, now: int, ends: bool
):
    """Of ten requests: `usual` of the baseline's are bad, `now` of the candidate's."""
    bad = LOOP if name == "garbage_share" else FAILED
    bounds = Bounds(**{"error_share": 1.0, "garbage_share": 1.0, name: bound, "window": 10, "least": 1})
    candidate = CandidateWatch(bounds, lambda trace: "loop" in trace.text, baseline(bad, usual))
    see(candidate, *[GOOD] * (10 - now), *[bad] * now)
    assert (candidate.reason is not None) is ends, candidate.reason


def test_a_reason_says_how_much_is_allowed():
    candidate = CandidateWatch(Bounds(), lambda trace: "loop" in trace.text, baseline(LOOP, 2))
    assert "5 of the latest 5 answers are degenerate text, more than 70" in see(candidate, *[LOOP] * 5)


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


# Whether the process lives


class Lived(FakeLifecycle):
    """Shows what it is told, look by look, and then the last of it."""

    def __init__(self, *shown: State | Exception, look_s: float = 0.005) -> None:
        super().__init__(lines=["PHASE serving", "FATAL illegal memory access"])
        self.shown = list(shown)
        self.look_s = look_s
        self.looked = 0

    async def state(self) -> State:
        self.looked += 1
        now = self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]
        if isinstance(now, Exception):
            raise now
        return now


RUNNING, STARTING, STOPPED = State("running"), State("starting"), State("stopped")
FAILED_STATE = State("failed", "was killed by SIGABRT")
AWAY = ServerError("the cluster is away")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup_log, "DRAIN_S", 0.1)
    monkeypatch.setattr(looks, "FAILING_S", 0.0)


async def death(lifecycle: Lived, alarm: asyncio.Event | None = None, patience_s: float = 20) -> str | None:
    """None where it did not come."""
    try:
        async with asyncio.timeout(patience_s):
            return await until_death(lifecycle, PlainDialect(), "candidate", alarm or asyncio.Event())
    except TimeoutError:
        return None


async def test_death_is_told_with_the_logs_reason():
    reason = await death(Lived(RUNNING, FAILED_STATE))
    assert reason == "the candidate's process is failed (was killed by SIGABRT): FATAL illegal memory access"


@pytest.mark.parametrize("odd", [STARTING, STOPPED])
async def test_one_odd_look_is_no_death_and_several_are(odd: State):
    assert await death(Lived(*[RUNNING, odd, odd] * 5, RUNNING), patience_s=0.3) is None
    assert odd.condition in str(await death(Lived(RUNNING, odd)))


async def test_failed_looks_are_no_death_and_many_are_an_error():
    assert await death(Lived(*[RUNNING, AWAY, AWAY] * 5, RUNNING), patience_s=0.3) is None
    with pytest.raises(ServerError, match="3 times in a row"):
        await death(Lived(RUNNING, AWAY))


async def test_it_is_looked_at_as_often_as_its_kind_bears():
    rare = Lived(RUNNING, look_s=60)
    assert await death(rare, patience_s=0.2) is None
    assert rare.looked == 1


async def test_once_requests_fail_it_is_looked_at_at_once_and_the_first_odd_look_decides():
    lifecycle, alarm = Lived(RUNNING, STARTING, look_s=60), asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, alarm.set)
    assert "starting" in str(await death(lifecycle, alarm))
    assert lifecycle.looked == 2
