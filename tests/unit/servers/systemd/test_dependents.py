"""What goes down with a service comes up with it again."""

from __future__ import annotations

import pytest

from breakeven.errors import UsageError
from breakeven.servers.fake.systemctl import FakeSystemd, Ran
from breakeven.servers.lifecycle import Lifecycle
from breakeven.servers.operations import Operation
from breakeven.servers.systemd import SecondUnit, SystemdLifecycle
from tests.unit.servers.systemd.golden import do_all, undo_all

PATH = "/etc/systemd/system"
FAILS = "--fails"


def program(argv: tuple[str, ...], environment: object) -> Ran:
    return Ran(exit_code=1 if FAILS in argv else None)


@pytest.fixture
async def systemd() -> FakeSystemd:
    """`idle` depends on x too, and does not run; `web` depends on what depends on x."""
    names = ("x", "chat", "bound", "part", "idle", "web")
    made = FakeSystemd(
        {f"{PATH}/{n}.service": f"[Service]\nExecStart=/bin/{n}\n".encode() for n in names}, program
    )
    made.extra["x.service"] = {
        "RequiredBy": "chat.service idle.service",
        "BoundBy": "bound.service",
        "ConsistsOf": "part.service",
    }
    made.extra["chat.service"] = {"BoundBy": "web.service"}
    for name in ("x", "chat", "bound", "part", "web"):
        await made.run(("systemctl", "start", f"{name}.service"))
    return made


def running(systemd: FakeSystemd) -> set[str]:
    names = ("x", "chat", "bound", "part", "idle", "web")
    return {name for name in names if systemd.service(f"{name}.service").pid}


EVERYTHING = {"x", "chat", "bound", "part", "web"}


@pytest.mark.parametrize("flag", ["--works", FAILS])
@pytest.mark.parametrize("as_new_unit", [False, True])
async def test_what_ran_runs_again(systemd: FakeSystemd, flag: str, as_new_unit: bool):
    made: Lifecycle = SecondUnit(systemd, "x", "trial") if as_new_unit else SystemdLifecycle(systemd, "x")
    found = await made.inspect()
    operations: tuple[Operation, ...] = made.change(found, (*found.argv, flag))
    await do_all(operations, systemd)
    await made.restart()
    assert running(systemd) == (EVERYTHING if flag != FAILS and not as_new_unit else set())
    await undo_all(operations, systemd)
    await made.restart()
    assert running(systemd) == EVERYTHING


async def test_one_that_is_gone_meanwhile_keeps_nothing_down(systemd: FakeSystemd):
    lifecycle = SystemdLifecycle(systemd, "x")
    found = await lifecycle.inspect()
    operations = lifecycle.change(found, (*found.argv, FAILS))
    await do_all(operations, systemd)
    await lifecycle.restart()
    del systemd.files[f"{PATH}/bound.service"]
    await undo_all(operations, systemd)
    assert running(systemd) == EVERYTHING - {"bound"}


async def test_nothing_is_started_where_nothing_depends_on_it():
    systemd = FakeSystemd({f"{PATH}/x.service": b"[Service]\nExecStart=/bin/x\n"})
    lifecycle = SystemdLifecycle(systemd, "x")
    undo = [one.describe_undo() for one in lifecycle.change(await lifecycle.inspect(), ("/bin/x", "1"))]
    assert not any("start" in (one or "") for one in undo)


async def test_a_socket_could_start_the_original_beside_the_second():
    systemd = FakeSystemd({f"{PATH}/x.service": b"[Service]\nExecStart=/bin/x\n"})
    systemd.extra["x.service"] = {"TriggeredBy": "x.timer x.socket"}
    await SecondUnit(systemd, "x", "trial").inspect()
    systemd.extra["x.socket"] = {"ActiveState": "active"}
    with pytest.raises(UsageError, match=r"x\.socket may start x\.service.*systemctl stop x\.socket"):
        await SecondUnit(systemd, "x", "trial").inspect()
    await SystemdLifecycle(systemd, "x").inspect()
