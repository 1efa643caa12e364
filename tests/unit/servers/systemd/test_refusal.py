"""Units that cannot be changed safely, and what to do instead."""

from __future__ import annotations

import pytest

from breakeven.errors import ServerError, UsageError
from breakeven.servers.fake.host import FakeHost
from breakeven.servers.fake.systemctl import FakeSystemd
from breakeven.servers.operations import Completed
from breakeven.servers.systemd import SystemdLifecycle
from breakeven.servers.systemd.refusal import check_loaded
from breakeven.servers.systemd.unit_name import UnitName
from breakeven.servers.systemd.unread import unread

PATH = "/etc/systemd/system/x.service"


async def refused(files: dict[str, bytes], advice: str) -> None:
    with pytest.raises(UsageError, match=advice):
        await SystemdLifecycle(FakeSystemd(files), "x").inspect()


@pytest.mark.parametrize(
    ("setting", "action"),
    [
        ("FailureAction", "reboot"),
        ("FailureAction", "exit"),
        ("SuccessAction", "poweroff-force"),
        ("StartLimitAction", "reboot-immediate"),
        ("JobTimeoutAction", "halt"),
    ],
)
async def test_a_failed_start_must_not_take_the_machine_down(setting: str, action: str):
    systemd = FakeSystemd({PATH: b"[Service]\nExecStart=/bin/x\n"})
    systemd.extra["x.service"] = {setting: "none"}
    await SystemdLifecycle(systemd, "x").inspect()
    systemd.extra["x.service"] = {setting: action}
    with pytest.raises(UsageError, match=f"{setting}={action}.*{setting}=none by  systemctl edit x.service"):
        await SystemdLifecycle(systemd, "x").inspect()


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("/bin/bash -c 'vllm serve m'", "through a shell.*systemctl edit"),
        ("/bin/sh -lc 'vllm serve m'", "through a shell"),
        ("/usr/bin/env bash -c 'vllm serve m'", "through a shell"),
        ("/opt/conda/bin/conda run -n vllm bash -c 'vllm serve m'", "through a shell"),
        ("|vllm serve m", "through a shell"),
        ("/bin/bash /opt/run.sh", r"script \(/bin/bash /opt/run.sh\)"),
        ("/opt/run-vllm.sh --port 1", r"script \(/opt/run-vllm.sh --port\)"),
        ("/etc/init.d/vllm start", "script"),
        ("/usr/bin/docker run --rm --name llm --gpus all vllm/vllm-openai --model m", "--server docker:llm"),
        ("/usr/bin/docker start -a llm", "--server docker:llm"),
        ("/usr/bin/podman run --name=llm vllm", "--server docker:llm"),
        ("/usr/bin/docker run vllm/vllm-openai", "--server docker:NAME"),
        ("/usr/bin/docker compose up", "--server compose:FILE#SERVICE"),
        ("/usr/bin/docker-compose up", "--server compose:FILE#SERVICE"),
        ("/usr/bin/tmux new -d vllm serve m", "through tmux"),
        ("'/bin/x", "not closed"),
    ],
)
async def test_commands(command: str, advice: str):
    await refused({PATH: f"[Service]\nExecStart={command}\n".encode()}, advice)


@pytest.mark.parametrize(
    "command",
    [
        "/usr/bin/env HF_HOME=/x vllm serve m",
        "/opt/conda/bin/conda run -n vllm vllm serve m",
        "/usr/bin/taskset -c 0-3 /opt/bin/vllm serve m",
        "/opt/bin/vllm serve /models/bash --compile x",
        "/usr/bin/tini -- /opt/bin/vllm serve m",
    ],
)
async def test_wrappers_that_pass_arguments_on_are_fine(command: str):
    systemd = FakeSystemd({PATH: f"[Service]\nExecStart={command}\n".encode()})
    assert (await SystemdLifecycle(systemd, "x").inspect()).argv[-1] in ("m", "x")


async def test_no_such_unit_masked_several_commands_none():
    await refused({}, "is not there.*list-units")
    await refused({PATH: b""}, "masked.*unmask")
    await refused({PATH: b"[Service]\nType=oneshot\nExecStart=/a ; /b\n"}, "2 commands")
    await refused({PATH: b"[Service]\nType=oneshot\nExecStop=/a\n"}, "no ExecStart=")


@pytest.mark.parametrize(
    ("properties", "advice"),
    [
        ({"LoadState": "bad-setting", "LoadError": "org.x 'bad'"}, "bad-setting.*org.x.*status x"),
        ({"NeedDaemonReload": "yes"}, "cat x.service.*daemon-reload"),
        ({"FragmentPath": "/run/systemd/transient/x.service"}, "systemd-run"),
        ({"RefuseManualStart": "yes"}, "RefuseManualStart=yes"),
        ({"DropInPaths": "/run/systemd/system/x.service.d/zz-breakeven.conf"}, "breakeven recover"),
        (
            {"DropInPaths": "/run/x.d/~a.conf-zz-breakeven.conf", "NeedDaemonReload": "yes"},
            "breakeven recover",
        ),
    ],
)
def test_what_systemd_says_of_it(properties: dict[str, str], advice: str):
    with pytest.raises(UsageError, match=advice):
        check_loaded({"Id": "x.service", "LoadState": "loaded", **properties}, "systemctl")


async def test_files_that_systemd_has_not_read():
    unit = b"[Service]\nExecStart=/bin/x\n"
    systemd = FakeSystemd({"/usr/lib/systemd/system/x.service": unit})
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.inspect()
    for path in ("/etc/systemd/system/x.service.d/new.conf", PATH, "/etc/systemd/system/service.d/a.conf"):
        systemd.write(path, unit)
        with pytest.raises(UsageError, match=f"{path if path != PATH else ''}.*daemon-reload"):
            await lifecycle.inspect()
        systemd.remove(path)
    systemd.write("/etc/systemd/system/x.service.d/README", unit)
    systemd.write("/etc/systemd/system/x.service.d/.hidden.conf", unit)
    await lifecycle.inspect()


async def test_a_masked_drop_in_is_no_new_one():
    """A link to /dev/null, which find shows as a character device, takes the vendor's file out."""
    systemd = FakeSystemd({PATH: b"[Service]\nExecStart=/bin/x\n"})
    said = "c 1:2 /etc/systemd/system/x.service.d/a.conf\nf 1:3 /usr/lib/systemd/system/x.service.d/a.conf\n"
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.inspect()
    (find,) = (argv for argv in systemd.commands if argv[0] == "find")
    systemd.answers[find] = Completed(1, said, "find: ‘/run/x’: No such file or directory\n")
    await lifecycle.inspect()


@pytest.mark.parametrize(("inode", "new"), [("1:2", ()), ("1:3", ("/lib/systemd/system/x.service",))])
async def test_the_same_file_by_another_path_is_no_new_one(inode: str, new: tuple[str, ...]):
    """/lib is a link to /usr/lib on many machines."""
    fragment, other = "/usr/lib/systemd/system/x.service", "/lib/systemd/system/x.service"
    host = FakeHost(lambda argv, stdin: Completed(0, f"f 1:2 {fragment}\nf {inode} {other}\n", ""))
    folders = ("/lib/systemd/system", "/usr/lib/systemd/system")
    assert await unread(host, UnitName("x.service"), folders, fragment, ()) == new


async def test_an_alias_is_the_unit_that_it_names():
    systemd = FakeSystemd({"/etc/systemd/system/llm.service": b"[Service]\nExecStart=/bin/x\n"})
    systemd.extra["llm.service"] = {"Id": "x.service"}
    lifecycle = SystemdLifecycle(systemd, "llm")
    found = await lifecycle.inspect()
    assert found.target == "systemd:x.service"
    assert "/x.service.d/" in lifecycle.diff(found, ("/bin/y",))


async def test_a_unit_whose_file_is_gone():
    systemd = FakeSystemd({PATH: b"[Service]\nExecStart=/bin/x\n"})
    systemd.service("x.service")
    systemd.remove(PATH)
    with pytest.raises((ServerError, UsageError), match="daemon-reload"):
        await SystemdLifecycle(systemd, "x").inspect()


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("System has not been booted with systemd as init system (PID 1). Can't operate.", "run by systemd"),
        ("Failed to connect to bus: Permission denied", "run by systemd"),
        ("Failed to restart x.service: Interactive authentication required.", "--sudo"),
    ],
)
async def test_what_goes_wrong_says_what_to_do(said: str, advice: str):
    systemd = FakeSystemd({PATH: b"[Service]\nExecStart=/bin/x\n"})
    lifecycle = SystemdLifecycle(systemd, "x")
    systemd.answers["systemctl", "restart", "--no-block", "--", "x.service"] = Completed(1, "", said)
    with pytest.raises(ServerError, match=advice):
        await lifecycle.restart()


async def test_a_users_manager_is_not_the_systems():
    with pytest.raises(ServerError, match="XDG_RUNTIME_DIR"):
        await SystemdLifecycle(FakeSystemd({}), "x", user=True).inspect()
