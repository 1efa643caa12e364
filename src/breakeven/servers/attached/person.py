"""Person: whoever restarts an attached server, as the tool talks to them."""

from __future__ import annotations

import asyncio
import sys
from typing import Protocol

from breakeven.errors import UsageError


class Person(Protocol):
    """The seam to the one at the terminal."""

    def tell(self, text: str) -> None:
        """Show some lines."""

    async def confirm(self, question: str) -> bool:
        """Ask yes or no. Raises UsageError where nobody can answer."""


class Terminal:
    """Tells on stderr and asks on stdin."""

    def tell(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    async def confirm(self, question: str) -> bool:
        if not sys.stdin.isatty():
            raise UsageError(f"nobody can be asked here ({question}): run it in a terminal")
        self.tell(f"{question} [y/n]")
        answer = await asyncio.to_thread(sys.stdin.readline)
        return answer.strip().lower() in ("y", "yes")
