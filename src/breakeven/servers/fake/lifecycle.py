"""FakeLifecycle: a server whose states and log lines are told by a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import ClassVar

from breakeven.servers.lifecycle import Found, Kind, Lifecycle, State
from breakeven.servers.operations import Operation

LOOK_S = 0.005


class FakeLifecycle(Lifecycle):
    """`now` is its state, `lines` its log, which may grow; both as they are when looked at."""

    kind: ClassVar[Kind] = "systemd"
    look_s: float = LOOK_S

    def __init__(self, now: State | None = None, lines: list[str] | None = None) -> None:
        self.now = now or State("running", since_s=0.0)
        self.lines = lines or []
        self.restarts = 0

    async def inspect(self) -> Found:
        return Found("fake:server", ("serve",))

    def change(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        return ()

    def diff(self, found: Found, argv: tuple[str, ...]) -> str:
        return ""

    async def restart(self) -> None:
        self.restarts += 1

    async def state(self) -> State:
        return self.now

    async def logs(self) -> AsyncIterator[str]:
        given = 0
        while True:
            while given < len(self.lines):
                given += 1
                yield self.lines[given - 1]
            if self.now.condition in ("stopped", "failed"):
                return
            await asyncio.sleep(LOOK_S)
