"""A second unit beside the service."""

from __future__ import annotations

import pytest

from breakeven.errors import UsageError
from breakeven.servers.fake.systemctl import FakeSystemd, Ran
from breakeven.servers.systemd import SecondUnit
from breakeven.servers.systemd.effective import EffectiveUnit
from tests.unit.servers.systemd.golden import CASES, case, do_all, undo_all

TRIAL = "trial.service"


def program(argv: tuple[str, ...], environment: object) -> Ran:
    return Ran(says=(" ".join(argv),))


@pytest.mark.parametrize("name", CASES)
async def test_it_runs_in_place_of_the_original_and_goes(name: str):
    one = case(name)
    systemd = one.systemd(program)
    await one.lifecycle(systemd).restart()
    pair = SecondUnit(systemd, one.unit, TRIAL, one.user)
    found = await pair.inspect()
    tree = systemd.snapshot()
    operations = pair.change(found, (*found.argv, "--new"))
    await do_all(operations, systemd)
    assert systemd.service(one.unit).active == "inactive"
    await pair.restart()
    assert systemd.service(TRIAL).active == "active"
    assert systemd.service(TRIAL).argv == (*one.as_run, "--new")

    await undo_all(operations, systemd)
    await undo_all(operations, systemd)
    assert systemd.snapshot() == tree
    assert systemd.service(one.unit).active == "active"
    assert (await pair.state()).condition == "running"
    assert (await pair.inspect()).argv == one.argv


@pytest.mark.parametrize("name", CASES)
async def test_it_is_the_same_but_for_its_command_line(name: str):
    one = case(name)
    systemd = one.systemd()
    pair = SecondUnit(systemd, one.unit, TRIAL, one.user)
    found = await pair.inspect()
    await do_all(pair.change(found, found.argv), systemd)
    original = EffectiveUnit(systemd.service(one.unit).files.contents, pair.first.name.specifiers())
    second = EffectiveUnit(systemd.service(TRIAL).files.contents, pair.second.name.specifiers())
    assert second.environment == original.environment
    settings = [a.name for a in original.assignments if a.name != "ExecStart" and a.section != "Install"]
    assert sorted(a.name for a in second.assignments if a.name != "ExecStart") == sorted(settings)


async def test_from_any_point_the_original_runs_again():
    one = case("kimi-nccl")
    for done in range(7):
        systemd = one.systemd()
        await one.lifecycle(systemd).restart()
        pair = SecondUnit(systemd, one.unit, TRIAL)
        found, tree = await pair.inspect(), systemd.snapshot()
        operations = pair.change(found, (*found.argv, "--new"))
        assert len(operations) == 6
        await do_all(operations[:done], systemd)
        await undo_all(operations, systemd)
        assert systemd.snapshot() == tree
        assert systemd.service(one.unit).active == "active"


async def test_a_service_that_did_not_run_is_not_started():
    one = case("kimi-nccl")
    systemd = one.systemd()
    pair = SecondUnit(systemd, one.unit, TRIAL)
    operations = pair.change(await pair.inspect(), one.argv)
    await do_all(operations, systemd)
    await undo_all(operations, systemd)
    assert systemd.service(one.unit).active == "inactive"


async def test_its_log_is_the_one_that_is_read():
    path = "/etc/systemd/system/x.service"
    systemd = FakeSystemd({path: b"[Service]\nExecStart=/bin/x 1\n"}, program)
    pair = SecondUnit(systemd, "x", TRIAL)
    found = await pair.inspect()
    await pair.first.restart()
    await do_all(pair.change(found, ("/bin/x", "2")), systemd)
    await pair.restart()
    await systemd.run(("systemctl", "stop", "--", TRIAL))
    assert [line async for line in pair.logs()] == ["/bin/x 2"]
    assert "+++ x.service with /run/systemd/system/trial.service" in pair.diff(found, ("/bin/x", "2"))


async def test_names_that_cannot_be_taken():
    one = case("kimi-nccl")
    with pytest.raises(UsageError, match="another name"):
        SecondUnit(one.systemd(), one.unit, "vllm")
    systemd = FakeSystemd(
        {**one.files, "/etc/systemd/system/trial.service": b"[Service]\nExecStart=/bin/x\n"}
    )
    with pytest.raises(UsageError, match="there is a unit of that name"):
        await SecondUnit(systemd, one.unit, TRIAL).inspect()


async def test_both_units_are_made_of_the_same_environment_files():
    unit = b"[Service]\nEnvironmentFile=/etc/x.env\nExecStart=/bin/x\n"
    systemd = FakeSystemd({"/etc/systemd/system/x.service": unit, "/etc/x.env": b"KEY=one\n"})
    pair = SecondUnit(systemd, "x.service", TRIAL)
    await pair.first.restart()
    found = await pair.inspect()
    before = await pair.made_of()
    await do_all(pair.change(found, ("/bin/x", "--new")), systemd)
    await pair.restart()
    assert await pair.made_of() == before != {}
    systemd.files["/etc/x.env"] = b"KEY=two\n"
    assert await pair.made_of() != before
