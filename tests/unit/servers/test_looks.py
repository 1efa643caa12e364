"""A look that fails is no verdict, several are; and no more looks are made than are needed."""

import pytest

from breakeven.errors import ServerError, UsageError
from breakeven.servers import looks as module
from breakeven.servers.fake.lifecycle import FakeLifecycle
from breakeven.servers.lifecycle import State
from breakeven.servers.looks import Looks

RUNNING = State("running")
AWAY = ServerError("the cluster is away")


class Told(FakeLifecycle):
    """Shows what it is told, look by look; its clock is told too."""

    def __init__(self, *shown: State | Exception) -> None:
        super().__init__()
        self.shown = list(shown)
        self.looked = 0

    async def state(self) -> State:
        self.looked += 1
        now = self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]
        if isinstance(now, Exception):
            raise now
        return now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its last value is the time."""
    times = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: times[-1])
    return times


async def test_what_comes_back_is_looked_at_as_such(clock: list[float]):
    class Crashes(Told):
        async def returning_state(self) -> State:
            return State("starting", "restarted once")

    crashed = Crashes(State("failed"))
    for is_returning, is_over in ((False, True), (True, False)):
        looks = Looks(crashed, is_returning)
        state = await looks.state()
        assert state is not None and looks.is_over(state) == is_over


async def test_a_state_that_is_young_enough_is_not_looked_for_again(clock: list[float]):
    lifecycle = Told(RUNNING)
    looks = Looks(lifecycle)
    for _ in range(5):
        assert await looks.state(10.0) == RUNNING
    assert lifecycle.looked == 1
    clock.append(109.9)
    await looks.state(10.0)
    clock.append(110.0)
    await looks.state(10.0)
    assert lifecycle.looked == 2
    await looks.state()
    assert lifecycle.looked == 3


async def test_failed_looks_are_a_verdict_once_they_are_many_for_long(clock: list[float]):
    looks = Looks(Told(RUNNING, AWAY))
    await looks.state()
    for _ in range(5):
        assert await looks.state() is None
    clock.append(100.0 + module.FAILING_S)
    with pytest.raises(ServerError, match=r"6 times in a row.*the cluster is away"):
        await looks.state()


async def test_two_failed_looks_are_none_however_far_apart(clock: list[float]):
    looks = Looks(Told(AWAY, AWAY, RUNNING))
    assert await looks.state() is None
    clock.append(1000.0)
    assert await looks.state() is None
    assert await looks.state() == RUNNING


async def test_a_good_look_forgives_the_failed_ones(clock: list[float]):
    looks = Looks(Told(AWAY, AWAY, RUNNING, AWAY, AWAY, RUNNING))
    for _ in range(6):
        await looks.state()
        clock.append(clock[-1] + 60)


async def test_what_waiting_does_not_change_is_raised_at_once():
    with pytest.raises(UsageError):
        await Looks(Told(UsageError("there is no such service"))).state()


async def test_failed_is_over_and_stopped_only_after_some_looks():
    failed, stopped = State("failed"), State("stopped")
    assert Looks(FakeLifecycle()).is_over(failed)
    looks = Looks(Told(stopped))
    for n in range(1, module.ODD_LOOKS + 1):
        assert await looks.state() == stopped
        assert looks.is_over(stopped) is (n == module.ODD_LOOKS)
