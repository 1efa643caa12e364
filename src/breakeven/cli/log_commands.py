"""Commands that print a log: in a process group of their own, ended where nobody reads on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Protocol

from breakeven.cli.log_bytes import CHUNK_BYTES, pieces
from breakeven.errors import BreakevenError, ServerError, UsageError
from breakeven.secrets import masked_text
from breakeven.servers.host import environment

SAID_CHARACTERS = 400
"""Of what a failed command said, its end."""
PIPE = "breakeven diagnose --logs -"


class Advise(Protocol):
    def __call__(self, said: str) -> BreakevenError:
        """The error for a command that failed, with what it said."""


class Command:
    """One that runs."""

    def __init__(self, argv: Sequence[str], advise: Advise, both: bool, hints: IO[bytes]) -> None:
        self._argv, self._advise, self._both, self._hints = argv, advise, both, hints
        self._tail = b""
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if both else hints,
                env=environment(),
                process_group=0,
            )
        except FileNotFoundError:
            raise UsageError(
                f"{argv[0]} is not installed here, or not in PATH: run this where it is, or send the log "
                f"through a pipe:  … | {PIPE}"
            ) from None
        except OSError as error:
            raise ServerError(f"{argv[0]} cannot be started: {error.strerror}") from error

    @property
    def said(self) -> IO[bytes]:
        assert self._process.stdout is not None  # noqa: S101  a pipe was asked for
        return self._process.stdout

    def pieces(self) -> Iterator[bytes]:
        for piece in pieces(self.said):
            self._tail = (self._tail + piece)[-4 * SAID_CHARACTERS :]
            yield piece

    def end(self) -> str:
        """What it said on its second stream. Raises what `advise` makes of a status that is not 0."""
        status = self._process.wait()
        self._hints.seek(0)
        hints = self._tail if self._both else self._hints.read(CHUNK_BYTES)
        said = masked_text(" ".join(hints.decode("utf-8", "replace").split()))[-SAID_CHARACTERS:]
        if status:
            raise self._advise(said or f"it ended with status {status} and said nothing")
        return said

    def kill(self) -> None:
        """It and what it started, where it still runs."""
        self.said.close()
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextlib.contextmanager
def running(argv: Sequence[str], advise: Advise, both: bool = False) -> Iterator[Command]:
    """`both` takes its two streams for the log. Raises UsageError where it is not installed."""
    with tempfile.TemporaryFile() as hints:
        command = Command(argv, advise, both, hints)
        try:
            yield command
        finally:
            command.kill()
