"""Against a real systemd: what breakeven reads is what it runs, and what is changed comes back."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing

import pytest

from breakeven.errors import UsageError
from breakeven.servers.fake.units import SYSTEM_PATH, find
from breakeven.servers.lifecycle import State
from breakeven.servers.operations import Operation
from breakeven.servers.systemd import SecondUnit, SystemdLifecycle
from breakeven.servers.systemd.effective import EffectiveUnit
from breakeven.servers.systemd.expand import with_specifiers
from breakeven.servers.systemd.manager import parse_show
from breakeven.servers.systemd.unit_name import UnitName
from breakeven.servers.systemd.words import split
from tests.e2e.systemd_namespace import NamespaceHost, running_systemd, why_not
from tests.unit.servers.systemd.golden import CASES, case

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no systemd can be started: {why_not()}")

PATIENCE_S = 20.0
UNITS = ("/etc/systemd/system", "/usr/lib/systemd/system", "/run/systemd/system")
FLAGS = ("--speculative-config", '{"method":"ngram","note":"100% of $5"}')
SERVER = f"{sys.executable} -I -S -u /run/server/server.py"
SOURCE = """
import json, os, sys, time
print("words", json.dumps([os.fsencode(word).hex() for word in sys.argv[1:]]))
print("set", json.dumps({name: os.environ.get(name) for name in ("NCCL_ALGO", "PORT")}))
if "--crash" in sys.argv:
    print("loading 1/2\\rloading 2/2\\r\\x1b[31mCUDA out of memory\\x1b[0m")
    sys.exit(3)
time.sleep(600)
"""
UNIT = f"""[Service]
Environment=NCCL_ALGO=Ring PORT=8000
ExecStartPre=/usr/bin/true
# the server
ExecStart=-{SERVER} serve "a model" \\
    # between
    --port ${{PORT}} --name %n
Restart=always
RestartSec=20ms
"""
USER_UNITS = "/run/home/.config/systemd/user"
USER_MANAGER = f"""[Service]
Type=notify
Slice=user-0.slice
Delegate=yes
Environment=HOME=/run/home XDG_RUNTIME_DIR=/run/user/0
Environment=SYSTEMD_UNIT_PATH={USER_UNITS}:/run/user/0/systemd/user
ExecStart=/lib/systemd/systemd --user --unit=test.target
"""
FILES = {
    "/run/server/server.py": SOURCE,
    "/etc/systemd/system/engine.service": UNIT,
    "/etc/systemd/system/user@0.service": USER_MANAGER,
    "/run/user/0/.keep": "",
    f"{USER_UNITS}/test.target": "[Unit]\nDefaultDependencies=no\n",
    f"{USER_UNITS}/basic.target": "[Unit]\nDefaultDependencies=no\n",
    f"{USER_UNITS}/shutdown.target": "[Unit]\nDefaultDependencies=no\n",
    f"{USER_UNITS}/mine.service": f"[Service]\nExecStart={SERVER} --home %h\n",
}
BASELINE = ["serve", "a model", "--port", "8000", "--name", "engine.service"]


@pytest.fixture(scope="module")
def host() -> Iterator[NamespaceHost]:
    with running_systemd(FILES) as running:
        yield running


@pytest.fixture
async def lifecycle(host: NamespaceHost) -> AsyncIterator[SystemdLifecycle]:
    """The service, running; whatever a test does to it is seen to be undone."""
    one = SystemdLifecycle(host, "engine.service")
    before = host.tree(*UNITS)
    await one.inspect()
    await one.restart()
    await becomes(one, "running")
    yield one
    assert host.tree(*UNITS) == before


async def becomes(lifecycle: SystemdLifecycle | SecondUnit, condition: str) -> State:
    return await until(lifecycle, lambda state: state.condition == condition)


async def until(lifecycle: SystemdLifecycle | SecondUnit, is_so: Callable[[State], bool]) -> State:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so(state := await lifecycle.state()):  # noqa: ASYNC110  another process is waited for
            await asyncio.sleep(0.05)
    return state


async def line_of(lifecycle: SystemdLifecycle | SecondUnit, start: str) -> str:
    """What follows it in the first line of the log that begins so."""
    async with asyncio.timeout(PATIENCE_S), aclosing(lifecycle.logs()) as lines:
        async for line in lines:
            if line.startswith(start):
                return line.removeprefix(start)
    raise AssertionError(f"the log ended without {start!r}")


async def words_of(lifecycle: SystemdLifecycle | SecondUnit) -> list[str]:
    """The arguments that the process got."""
    hexes = json.loads(await line_of(lifecycle, "words "))
    return [bytes.fromhex(word).decode("utf-8", "surrogateescape") for word in hexes]


async def do_all(operations: tuple[Operation, ...], host: NamespaceHost) -> None:
    for operation in operations:
        await operation.do(host)


async def undo_all(operations: tuple[Operation, ...], host: NamespaceHost) -> None:
    for operation in reversed(operations):
        await operation.undo(host)


async def test_changed_restarted_and_put_back(host: NamespaceHost, lifecycle: SystemdLifecycle):
    found = await lifecycle.inspect()
    assert found.argv[-6:] == ("serve", "a model", "--port", "${PORT}", "--name", "%n")
    assert found.as_run is not None and list(found.as_run[-6:]) == BASELINE
    assert found.warnings == ()
    assert await words_of(lifecycle) == BASELINE

    operations = lifecycle.change(found, (*found.argv, *FLAGS))
    await do_all(operations, host)
    await lifecycle.restart()
    state = await becomes(lifecycle, "running")
    assert state.since_s is not None and state.since_s < PATIENCE_S
    assert await words_of(lifecycle) == [*BASELINE, *FLAGS]
    assert json.loads(await line_of(lifecycle, "set ")) == {"NCCL_ALGO": "Ring", "PORT": "8000"}
    with pytest.raises(UsageError, match="breakeven recover"):
        await lifecycle.inspect()

    await undo_all(operations, host)
    await lifecycle.restart()
    await becomes(lifecycle, "running")
    assert await words_of(lifecycle) == BASELINE
    assert await lifecycle.inspect() == found


async def test_a_candidate_that_crashes_again_and_again(host: NamespaceHost, lifecycle: SystemdLifecycle):
    found = await lifecycle.inspect()
    operations = lifecycle.change(found, (*found.argv, "--crash"))
    await do_all(operations, host)
    await lifecycle.restart()
    state = await becomes(lifecycle, "failed")
    assert "by systemd" in state.detail or "exit code 3" in state.detail
    async with asyncio.timeout(PATIENCE_S):
        lines = [line async for line in lifecycle.logs()]
    assert any("CUDA out of memory" in line for line in lines)
    assert any("too quickly" in line for line in lines), "systemd gives up in the end"
    assert "too often" in (await lifecycle.state()).detail

    await undo_all(operations, host)
    await lifecycle.restart()
    await becomes(lifecycle, "running")
    assert await words_of(lifecycle) == BASELINE


async def test_a_process_that_is_killed_and_is_up_again(host: NamespaceHost, lifecycle: SystemdLifecycle):
    await host.run(("systemctl", "kill", "--signal=SIGKILL", "engine.service"))
    state = await until(lifecycle, lambda state: "active (running): restarted 1 time" in state.detail)
    assert state.condition == "failed"


async def test_words_of_every_kind_arrive_as_they_are(host: NamespaceHost, lifecycle: SystemdLifecycle):
    chance = random.Random(7)
    letters = "ab \\\"'%$;#{}-@\t\n\r\x01\x7f\u00e9\u00a0\u2028\ufeff\U0001f600"
    words = ["".join(chance.choices(letters, k=chance.randrange(8))) for _ in range(400)]
    words += [";", "\\;", "", "$HOME", "${HOME}", "$$", "%n", "%%", "#", "\\x41", '{"k":"v"}', "-", "a\\"]
    found = await lifecycle.inspect()
    operations = lifecycle.change(found, (*found.argv, *words))
    await do_all(operations, host)
    await lifecycle.restart()
    assert await words_of(lifecycle) == [*BASELINE, *words]
    await undo_all(operations, host)
    await lifecycle.restart()
    await becomes(lifecycle, "running")


async def test_a_second_unit_beside_it(host: NamespaceHost, lifecycle: SystemdLifecycle):
    pair = SecondUnit(host, "engine.service", "engine-trial.service")
    found = await pair.inspect()
    operations = pair.change(found, (*found.argv, *FLAGS))
    await do_all(operations, host)
    assert (await lifecycle.state()).condition == "stopped"
    await pair.restart()
    await becomes(pair, "running")
    assert await words_of(pair) == [*BASELINE, *FLAGS]
    assert json.loads(await line_of(pair, "set ")) == {"NCCL_ALGO": "Ring", "PORT": "8000"}

    await undo_all(operations, host)
    await becomes(lifecycle, "running")
    assert await pair.inspect() == found


async def test_a_users_own_service(host: NamespaceHost, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/0")
    started = await host.run(("systemctl", "start", "user@0.service"))
    assert started.returncode == 0, started
    lifecycle = SystemdLifecycle(host, "mine", user=True)
    found = await lifecycle.inspect()
    assert found.as_run is not None and found.as_run[-1] == "/run/home"
    before = host.tree("/run/home", "/run/user/0/systemd/user")
    operations = lifecycle.change(found, (*found.argv, *FLAGS))
    await do_all(operations, host)
    await lifecycle.restart()
    assert await words_of(lifecycle) == ["--home", "/run/home", *FLAGS]
    assert (await lifecycle.state()).condition == "running"
    await undo_all(operations, host)
    assert host.tree("/run/home", "/run/user/0/systemd/user") == before
    await lifecycle.restart()
    assert await words_of(lifecycle) == ["--home", "/run/home"]


async def test_a_log_in_a_file(host: NamespaceHost):
    path = "/etc/systemd/system/filed.service"
    output = "StandardOutput=append:/run/%p.log\nStandardError=inherit"
    host.write(path, f"[Service]\n{output}\nExecStart={SERVER} one\n".encode())
    host.write("/run/filed.log", b"words [] of an older start\n")
    await host.run(("systemctl", "daemon-reload"))
    lifecycle = SystemdLifecycle(host, "filed")
    await lifecycle.inspect()
    await lifecycle.restart()
    assert await words_of(lifecycle) == ["one"]
    await host.run(("systemctl", "stop", "filed"))
    host.remove(path)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (None, "not there"),
        ("", "masked"),
        ("[Service]\nExecStart=/bin/true\nExecStart=/bin/true\n", "cannot load"),
        ("[Service]\nType=oneshot\nExecStart=/bin/true ; /bin/true\n", "2 commands"),
        ("[Unit]\nRefuseManualStop=yes\n[Service]\nExecStart=/bin/true\n", "RefuseManualStop"),
    ],
)
async def test_units_that_cannot_be_changed(host: NamespaceHost, text: str | None, advice: str):
    path = "/etc/systemd/system/odd.service"
    if text is not None:
        host.write(path, text.encode())
    await host.run(("systemctl", "daemon-reload"))
    with pytest.raises(UsageError, match=advice):
        await SystemdLifecycle(host, "odd").inspect()
    host.remove(path)


async def test_a_unit_that_somebody_is_editing(host: NamespaceHost, lifecycle: SystemdLifecycle):
    path = "/etc/systemd/system/engine.service.d/new.conf"
    folders = host.missing_folders(path)
    host.write(path, b"[Service]\nEnvironment=NEW=1\n")
    try:
        with pytest.raises(UsageError, match=r"new\.conf.*daemon-reload"):
            await lifecycle.inspect()
    finally:
        host.remove(path, folders)
        await host.run(("systemctl", "daemon-reload"))


@pytest.mark.parametrize("name", [name for name in CASES if not case(name).user])
async def test_systemd_reads_the_golden_units_as_breakeven_does(host: NamespaceHost, name: str):
    one = case(name)
    files = {path: data for path, data in one.files.items() if path.startswith(UNITS)}
    made = {path: (host.missing_folders(path), host.read(path)) for path in files}
    for path, data in files.items():
        host.write(path, data)
    await host.run(("systemctl", "daemon-reload"))
    try:
        await assert_alike(host, one.unit, files)
        lifecycle = SystemdLifecycle(host, one.unit)
        found = await lifecycle.inspect()
        tree, before = host.tree(*UNITS), await shown(host, one.unit)
        operations = lifecycle.change(found, (*found.argv, *FLAGS))
        await do_all(operations, host)
        added = " ".join(FLAGS)
        if lifecycle.reading.command.fills_in_variables:
            added = added.replace("$", "$$")
        assert (await shown(host, one.unit))[0] == f"{before[0]} {added}"
        await undo_all(operations, host)
        assert host.tree(*UNITS) == tree
        assert await shown(host, one.unit) == before
    finally:
        for path, (folders, data) in reversed(made.items()):
            host.remove(path, folders) if data is None else host.write(path, data)
        await host.run(("systemctl", "daemon-reload"))


async def assert_alike(host: NamespaceHost, unit: str, files: dict[str, bytes]) -> None:
    """The files in their order, the command line and the variables."""
    argv, environment, paths = await shown(host, unit)
    expected = find(unit, files, SYSTEM_PATH)
    assert paths == [expected.fragment, *expected.dropins]
    specifiers = UnitName(unit).specifiers()
    effective = EffectiveUnit(expected.contents, specifiers)
    command = effective.exec_start[0]
    words = [command.name.value if command.name else command.program.value, *command.argv[1:]]
    assert argv == " ".join(with_specifiers(word, specifiers) for word in words)
    assert environment == effective.environment


async def shown(host: NamespaceHost, unit: str) -> tuple[str, dict[str, str], list[str]]:
    """Command line, variables and files, as systemctl has them."""
    names = "ExecStart,Environment,FragmentPath,DropInPaths"
    said = (await host.run(("systemctl", "show", f"--property={names}", "--", unit))).stdout
    whole = said.partition("argv[]=")[2].partition(" ; ignore_errors")[0]
    properties = parse_show(said)
    pairs = (word.value.partition("=") for word in split(properties.get("Environment", "")))
    paths = f"{properties.get('FragmentPath', '')} {properties.get('DropInPaths', '')}".split()
    return (
        whole,
        {name: value for name, _, value in pairs},
        [path.replace("/lib/systemd/", "/usr/lib/systemd/", path.startswith("/lib/")) for path in paths],
    )
