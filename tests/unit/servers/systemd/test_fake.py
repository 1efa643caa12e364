"""The fake systemd, where breakeven relies on it; tests/e2e/test_systemd_real.py has the real one."""

from __future__ import annotations

import pytest

from breakeven.errors import ServerError
from breakeven.servers.fake.systemctl import START_LIMIT, FakeSystemd, Ran

PATH = "/etc/systemd/system/x.service"


async def said(systemd: FakeSystemd, *words: str) -> str:
    done = await systemd.run(("systemctl", *words))
    assert done.returncode == 0, done
    return done.stdout


async def test_files_count_once_they_are_read():
    systemd = FakeSystemd({PATH: b"[Service]\nExecStart=/bin/old\n"})
    await said(systemd, "start", "--", "x.service")
    systemd.write(PATH, b"[Service]\nExecStart=/bin/new\n")
    assert "yes" in await said(systemd, "show", "--property=NeedDaemonReload", "--", "x.service")
    await said(systemd, "restart", "--", "x.service")
    assert systemd.service("x.service").argv == ("/bin/old",)
    await said(systemd, "daemon-reload")
    assert "no" in await said(systemd, "show", "--property=NeedDaemonReload", "--", "x.service")
    await said(systemd, "restart", "--", "x.service")
    assert systemd.service("x.service").argv == ("/bin/new",)


async def test_a_first_drop_in_goes_unnoticed():
    systemd = FakeSystemd({PATH: b"[Service]\nExecStart=/bin/x\n"})
    await said(systemd, "start", "--", "x.service")
    systemd.write(f"{PATH}.d/a.conf", b"[Service]\nEnvironment=A=1\n")
    assert "no" in await said(systemd, "show", "--property=NeedDaemonReload", "--", "x.service")
    await said(systemd, "daemon-reload")
    systemd.write(f"{PATH}.d/b.conf", b"")
    assert "yes" in await said(systemd, "show", "--property=NeedDaemonReload", "--", "x.service")


async def test_a_crashing_service_is_restarted_until_that_is_too_often():
    unit = b"[Service]\nRestart=on-failure\nExecStart=/bin/x\n"
    systemd = FakeSystemd({PATH: unit}, lambda argv, environment: Ran(exit_code=7))
    await said(systemd, "start", "--", "x.service")
    service = systemd.service("x.service")
    assert (service.sub, service.result) == ("auto-restart", "exit-code")
    for _ in range(START_LIMIT):
        systemd.advance(1)
    assert (service.active, service.result) == ("failed", "start-limit-hit")
    systemd.program = lambda argv, environment: Ran()
    await said(systemd, "restart", "--", "x.service")
    assert service.active == "failed"
    await said(systemd, "reset-failed", "--", "x.service")
    await said(systemd, "restart", "--", "x.service")
    assert service.active == "active"


async def test_what_it_cannot_do():
    systemd = FakeSystemd({PATH: b""})
    assert "not loaded" in (await systemd.run(("systemctl", "stop", "--", "y.service"))).stderr
    assert "masked" in (await systemd.run(("systemctl", "start", "--", "x.service"))).stderr
    assert "Unknown command" in (await systemd.run(("systemctl", "fly"))).stderr
    with pytest.raises(ServerError, match="vllm"):
        await systemd.run(("vllm",))
