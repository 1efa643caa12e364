"""Units as they are in the wild: read, changed, and put back byte for byte."""

from __future__ import annotations

import json

import pytest

from breakeven.servers.fake.host import Killed
from breakeven.servers.operation_kinds import operation_from_json
from breakeven.servers.systemd.effective import EffectiveUnit
from tests.unit.servers.systemd.golden import CASES, case, do_all, undo_all

FLAGS = ("--speculative-config", '{"method":"ngram","num_speculative_tokens":5,"note":"100% of $5"}')


def test_there_are_enough_of_them():
    assert len(CASES) >= 12


@pytest.mark.parametrize("name", CASES)
async def test_a_unit_is_read_as_systemd_reads_it(name: str):
    one = case(name)
    found = await one.lifecycle(one.systemd()).inspect()
    assert found.argv == one.argv
    assert found.environment == one.environment
    assert found.as_run == one.as_run


@pytest.mark.parametrize("name", CASES)
async def test_only_the_new_words_change(name: str):
    one = case(name)
    systemd = one.systemd()
    lifecycle = one.lifecycle(systemd)
    found = await lifecycle.inspect()
    before = EffectiveUnit(dict(systemd.service(one.unit).files.contents))
    await do_all(lifecycle.change(found, (*found.argv, *FLAGS)), systemd)
    after = EffectiveUnit(dict(systemd.service(one.unit).files.contents))

    old, new = before.exec_start[0], after.exec_start[0]
    assert (new.prefix, new.name, new.program) == (old.prefix, old.name, old.program)
    assert new.arguments[: len(old.arguments)] == old.arguments
    assert others(after) == others(before)
    await lifecycle.restart()
    assert systemd.service(one.unit).argv[-2:] == FLAGS


def others(unit: EffectiveUnit):
    return [one for one in unit.assignments if one.name != "ExecStart"]


@pytest.mark.parametrize("name", CASES)
async def test_undone_from_any_point_every_file_is_as_it_was(name: str):
    one = case(name)
    for done in range(4):
        systemd = one.systemd()
        lifecycle = one.lifecycle(systemd)
        found = await lifecycle.inspect()
        tree, loaded = systemd.snapshot(), systemd.service(one.unit).files
        operations = lifecycle.change(found, (*found.argv, *FLAGS))
        assert len(operations) == 3
        await do_all(operations[:done], systemd)
        assert (systemd.snapshot() == tree) == (done < 2)
        journal = json.loads(json.dumps([operation.to_json() for operation in operations]))
        again = tuple(operation_from_json(value) for value in journal)
        await undo_all(again, systemd)
        await undo_all(again, systemd)
        assert systemd.snapshot() == tree
        assert systemd.service(one.unit).files == loaded
        assert (await lifecycle.inspect()).argv == one.argv


@pytest.mark.parametrize("takes_effect", [False, True])
@pytest.mark.parametrize("name", CASES)
async def test_killed_at_any_step_a_later_process_puts_it_back(name: str, takes_effect: bool):
    one = case(name)
    for step in range(2):
        systemd = one.systemd()
        found = await (lifecycle := one.lifecycle(systemd)).inspect()
        before, loaded = systemd.snapshot(), systemd.service(one.unit).files
        operations = lifecycle.change(found, (*found.argv, *FLAGS))
        journal = [operation.to_json() for operation in operations]
        systemd.fail_at, systemd.failure, systemd.takes_effect = (
            systemd.touches + step,
            Killed(),
            takes_effect,
        )
        with pytest.raises(Killed):
            await do_all(operations, systemd)
        await undo_all(tuple(operation_from_json(value) for value in journal), systemd)
        assert systemd.snapshot() == before
        assert systemd.service(one.unit).files == loaded


@pytest.mark.parametrize("name", CASES)
async def test_original_files_are_never_written(name: str):
    one = case(name)
    systemd = one.systemd()
    lifecycle = one.lifecycle(systemd)
    found = await lifecycle.inspect()
    await do_all(lifecycle.change(found, (*found.argv, *FLAGS)), systemd)
    assert {path: data for path, data in systemd.files.items() if path in one.files} == one.files
    (ours,) = set(systemd.files) - set(one.files)
    assert ours.startswith("/run/")
    assert systemd.service(one.unit).files.dropins[-1] == ours


@pytest.mark.parametrize("name", CASES)
async def test_a_kept_change_lasts_and_the_next_trial_comes_after_it(name: str):
    one = case(name)
    systemd = one.systemd()
    lifecycle = one.lifecycle(systemd)
    found = await lifecycle.inspect()
    await do_all(lifecycle.keep(found, (*found.argv, "--kept")), systemd)
    (kept,) = set(systemd.files) - set(one.files)
    assert not kept.startswith("/run/")

    found = await lifecycle.inspect()
    assert found.argv == (*one.argv, "--kept")
    await do_all(lifecycle.change(found, (*found.argv, "--tried")), systemd)
    await lifecycle.restart()
    assert systemd.service(one.unit).argv[-2:] == ("--kept", "--tried")
