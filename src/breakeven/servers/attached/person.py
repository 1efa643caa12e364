"""Person: whoever restarts an attached server, as the tool talks to them."""

from __future__ import annotations

import asyncio
import select
import sys
from typing import Protocol

from breakeven.errors import UsageError

LOOK_S = 0.2


class Person(Protocol):
    """The seam to the one at the terminal."""

    def check(self) -> None:
        """Raises UsageError where nobody can be asked."""

    def tell(self, text: str) -> None:
        """Show some lines."""

    async def confirm(self, question: str) -> bool:
        """Ask yes or no. Raises UsageError where nobody can be asked."""


class Terminal:
    """Tells on stderr and asks on stdin."""

    def check(self) -> None:
        if not sys.stdin.isatty():
            raise UsageError("nobody can be asked here to restart the server: run it in a terminal")

    def tell(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    async def confirm(self, question: str) -> bool:
        """In no thread: one that waits for a line cannot be stopped, and would take the next one's answer."""
        self.check()
        self.tell(f"{question} [y/n]")
        while not select.select([sys.stdin], [], [], 0)[0]:  # noqa: ASYNC110  a terminal tells no event
            await asyncio.sleep(LOOK_S)
        return sys.stdin.readline().strip().lower() in ("y", "yes")
