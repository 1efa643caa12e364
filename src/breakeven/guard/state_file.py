"""StateFile: what the guard has learned of all requests, kept across restarts of the server."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from multiprocessing.util import Finalize
from pathlib import Path

from breakeven.trace.files import write_bytes_atomically

FIRST_S, EVERY_S = 5.0, 60.0
"""vLLM kills by default: a server that lives for less than EVERY_S is to leave something too."""


class StateFile:
    """Written FIRST_S seconds after the first step, then at most every EVERY_S, in a thread of its own, and
    when the process ends.

    A failure to write costs no step, and is tried again. It is told, but not again while it stays the same.
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
        self._since: float | None = None
        self._wait_s = FIRST_S
        self._writer: threading.Thread | None = None
        self._told: str | None = None
        self._at_end = Finalize(None, self.write, exitpriority=0)

    def step(self) -> None:
        """To be called often once there is something to keep: writes if it is due. The state is made at once,
        in the caller's thread.
        """
        now = self._clock()
        if self._since is None:
            self._since = now
        if abs(now - self._since) < self._wait_s or (self._writer is not None and self._writer.is_alive()):
            return
        self._since, self._wait_s = now, EVERY_S
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
        else:
            self._told = None

    def _tell(self, error: Exception) -> None:
        why = _reason(self._file, error)
        if why != self._told:
            self._told = why
            self._failed(f"{self._file} cannot be written ({why})")


def _reason(file: Path, error: Exception) -> str:
    if isinstance(error, FileNotFoundError) and not (folder := file.resolve().parent).is_dir():
        return f"its folder does not exist: type  mkdir -p {shlex.quote(str(folder))}"
    return str(getattr(error, "strerror", None) or error)
