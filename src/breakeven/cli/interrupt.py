"""Ctrl-C that ends the reading of what may have no end, and not the command: what was read is reported."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""Exit code: what a shell reports for a program ended by Ctrl-C."""


class Interrupt:
    """The first Ctrl-C ends `until`; a second one ends the command."""

    def __init__(self) -> None:
        self.came = False
        self._waits = False

    def until(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The pieces that come before it. It breaks in only while one is waited for: whoever takes the pieces
        is never left with one half done."""
        while not self.came:
            try:
                self._waits = True
                piece = next(pieces, None)
                self._waits = False
            except KeyboardInterrupt:
                return
            if piece is None:
                return
            yield piece

    def come(self, _signum: int, _frame: FrameType | None) -> None:
        """The signal's handler."""
        again, self.came = self.came, True
        if again or self._waits:
            raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Has Ctrl-C come to it. For the main thread."""
    interrupt = Interrupt()
    before = signal.signal(signal.SIGINT, interrupt.come)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
