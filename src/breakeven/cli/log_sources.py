"""Where a log is, and its bytes: a file, standard input, or what journalctl, docker and kubectl keep.

No shell sees a name, sudo is never added, and memory does not grow with the log.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Protocol

from breakeven.errors import BreakevenError, ServerError, UsageError
from breakeven.secrets import masked_text
from breakeven.servers.docker.client import DOCKER
from breakeven.servers.host import environment
from breakeven.servers.kubernetes.client import KUBECTL
from breakeven.servers.systemd import logs as journal
from breakeven.servers.systemd.unit_name import UnitName

STDIN = Path("-")
CHUNK_BYTES = 64 * 1024
LONGEST_ENTRY_BYTES = 16 * 1024 * 1024
"""Of the journal, as JSON; a longer one is left out."""
SAID_CHARACTERS = 400
"""Of what a failed command said, its end."""
GZIP = b"\x1f\x8b"
MOST_NULS = 64 * 1024 * 1024
"""That a rotated log may begin with."""
PIPE = "breakeven diagnose --logs -"


class Log(Protocol):
    """One place."""

    def describe(self) -> str:
        """What it is, in words."""

    def read(self) -> Generator[bytes]:
        """Its bytes, in pieces of any size; to be closed where it is not read to its end. Raises UsageError
        or ServerError, which say what to type."""


@dataclass(frozen=True, slots=True)
class FileLog:
    """A file, also one that gzip wrote; `-` is standard input."""

    path: Path

    def describe(self) -> str:
        return "standard input" if self.path == STDIN else str(self.path)

    def read(self) -> Generator[bytes]:
        try:
            with self._open() as stream:
                yield from _of_a_log(_unpacked(stream), self.describe())
        except (OSError, EOFError, ValueError, zlib.error) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(
                f"{self.describe()} cannot be read ({why}): name a log, or - for a pipe"
            ) from error

    def _open(self) -> contextlib.AbstractContextManager[Any]:
        if self.path != STDIN:
            return self.path.open("rb")
        if sys.stdin is None:
            raise UsageError("standard input is closed: name a file with --logs")
        return contextlib.nullcontext(sys.stdin.buffer)


@dataclass(frozen=True, slots=True)
class JournalLog:
    """The journal of a systemd unit, all starts of it unless `since` says otherwise."""

    unit: UnitName
    user: bool = False
    since: datetime | None = None

    def describe(self) -> str:
        return f"journal of {self.unit.full}"

    def read(self) -> Generator[bytes]:
        """Messages, one a line. The journal gives those with a colour or another control character as lists
        of bytes; what is no entry, such as a hint, is left out."""
        since = () if self.since is None else (f"--since=@{int(self.since.timestamp())}",)
        argv = (*journal.entries_argv(self.unit.full, self.user), "--no-pager", *since)
        found = False
        with _running(argv, self._advice) as command:
            for entry in iter(lambda: command.said.readline(LONGEST_ENTRY_BYTES), b""):
                text = journal.message(entry.decode("utf-8", "replace"), 0)
                if text is not None:
                    found = True
                    yield text.encode("utf-8", "replace") + b"\n"
            hints = command.end()
        if not found:
            raise UsageError(self._nothing(hints))

    def _nothing(self, hints: str) -> str:
        when = f" since {self.since:%Y-%m-%d %H:%M} UTC" if self.since else ""
        if "not seeing messages" in hints or "ermission" in hints:
            return f"the journal shows you no entry of {self.unit.full}: {self._with_rights()}"
        manager = "systemctl --user" if self.user else "systemctl"
        return (
            f"the journal has no entry of {self.unit.full}{when}: type  {manager} list-units --type=service  "
            "for its name; where it logs to a file, --logs FILE"
        )

    def _with_rights(self) -> str:
        words = journal.entries_argv(self.unit.full, self.user)
        command = shlex.join("--output=cat" if word == "--output=json" else word for word in words)
        return f"type  sudo {command} | {PIPE}  or join the group systemd-journal"

    def _advice(self, said: str) -> BreakevenError:
        if "ermission" in said:
            return UsageError(f"journalctl: {said}: {self._with_rights()}")
        return ServerError(f"journalctl: {said}")


@dataclass(frozen=True, slots=True)
class DockerLog:
    """Of a container: what it wrote on both streams."""

    container: str
    since: datetime | None = None

    def describe(self) -> str:
        return f"log of container {self.container}"

    def read(self) -> Generator[bytes]:
        since = () if self.since is None else ("--since", str(int(self.since.timestamp())))
        argv = (DOCKER, "logs", *since, "--", self.container)
        with _running(argv, self._advice, both=True) as command:
            yield from command.pieces()
            command.end()

    def _advice(self, said: str) -> BreakevenError:
        low = said.lower()
        if "no such container" in low:
            return UsageError(f"there is no container {self.container}: type  docker ps --all  for its name")
        if "permission denied" in low:
            return UsageError(
                f"docker: {said}: type  sudo docker logs {shlex.quote(self.container)} 2>&1 | {PIPE}  or "
                "join the group docker"
            )
        if "does not support reading" in low:
            return UsageError(f"docker: {said}: its log is kept elsewhere: save it, and type --logs FILE")
        return ServerError(f"docker: {said}")


@dataclass(frozen=True, slots=True)
class PodLog:
    """Of a pod, or of what has one, such as deployment/vllm."""

    pod: str
    namespace: str | None = None
    container: str | None = None
    since: datetime | None = None

    def describe(self) -> str:
        return f"log of pod {self.pod}"

    def read(self) -> Generator[bytes]:
        with _running(self._argv(), self._advice) as command:
            yield from command.pieces()
            command.end()

    def _argv(self) -> tuple[str, ...]:
        named = {"namespace": self.namespace, "container": self.container}
        words = [f"--{name}={value}" for name, value in named.items() if value is not None]
        if self.since is not None:
            words.append(f"--since-time={self.since:%Y-%m-%dT%H:%M:%SZ}")
        return (KUBECTL, "logs", *words, "--", self.pod)

    def _advice(self, said: str) -> BreakevenError:
        where = f" --namespace {shlex.quote(self.namespace)}" if self.namespace else ""
        if "(NotFound)" in said:
            return UsageError(f"kubectl: {said}: type  kubectl get pods{where or ' --all-namespaces'}")
        if "(Forbidden)" in said:
            return UsageError(f"kubectl: {said}: ask for the right to  get pods/log  there")
        if "container name must be specified" in said or "choose one of" in said:
            return UsageError(f"kubectl: {said}: type --container NAME too")
        return ServerError(f"kubectl: {said}")


class _Advise(Protocol):
    def __call__(self, said: str) -> BreakevenError:
        """The error for a command that failed, with what it said."""


class _Command:
    """A command that prints a log."""

    def __init__(self, argv: Sequence[str], advise: _Advise, both: bool, hints: IO[bytes]) -> None:
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
        for piece in _pieces(self.said):
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
def _running(argv: Sequence[str], advise: _Advise, both: bool = False) -> Iterator[_Command]:
    """In a process group of its own. `both` takes its two streams for the log."""
    with tempfile.TemporaryFile() as hints:
        command = _Command(argv, advise, both, hints)
        try:
            yield command
        finally:
            command.kill()


def _pieces(stream: Any) -> Iterator[bytes]:
    while piece := stream.read1(CHUNK_BYTES):
        yield piece


class _Begun:
    """A stream of which the first bytes were read already: a pipe cannot go back."""

    def __init__(self, first: bytes, stream: Any) -> None:
        self._first, self._stream = first, stream

    def read(self, size: int) -> bytes:
        first, self._first = self._first[:size], self._first[size:]
        data: bytes = first or self._stream.read(size)
        return data


def _unpacked(stream: Any) -> Iterator[bytes]:
    """Its pieces, without the compression of gzip."""
    first = stream.read1(CHUNK_BYTES)
    if first.startswith(GZIP):
        begun: Any = _Begun(first, stream)
        yield from _pieces(gzip.GzipFile(fileobj=begun))
        return
    yield first
    yield from _pieces(stream)


def _of_a_log(pieces: Iterator[bytes], where: str) -> Iterator[bytes]:
    """The pieces. Raises UsageError where they begin as a page of /metrics does, or hold nothing but NULs."""
    nuls, is_first = 0, True
    for piece in pieces:
        if is_first and piece.lstrip(b"\0\r\n\t ").startswith((b"# HELP ", b"# TYPE ")):
            raise UsageError(
                f"{where} is a page of /metrics, and no log: type  --url http://HOST:PORT  to have it read "
                "twice, and --logs with what the server prints"
            )
        is_only_nuls = nuls >= 0 and not piece.strip(b"\0")
        nuls = nuls + len(piece) if is_only_nuls else -1
        if nuls > MOST_NULS:
            break
        is_first = is_first and is_only_nuls
        yield piece
    if nuls > 0:
        raise UsageError(f"{where} holds nothing but NUL bytes: name the log of the server")
