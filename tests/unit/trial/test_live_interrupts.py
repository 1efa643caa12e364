"""Signals while a service is changed: the first ends what is done, and the put-back ends by itself."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from breakeven.trial.live_interrupts import heeded, undisturbed, wait_words

LIMIT_S = 7200.0
WAIT = wait_words(LIMIT_S)
LOOPS: list[Callable[[], asyncio.AbstractEventLoop] | None] = [None]
try:
    import uvloop

    LOOPS.append(uvloop.new_event_loop)
except ImportError:
    pass


class Work:
    """Waits for ever, and is put back in some steps; signals come while it waits and while it is put back."""

    def __init__(self, first: int, later: int | None = None, how_often: int = 3) -> None:
        self.first, self.later, self.how_often = first, later, how_often
        self.said: list[str] = []
        self.is_back = False

    async def changed(self) -> None:
        with heeded(self.said.append, LIMIT_S):
            try:
                asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), self.first)
                await asyncio.sleep(30)
            finally:
                await undisturbed(self.put_back(), self.said.append, LIMIT_S)

    async def put_back(self) -> None:
        for _ in range(self.how_often):
            if self.later is not None:
                os.kill(os.getpid(), self.later)
            await asyncio.sleep(0.01)
        self.is_back = True


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"][: len(LOOPS)])
def loop_factory(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop] | None:
    factory: Callable[[], asyncio.AbstractEventLoop] | None = request.param
    return factory


@pytest.fixture(autouse=True)
def python_s_own_handler() -> object:
    """Whatever a test before has left, and whatever the tests were started below, such as nohup."""
    before = (
        signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    yield
    signal.signal(signal.SIGINT, before[0])
    signal.signal(signal.SIGHUP, before[1])


def run(work: Work, factory: Callable[[], asyncio.AbstractEventLoop] | None) -> None:
    with asyncio.Runner(loop_factory=factory) as runner, pytest.raises(KeyboardInterrupt):
        runner.run(work.changed())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_ends_it_as_ctrl_c_does(number: int, loop_factory):
    work = Work(number)
    run(work, loop_factory)
    assert work.is_back


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_further_signals_are_answered_and_do_not_break_the_put_back(number: int, loop_factory):
    work = Work(signal.SIGINT, later=number)
    run(work, loop_factory)
    assert work.is_back
    assert work.said.count(WAIT) == work.how_often


def test_handlers_are_as_before(loop_factory):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    run(Work(signal.SIGINT), loop_factory)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_a_signal_that_is_ignored_stays_so():
    """As below nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:

        async def hung_up() -> None:
            with heeded(lambda line: None, LIMIT_S):
                os.kill(os.getpid(), signal.SIGHUP)
                await asyncio.sleep(0.02)

        asyncio.run(hung_up())
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_task_is_cancelled_where_no_runner_heeds_ctrl_c():
    """Python's own handler raises wherever the program happens to be, which could be the put-back."""
    work = Work(signal.SIGTERM)
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(work.changed())
    finally:
        loop.close()
    assert work.is_back


async def test_a_thread_that_gets_no_signals():
    said: list[str] = []

    async def inside() -> str:
        with heeded(said.append, LIMIT_S):
            return "done"

    assert await asyncio.to_thread(lambda: asyncio.run(inside())) == "done"


async def test_cancelled_work_comes_to_its_end_and_its_result_is_not_lost_silently():
    said: list[str] = []
    ended: list[str] = []
    may_end = asyncio.Event()

    async def work() -> str:
        await may_end.wait()
        ended.append("ended")
        return "result"

    task = asyncio.ensure_future(undisturbed(work(), said.append, LIMIT_S))
    await asyncio.sleep(0.01)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0.01)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["ended"] and said == [WAIT, WAIT]
    assert await undisturbed(work(), said.append, LIMIT_S) == "result"


async def test_what_the_work_raises_is_raised():
    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await undisturbed(work(), lambda line: None, LIMIT_S)


def test_who_waits_is_told_for_how_long_at_most_and_how_to_end_it_nevertheless():
    assert "for up to 2 h" in WAIT
    assert "Ctrl-\\ ends this at once" in WAIT and "breakeven recover" in WAIT
