"""Ctrl-C, taken note of so that a training ends after its optimizer step, with a checkpoint."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ONE_WISH_S = 3.0
"""torchrun passes on a Ctrl-C that its processes have heard of already: what comes so soon is no second."""


class Interrupts:
    """Whether somebody asked to end."""

    def __init__(self) -> None:
        self._first_s: float | None = None

    @property
    def asked(self) -> bool:
        return self._first_s is not None

    def heed(self, signum: int, frame: FrameType | None) -> None:
        """The second time in earnest, it raises KeyboardInterrupt at once."""
        now_s = time.monotonic()
        if self._first_s is None:
            self._first_s = now_s
        elif now_s - self._first_s > ONE_WISH_S:
            raise KeyboardInterrupt


@contextmanager
def heeded() -> Iterator[Interrupts]:
    """Stands in for what SIGINT does meanwhile; in a thread that hears no signals, nobody asks."""
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = signal.signal(signal.SIGINT, interrupts.heed)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
