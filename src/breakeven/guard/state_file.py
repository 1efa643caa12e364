"""StateFile: what the guard has learned of all requests, kept across restarts of the server."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from pathlib import Path

from breakeven.trace.files import write_bytes_atomically

EVERY_S = 60.0


class StateFile:
    """Written at most every EVERY_S seconds, in a thread of its own, and when the process ends.

    A failure to write costs no step: it is told once, and tried again.
    """

    def __init__(
        self,
        file: Path,
        state: Callable[[], bytes],
        clock: Callable[[], float],
        failed: Callable[[str], None],
    ) -> None:
        """`state` makes the file's content, and `failed` is told why it cannot be written."""
        self._file, self._state, self._clock, self._failed = file, state, clock, failed
        self._due = clock() + EVERY_S
        self._writer: threading.Thread | None = None
        self._told = False
        atexit.register(self.write)

    def step(self) -> None:
        """To be called often: writes if it is due. The state is made at once, in the caller's thread."""
        now = self._clock()
        if now < self._due or (self._writer is not None and self._writer.is_alive()):
            return
        self._due = now + EVERY_S
        self._writer = threading.Thread(target=self._write, args=(self._state(),), daemon=True)
        self._writer.start()

    def write(self) -> None:
        """Now."""
        if self._writer is not None:
            self._writer.join(timeout=EVERY_S)
        self._write(self._state())

    def close(self) -> None:
        """It is not to be written when the process ends."""
        atexit.unregister(self.write)

    def _write(self, content: bytes) -> None:
        try:
            write_bytes_atomically(self._file, content)
        except OSError as error:
            if not self._told:
                self._told = True
                self._failed(f"{self._file} cannot be written ({error.strerror or error})")
