"""A trial on a service of a small machine in a folder, that really is killed with -9 at one of its steps.

`python -m tests.e2e.killed_trial MACHINE URL [STEP|full]`: the machine has a unit, drop-ins, and what its
supervisor has loaded and runs. Steps are counted before and after each entry of the journal and each touch of
the machine; without STEP nothing is killed, and their number is printed.
`full`: no file of the service fits on the disk.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from breakeven.servers import undo_journal
from breakeven.servers.host import LocalHost
from breakeven.servers.lifecycle import Found, Lifecycle
from breakeven.servers.operation_kinds import RunCommand, WriteFile
from breakeven.servers.operations import Completed
from breakeven.servers.recovery import change, put_back, restart
from breakeven.servers.targets import lifecycle_of
from breakeven.servers.undo_journal import UndoJournal
from breakeven.servers.undo_record import Verification

TARGET = "systemd-user:vllm.service"
RELOAD = ("systemctl", "--user", "daemon-reload")
DROPIN = "vllm.service.d/90-breakeven.conf"


class Steps:
    """Counts, and kills this process at one."""

    def __init__(self, last: int | None) -> None:
        self.last = last
        self.n = 0

    def step(self) -> None:
        if self.n == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.n += 1

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*given: Any) -> Any:
            self.step()
            result = call(*given)
            self.step()
            return result

        return stepped


class KillingHost(LocalHost):
    """This machine, on which every touch is a step."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.is_full = False
        self.write = steps.around(self._write)  # type: ignore[method-assign]
        self.remove = steps.around(super().remove)  # type: ignore[method-assign]

    def _write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Half of it fits where the disk is full."""
        most = resource.getrlimit(resource.RLIMIT_FSIZE)
        if self.is_full:
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(data) // 2, most[1]))
        try:
            super().write(path, data, mode)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, most)

    async def run(
        self,
        argv: tuple[str, ...],
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        hold_stdin: bool = False,
    ) -> Completed:
        self.steps.step()
        done = await super().run(argv, stdin, timeout_s, hold_stdin)
        self.steps.step()
        return done


async def trial(machine: Path, steps: Steps, url: str, is_full: bool) -> None:
    """Baseline as it runs, candidate, and back."""
    host = KillingHost(steps)
    host.is_full = is_full
    lifecycle = lifecycle_of(TARGET, host)
    found = Found(TARGET, ("vllm", "serve", "m"))

    async def verify(verification: Verification, lifecycle: Lifecycle, is_restarted: bool) -> None:
        steps.step()

    with UndoJournal.open("systemd", found, Verification(url, "fake-model")) as journal:
        dropin = WriteFile.on(host, str(machine / "units" / DROPIN), b"ExecStart=with speculation\n", 0o600)
        await change(journal, host, (RunCommand(None, RELOAD), dropin, RunCommand(RELOAD)))
        await restart(journal, lifecycle)
        await put_back(journal, host, lifecycle, verify)


def main() -> None:
    machine, url, last = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    is_full = last == ["full"]
    steps = Steps(int(last[0]) if last and not is_full else None)
    undo_journal._write = steps.around(undo_journal._write)
    asyncio.run(trial(machine, steps, url, is_full))
    print(steps.n)


if __name__ == "__main__":
    main()
