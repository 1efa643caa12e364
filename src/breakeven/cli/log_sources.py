"""Where a log is, and its bytes: a file, standard input, or what journalctl, docker and kubectl keep.

No shell sees a name, sudo is never added, and memory does not grow with the log.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
import zlib
from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from breakeven.cli.log_bytes import bytes_of
from breakeven.cli.log_commands import PIPE, running
from breakeven.errors import BreakevenError, ServerError, UsageError
from breakeven.servers.docker.client import DOCKER
from breakeven.servers.kubernetes.client import KUBECTL
from breakeven.servers.systemd import logs as journal
from breakeven.servers.systemd.unit_name import UnitName

STDIN = Path("-")
LONGEST_ENTRY_BYTES = 16 * 1024 * 1024
"""Of the journal, as JSON; a longer one is left out."""


class Log(Protocol):
    """One place."""

    def describe(self) -> str:
        """What it is, in words."""

    def word(self) -> str | None:
        """What a command such as grep is given to read it, in bash; None where it cannot be read again."""

    def read(self) -> Generator[bytes]:
        """Its bytes, in pieces of any size; to be closed where it is not read to its end. Raises UsageError
        or ServerError, which say what to type."""


@dataclass(frozen=True, slots=True)
class FileLog:
    """A file, also one that gzip wrote; `-` is standard input."""

    path: Path

    def describe(self) -> str:
        return "standard input" if self.path == STDIN else str(self.path)

    def word(self) -> str | None:
        if self.path == STDIN:
            return None
        name = shlex.quote(f"./{self.path}" if str(self.path).startswith("-") else str(self.path))
        return f"<(zcat {name})" if self.path.suffix == ".gz" else name

    def read(self) -> Generator[bytes]:
        try:
            with self._open() as stream:
                yield from bytes_of(stream, self.describe())
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

    def word(self) -> str | None:
        return f"<({self._as_text(*self._since())})"

    def read(self) -> Generator[bytes]:
        """Messages, one a line. The journal gives those with a colour or another control character as lists
        of bytes; what is no entry, such as a hint, is left out."""
        argv = (*journal.entries_argv(self.unit.full, self.user), "--no-pager", *self._since())
        found = False
        with running(argv, self._advice) as command:
            for entry in iter(lambda: command.said.readline(LONGEST_ENTRY_BYTES), b""):
                text = journal.message(entry.decode("utf-8", "replace"), 0)
                if text is not None:
                    found = True
                    yield text.encode("utf-8", "replace") + b"\n"
            hints = command.end()
        if not found:
            raise UsageError(self._nothing(hints))

    def _since(self) -> tuple[str, ...]:
        return () if self.since is None else (f"--since=@{int(self.since.timestamp())}",)

    def _nothing(self, hints: str) -> str:
        when = f" since {self.since:%Y-%m-%d %H:%M} UTC" if self.since else ""
        if "not seeing messages" in hints or "ermission" in hints:
            return f"the journal shows you no entry of {self.unit.full}: {self._with_rights()}"
        manager = "systemctl --user" if self.user else "systemctl"
        return (
            f"the journal has no entry of {self.unit.full}{when}: type  {manager} list-units --type=service  "
            "for its name; where it logs to a file, --logs FILE"
        )

    def _as_text(self, *more: str) -> str:
        words = journal.entries_argv(self.unit.full, self.user)
        plain = ("--output=cat" if word == "--output=json" else word for word in words)
        return shlex.join((*plain, *more))

    def _with_rights(self) -> str:
        return f"type  sudo {self._as_text()} | {PIPE}  or join the group systemd-journal"

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

    def word(self) -> str | None:
        return f"<({shlex.join(self._argv())} 2>&1)"

    def read(self) -> Generator[bytes]:
        with running(self._argv(), self._advice, both=True) as command:
            yield from command.pieces()
            command.end()

    def _argv(self) -> tuple[str, ...]:
        since = () if self.since is None else ("--since", str(int(self.since.timestamp())))
        return (DOCKER, "logs", *since, "--", self.container)

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

    def word(self) -> str | None:
        return f"<({shlex.join(self._argv())})"

    def read(self) -> Generator[bytes]:
        with running(self._argv(), self._advice) as command:
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
