"""kill -9 at every step of a trial of a service of a real systemd: files and process are as they were."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from breakeven.servers.fake import FakeServer
from breakeven.servers.systemd import SystemdLifecycle
from tests.e2e import fault_child
from tests.e2e.fault_child import Task
from tests.e2e.fault_sites import QUICK
from tests.e2e.systemd_namespace import NamespaceHost, running_systemd, why_not
from tests.e2e.test_faults import ended

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_not() is not None, reason=f"no systemd can be started: {why_not()}"),
]

UNITS = ("/etc/systemd/system", "/usr/lib/systemd/system", "/run/systemd/system")
TARGET = "systemd:engine.service"
VLLM = f"{sys.executable} -I -S /run/server/vllm serve m --port 8000"
SERVES = "import time\nprint('INFO: Application startup complete.', flush=True)\ntime.sleep(3600)\n"
"""The URL that is asked is another server's, which answers all along: the journal alone shows a restart."""
FILES = {
    "/run/server/vllm": SERVES,
    "/etc/systemd/system/engine.service": f"[Service]\nExecStart={VLLM}\nRestart=always\nRestartSec=20ms\n",
    "/etc/systemd/system/engine.service.d/10-tuned.conf": "[Service]\nEnvironment=NCCL_ALGO=Tree\n",
}


class Engine:
    """The one service of it."""

    def __init__(self, host: NamespaceHost, url: str) -> None:
        self.host = host
        self.url = url

    def state(self) -> tuple[dict[str, bytes | None], str, bytes | None]:
        """All files of units, whether it is up, and what its process runs."""
        said = asyncio.run(self.host.run(("systemctl", "show", "--property=ActiveState,MainPID", "engine")))
        properties = dict(line.split("=") for line in said.stdout.split())
        running = self.host.read(f"/proc/{properties['MainPID']}/cmdline")
        return self.host.tree(*UNITS), properties["ActiveState"], running

    def restart(self) -> None:
        asyncio.run(SystemdLifecycle(self.host, "engine.service").restart())

    def task(self, folder: Path) -> Task:
        return Task(TARGET, None, "fine", str(self.host.pid), self.url, str(folder / "state"))


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_systemd(FILES) as host, FakeServer(QUICK).in_thread() as server:
        one = Engine(host, server.url)
        one.restart()
        while one.state()[1] != "active":
            pass
        yield one


def test_killed_at_every_step_a_real_service_comes_back(engine: Engine):
    before = engine.state()
    assert before[2] is not None and b"--speculative-config" not in before[2]
    with tempfile.TemporaryDirectory() as name:
        code, steps, error = ended(fault_child.trial, engine.task(Path(name)))
        assert (code, error) == (0, None)
        assert engine.state() == before
    changed = [killed(engine, step, before) for step in range(len(steps))]
    assert sum(changed) > len(steps) / 3


def killed(engine: Engine, step: int, before: object) -> bool:
    """Whether the kill left anything to put back."""
    with tempfile.TemporaryDirectory() as name:
        task = engine.task(Path(name))
        assert ended(fault_child.trial, replace(task, kill_at=step))[0] == -9
        left = engine.state()
        code, _, _ = ended(fault_child.recover, task)
        assert code == 0, (step, Path(name, "recover.err").read_text())
        assert engine.state() == before, step
        assert not list(Path(task.state).glob("breakeven/journals/*.jsonl")), step
        return left != before
