"""StateFile: what the guard has learned of all requests, kept across restarts of the server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from multiprocessing.util import Finalize
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
        """`state` makes the file's content, and `failed` is told why it cannot be written.

        The end is that of multiprocessing, as vLLM's engine is a child of its server: one that was forked
        does not come to the functions of atexit.
        """
        self._file, self._state, self._clock, self._failed = file, state, clock, failed
        self._begun_at = clock()
        self._writer: threading.Thread | None = None
        self._told = False
        self._at_end = Finalize(None, self.write, exitpriority=0)

    def step(self) -> None:
        """To be called often: writes if it is due. The state is made at once, in the caller's thread."""
        now = self._clock()
        if abs(now - self._begun_at) < EVERY_S or (self._writer is not None and self._writer.is_alive()):
            return
        self._begun_at = now
        writer = threading.Thread(target=self._write, args=(self._state(),), daemon=True)
        try:
            writer.start()
        except RuntimeError as error:  # the system has no thread to spare
            self._tell(error)
        else:
            self._writer = writer

    def write(self) -> None:
        """Now."""
        if self._writer is not None:
            self._writer.join(timeout=EVERY_S)
        self._write(self._state())

    def close(self) -> None:
        """It is not to be written when the process ends."""
        self._at_end.cancel()

    def _write(self, content: bytes) -> None:
        try:
            write_bytes_atomically(self._file, content)
        except (OSError, ValueError, RuntimeError) as error:
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        if not self._told:
            self._told = True
            self._failed(f"{self._file} cannot be written ({getattr(error, 'strerror', None) or error})")
