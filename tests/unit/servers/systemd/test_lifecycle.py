"""What a human sees of a unit, and what of it is kept."""

from __future__ import annotations

import time

import pytest

from breakeven.errors import StorageError, UsageError
from breakeven.servers.fake.systemctl import FakeSystemd, Ran
from breakeven.servers.operation_kinds import WriteFile
from breakeven.servers.systemd import SystemdLifecycle

PATH = "/etc/systemd/system/x.service"
SECRET = "sk-not-a-real-one"  # noqa: S105
UNIT = f"""[Unit]
# an old key: {SECRET}
Requires=b.service
[Service]
Type=notify
Environment=HF_TOKEN={SECRET} "B=2 3"
SetCredential=key:{SECRET}
ExecStart=/bin/vllm serve m --api-key {SECRET} --port 8000 --speculative-config '{{"method":"old"}}'
"""


@pytest.fixture
def systemd() -> FakeSystemd:
    return FakeSystemd({PATH: UNIT.encode()})


async def test_secrets_are_neither_kept_nor_shown(systemd: FakeSystemd):
    lifecycle = SystemdLifecycle(systemd, "x.service")
    await lifecycle.restart()
    found = await lifecycle.inspect()
    shown = [
        found.environment,
        found.evidence,
        found.as_run,
        found.warnings,
        lifecycle.diff(found, found.argv[:-2]),
    ]
    assert SECRET not in str(shown)
    assert found.environment == {"HF_TOKEN": "***", "B": "2 3"}
    assert 'Environment=HF_TOKEN=*** "B=2 3"' in found.evidence[PATH]
    assert any("secret" in warning for warning in found.warnings)


async def test_the_diff_shows_one_option_a_line(systemd: FakeSystemd):
    lifecycle = SystemdLifecycle(systemd, "x")
    found = await lifecycle.inspect()
    assert lifecycle.diff(found, (*found.argv[:-1], '{"method":"new"}')).splitlines() == [
        "--- x.service as it is",
        "+++ x.service with /run/systemd/system/x.service.d/zz-breakeven.conf",
        "@@ -1,4 +1,4 @@",
        " ExecStart=/bin/vllm serve m",
        "     --api-key ***",
        "     --port 8000",
        '-    --speculative-config \'{"method":"old"}\'',
        '+    --speculative-config \'{"method":"new"}\'',
    ]
    assert lifecycle.diff(found, found.argv) == ""


async def test_what_to_know_before_a_restart(systemd: FakeSystemd):
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.restart()
    assert [w for w in (await lifecycle.inspect()).warnings if "secret" not in w] == [
        "systemd ends a start of x.service after 1min 30s: raise TimeoutStartSec= if it may take longer"
    ]
    systemd.files[PATH] = b"[Service]\nStandardOutput=null\nExecStart=/bin/vllm serve other\n"
    await systemd.run(lifecycle.manager.reload)
    with pytest.raises(UsageError, match=r"another command line.*systemctl restart x\.service  first"):
        await lifecycle.inspect()
    # A process that has given itself a title does not show its command line.
    systemd.service("x.service").argv = ("VLLM::APIServer",)
    first, second = (await lifecycle.inspect()).warnings
    assert "may run with another command line" in first
    assert "goes nowhere" in second


@pytest.mark.parametrize(
    ("setting", "user", "folder"),
    [
        ("WorkingDirectory=/srv/llm", False, "/srv/llm"),
        ("WorkingDirectory=-/srv/%p", False, "/srv/x"),
        ("WorkingDirectory=%h/llm", True, "/home/llm/llm"),
        ("", False, "/"),
        ("", True, "/home/llm"),
        ("WorkingDirectory=~", False, None),
        ("WorkingDirectory=/srv/%H", False, None),
    ],
)
async def test_the_folder_that_relative_paths_are_of(setting: str, user: bool, folder: str | None):
    path = "/etc/systemd/user/x.service" if user else PATH
    systemd = FakeSystemd({path: f"[Service]\n{setting}\nExecStart=/bin/x\n".encode()}, user=user)
    found = await SystemdLifecycle(systemd, "x", user).inspect()
    assert found.folder == folder
    assert found.path("/etc/x.yaml") == "/etc/x.yaml"
    if folder is not None:
        assert found.path("conf/x.yaml") == f"{folder.rstrip('/')}/conf/x.yaml"
    else:
        with pytest.raises(UsageError, match=r"reads conf/x\.yaml from its working directory"):
            found.path("conf/x.yaml")


async def test_files_that_changed_since_it_was_started(systemd: FakeSystemd):
    """Its environment is read at its start only, and a unit may be read again without a restart."""
    systemd.files |= {
        PATH: b"[Service]\nEnvironmentFile=-/etc/x.env\nExecStart=/bin/x\n",
        "/etc/x.env": b"A=1\n",
    }
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.restart()
    assert (await lifecycle.inspect()).warnings == ()
    systemd.written_s["/etc/x.env"] = int(time.time()) + 60
    (warning,) = (await lifecycle.inspect()).warnings
    assert warning.startswith("/etc/x.env changed since x.service was started")
    await systemd.run(("systemctl", "stop", "x.service"))
    assert (await lifecycle.inspect()).warnings == ()


async def test_environment_files_that_are_not_read(systemd: FakeSystemd):
    systemd.files[PATH] = b"[Service]\nEnvironmentFile=/etc/x.d/*.env\nExecStart=/bin/x --k $K\n"
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.restart()
    systemd.service("x.service").argv = ("/bin/x", "--k", "5")
    first, second = (await lifecycle.inspect()).warnings
    assert "may run with another command line" in first
    assert second == "/etc/x.d/*.env cannot be read here: what x.service has from there is not known"


@pytest.mark.parametrize(
    ("configured", "running", "alike"),
    [
        ("/opt/bin/vllm serve m", "/opt/bin/python3 /opt/bin/vllm serve m", True),
        ("/usr/bin/numactl -m 0 /opt/bin/vllm serve m", "/opt/bin/python3 /opt/bin/vllm serve m", True),
        ("/usr/bin/numactl -m 0 /opt/bin/llama-server -m m", "/opt/bin/llama-server -m m", True),
        ("/opt/bin/vllm serve %H", "/opt/bin/python3 /opt/bin/vllm serve host", True),
        ("/opt/bin/vllm serve m", "/opt/bin/python3 /opt/bin/vllm serve m --k 5", False),
        ("/opt/bin/vllm serve m --k 5", "/opt/bin/python3 /opt/bin/vllm serve m", False),
        ("/opt/bin/llama-server", "/opt/bin/llama-server", True),
        ("/opt/bin/llama-server", "/opt/bin/llama-server --spec-type ngram-simple", False),
        ("/opt/bin/text-generation-launcher", "/opt/bin/text-generation-launcher --speculate 3", False),
        ("/opt/bin/launcher", "/opt/bin/python3 -sP /opt/bin/launcher", True),
        ("/opt/bin/launcher", "/opt/bin/python3 /opt/bin/launcher --speculate 3", False),
        ("/usr/bin/numactl -m 0 /opt/bin/llama-server", "/opt/bin/llama-server", True),
        ("/usr/bin/numactl -m 0 /opt/bin/llama-server", "/opt/bin/llama-server --spec-default", False),
    ],
)
async def test_a_process_that_was_started_otherwise(configured: str, running: str, alike: bool):
    systemd = FakeSystemd({PATH: f"[Service]\nExecStart={configured}\n".encode()})
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.restart()
    systemd.service("x.service").argv = tuple(running.split())
    if alike:
        assert (await lifecycle.inspect()).warnings == ()
    else:
        with pytest.raises(UsageError, match="another command line"):
            await lifecycle.inspect()


async def test_units_that_go_down_with_it(systemd: FakeSystemd):
    systemd.files[PATH] = b"[Service]\nExecStart=/bin/x\n"
    systemd.extra["x.service"] = {
        "RequiredBy": "chat.service",
        "BoundBy": "",
        "ConsistsOf": "b.service a.service",
    }
    found = await SystemdLifecycle(systemd, "x").inspect()
    assert found.warnings == (
        "these are stopped or restarted with x.service, and started again afterwards where they run now: "
        "a.service, b.service, chat.service",
    )


async def test_what_is_started_when_it_fails(systemd: FakeSystemd):
    systemd.files[PATH] = b"[Service]\nExecStart=/bin/x\n"
    systemd.extra["x.service"] = {"OnFailure": "page@x.service mail.service"}
    assert (await SystemdLifecycle(systemd, "x").inspect()).warnings == (
        "systemd starts page@x.service, mail.service when x.service fails, as a candidate may",
    )


@pytest.mark.parametrize(("mode", "ours"), [(0o644, 0o644), (0o600, 0o600), (0o640, 0o600)])
async def test_a_private_command_line_stays_private(systemd: FakeSystemd, mode: int, ours: int):
    systemd.modes[PATH] = mode
    lifecycle = SystemdLifecycle(systemd, "x")
    found = await lifecycle.inspect()
    (write,) = (one for one in lifecycle.change(found, found.argv) if isinstance(one, WriteFile))
    assert write.mode == ours


async def test_a_full_disk_leaves_everything_as_it_was(systemd: FakeSystemd):
    lifecycle = SystemdLifecycle(systemd, "x")
    found, tree = await lifecycle.inspect(), systemd.snapshot()
    operations = lifecycle.change(found, (*found.argv, "--x"))
    systemd.fail_at, systemd.failure = systemd.touches, StorageError("No space left on device")
    with pytest.raises(StorageError):
        for operation in operations:
            await operation.do(systemd)
    for operation in reversed(operations):
        await operation.undo(systemd)
    assert systemd.snapshot() == tree


async def test_rights_are_looked_at_before_anything_is_measured(systemd: FakeSystemd):
    await SystemdLifecycle(systemd, "x").check_rights()
    systemd.uid = 1000
    with pytest.raises(UsageError, match="--sudo"):
        await SystemdLifecycle(systemd, "x").check_rights()
    await SystemdLifecycle(FakeSystemd(user=True, uid=1000), "x", user=True).check_rights()


async def test_a_service_that_systemd_gave_up_on_is_started_again(systemd: FakeSystemd):
    systemd.files[PATH] += b"Restart=always\n"
    broken = [True]
    systemd.program = lambda argv, environment: Ran(exit_code=1 if broken[0] else None)
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.restart()
    assert (await lifecycle.state()).condition == "failed"
    for _ in range(10):
        systemd.advance(1)
    assert "too often" in (await lifecycle.state()).detail
    broken[0] = False
    await lifecycle.restart()
    assert (await lifecycle.state()).condition == "running"


async def test_a_crash_that_systemd_repaired_is_told(systemd: FakeSystemd):
    systemd.files[PATH] += b"Restart=always\n"
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.restart()
    systemd.crash("x.service", Ran(result="oom-kill"))
    assert "for memory" in (await lifecycle.state()).detail
    systemd.advance(1)
    state = await lifecycle.state()
    assert (state.condition, state.detail) == ("failed", "active (running): restarted 1 time by systemd")


async def test_a_crash_while_it_comes_back_is_forgiven_and_a_later_one_is_not(systemd: FakeSystemd):
    systemd.files[PATH] += b"Restart=always\n"
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.restart()
    systemd.crash("x.service", Ran(exit_code=1))
    assert (await lifecycle.returning_state()).condition == "starting"
    systemd.advance(1)
    assert (await lifecycle.returning_state()).condition == "running"
    assert (await lifecycle.state()).condition == "running"
    systemd.crash("x.service", Ran(exit_code=1))
    systemd.advance(1)
    assert (await lifecycle.state()).condition == "failed"


async def test_nothing_is_touched_by_looking(systemd: FakeSystemd):
    tree = systemd.snapshot()
    lifecycle = SystemdLifecycle(systemd, "x")
    found = await lifecycle.inspect()
    lifecycle.change(found, found.argv)
    lifecycle.diff(found, found.argv)
    await lifecycle.state()
    verbs = {argv[1] for argv in systemd.commands if argv[0] == "systemctl"}
    assert verbs == {"show"}
    assert systemd.snapshot() == tree


async def test_after_a_reboot_it_is_known_to_run_as_it_was_found(systemd: FakeSystemd):
    """The drop-in is gone with /run, and the service was started without it: no restart is needed."""
    lifecycle = SystemdLifecycle(systemd, "x")
    found = await lifecycle.inspect()
    before = systemd.snapshot()
    for operation in lifecycle.change(found, (*found.argv, "--k", "5")):
        await operation.do(systemd)
    await lifecycle.restart()
    assert not await lifecycle.runs_as_found()
    systemd.files, systemd.modes = dict(before[0]), dict(before[1])
    await systemd.run(lifecycle.manager.reload)
    assert not await SystemdLifecycle(systemd, "x").runs_as_found()
    await systemd.run(("systemctl", "restart", "x.service"))
    assert await SystemdLifecycle(systemd, "x").runs_as_found()
    await systemd.run(("systemctl", "stop", "x.service"))
    assert not await SystemdLifecycle(systemd, "x").runs_as_found()


async def test_looks_leave_as_much_time_as_the_host_wants(systemd: FakeSystemd):
    systemd.look_s = 12.5
    assert SystemdLifecycle(systemd, "x").look_s == 12.5


async def test_what_its_environment_files_held_when_it_was_started(systemd: FakeSystemd):
    """A secret that changed in one does not show in the variables, whose secrets are hidden."""
    systemd.files |= {
        PATH: b"[Service]\nEnvironmentFile=-/etc/x.env\nEnvironmentFile=/etc/d/*.env\nExecStart=/bin/x\n",
        "/etc/x.env": b"KEY=one\n",
    }
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.restart()
    found = await lifecycle.inspect()
    before = await lifecycle.made_of()
    assert before.keys() == {"environment file /etc/x.env", "environment file /etc/d/*.env"}
    assert before["environment file /etc/d/*.env"] is None
    name = "environment file /etc/x.env"
    assert "KEY" not in str(before) and len(before[name] or "") == 12
    systemd.written_s["/etc/x.env"] = int(time.time()) + 60
    assert (await lifecycle.made_of())[name] == "changed after it was started"
    del systemd.written_s["/etc/x.env"]
    for operation in lifecycle.change(found, ("/bin/x", "--more")):
        await operation.do(systemd)
    systemd.files["/etc/x.env"] = b"KEY=two\n"
    await lifecycle.restart()
    assert (await lifecycle.made_of())[name] not in (before[name], None)
    systemd.files["/etc/x.env"] = b"KEY=one\n"
    assert (await lifecycle.made_of())[name] == before[name]
    del systemd.files["/etc/x.env"]
    assert (await lifecycle.made_of())[name] == "none there"


class WithoutProc(FakeSystemd):
    """Of a machine that has no /proc to be read."""

    def read(self, path: str) -> bytes | None:
        return None if path.startswith("/proc/") else super().read(path)


async def test_without_proc_a_restart_is_still_told_from_the_start_before():
    systemd = WithoutProc(
        {PATH: b"[Service]\nEnvironmentFile=/etc/x.env\nExecStart=/bin/x\n", "/etc/x.env": b""}
    )
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.restart()
    await lifecycle.inspect()
    systemd.advance(5)
    await lifecycle.restart()
    now = await lifecycle.state()
    assert (now.condition, now.since_s) == ("running", None)
    assert await lifecycle.made_of() == {"environment file /etc/x.env": None}
