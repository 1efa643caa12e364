"""What a human sees of a unit, and what of it is kept."""

from __future__ import annotations

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
    first, second = (await lifecycle.inspect()).warnings
    assert "runs with another command line" in first
    assert "goes nowhere" in second


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
    ],
)
async def test_a_process_that_was_started_otherwise(configured: str, running: str, alike: bool):
    systemd = FakeSystemd({PATH: f"[Service]\nExecStart={configured}\n".encode()})
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.restart()
    systemd.service("x.service").argv = tuple(running.split())
    assert (await lifecycle.inspect()).warnings == () if alike else (await lifecycle.inspect()).warnings


async def test_units_that_go_down_with_it(systemd: FakeSystemd):
    systemd.files[PATH] = b"[Service]\nExecStart=/bin/x\n"
    systemd.extra["x.service"] = {
        "RequiredBy": "chat.service",
        "BoundBy": "",
        "ConsistsOf": "b.service a.service",
    }
    found = await SystemdLifecycle(systemd, "x").inspect()
    assert found.warnings == (
        "these are stopped or restarted with x.service: a.service, b.service, chat.service",
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
