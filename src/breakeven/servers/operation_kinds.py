"""The kinds of operation: a file written, a command run."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar

from breakeven.errors import ServerError, UsageError
from breakeven.secrets import masked_argv, shown_argv
from breakeven.servers.operations import Completed, Host, Operation

COMMAND_TIMEOUT_S = 60.0
SAID_CHARACTERS = 400
"""Of what a failed command said, its end."""


@dataclass(frozen=True, slots=True)
class WriteFile:
    """A file of ours beside the originals; undone, what was there before is there again, byte for byte.

    The journal keeps what its undo needs: what was there before, and of our own text a fingerprint, by which
    it is told from somebody else's. What we write may hold a secret, as the command line does.
    """

    op: ClassVar[str] = "write_file"

    path: str
    data: bytes | None
    """None: read from a journal, fit to be undone only."""
    mode: int = 0o644
    before: bytes | None = None
    """What it held; None where there was no file."""
    before_mode: int | None = None
    folders: tuple[str, ...] = ()
    """Folders that were not there, the outermost first."""
    kept_sha256: str = ""
    """Of the data, where a journal told it."""

    @classmethod
    def on(cls, host: Host, path: str, data: bytes, mode: int = 0o644) -> WriteFile:
        """The operation, with what there is now; touches nothing. Raises ServerError."""
        return cls(path, data, mode, host.read(path), host.mode(path), host.missing_folders(path))

    @property
    def sha256(self) -> str:
        """Of the data."""
        return self.kept_sha256 if self.data is None else _sha256(self.data)

    def describe(self) -> str:
        return f"{'write' if self.before is None else 'replace'} {self.path}"

    def describe_undo(self) -> str:
        return f"remove {self.path}" if self.before is None else f"put {self.path} back as it was"

    async def do(self, host: Host) -> None:
        """Raises ServerError where somebody else changed the file since it was looked at."""
        if self.data is None:
            raise ServerError(
                f"what {self.path} is to hold is not kept in the journal: it can only be undone"
            )
        if not self._is_ours_or_before(host.read(self.path)):
            raise ServerError(f"{self.path} was changed by somebody else just now: look at it, and try again")
        host.write(self.path, self.data, self.mode)

    async def undo(self, host: Host) -> None:
        """Raises UsageError where the file holds what somebody else wrote."""
        if not self._is_ours_or_before(host.read(self.path)):
            raise UsageError(
                f"{self.path} was changed by somebody else since: move it away and, if there was one before, "
                "put that back; then type  breakeven recover"
            )
        if self.before is None:
            host.remove(self.path, self.folders)
        else:
            host.write(self.path, self.before, self.mode if self.before_mode is None else self.before_mode)

    def _is_ours_or_before(self, now: bytes | None) -> bool:
        return now == self.before or (now is not None and _sha256(now) == self.sha256)

    def to_json(self) -> dict[str, Any]:
        before = None if self.before is None else {"mode": self.before_mode, **_encode(self.before)}
        return {
            "op": self.op,
            "path": self.path,
            "sha256": self.sha256,
            "before": before,
            "folders": list(self.folders),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> WriteFile:
        """Fit to be undone only."""
        before = value["before"]
        return cls(
            value["path"],
            None,
            before=None if before is None else _decode(before),
            before_mode=None if before is None else before["mode"],
            folders=tuple(value["folders"]),
            kept_sha256=value["sha256"],
        )


@dataclass(frozen=True, slots=True)
class RunCommand:
    """A command, and the one that undoes it; either may be None: nothing to do in that direction.

    Undo commands run when it was never done, and twice: those which fail then need `nothing_to_undo`.
    """

    op: ClassVar[str] = "run_command"

    argv: tuple[str, ...] | None
    undo_argv: tuple[str, ...] | None = None
    stdin: bytes | None = None
    """For `argv`; the journal does not keep it, so secrets may be in it."""
    undo_stdin: bytes | None = None
    """For `undo_argv`; the journal keeps it."""
    nothing_to_undo: tuple[str, ...] = ()
    """Parts of what an undo says that fails because there is nothing to undo, as in `No such container`."""
    timeout_s: float = COMMAND_TIMEOUT_S

    def describe(self) -> str:
        if self.argv is not None:
            return f"run {shown_argv(self.argv)}"
        return f"afterwards run {shown_argv(self.undo_argv or ())}"

    def describe_undo(self) -> str | None:
        return None if self.undo_argv is None else f"run {shown_argv(self.undo_argv)}"

    async def do(self, host: Host) -> None:
        if self.argv is not None:
            await run_checked(host, self.argv, self.stdin, self.timeout_s)

    async def undo(self, host: Host) -> None:
        if self.undo_argv is None:
            return
        done = await host.run(self.undo_argv, self.undo_stdin, self.timeout_s)
        said = done.stderr + done.stdout
        if done.returncode and not any(part in said for part in self.nothing_to_undo):
            raise command_failed(self.undo_argv, done)

    def to_json(self) -> dict[str, Any]:
        """`argv` with its secrets hidden: it is never run again."""
        return {
            "op": self.op,
            "argv": None if self.argv is None else list(masked_argv(self.argv)),
            "undo_argv": None if self.undo_argv is None else list(self.undo_argv),
            "undo_stdin": None if self.undo_stdin is None else _encode(self.undo_stdin),
            "nothing_to_undo": list(self.nothing_to_undo),
            "timeout_s": self.timeout_s,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RunCommand:
        argv, undo_argv, undo_stdin = value["argv"], value["undo_argv"], value["undo_stdin"]
        return cls(
            None if argv is None else tuple(argv),
            None if undo_argv is None else tuple(undo_argv),
            None,
            None if undo_stdin is None else _decode(undo_stdin),
            tuple(value["nothing_to_undo"]),
            value["timeout_s"],
        )


@dataclass(frozen=True, slots=True)
class StartWith:
    """Another command line for a process that breakeven itself starts. It ends with breakeven: after that
    there is nothing to undo."""

    op: ClassVar[str] = "start_with"

    argv: tuple[str, ...]
    before: tuple[str, ...] = ()
    use: Callable[[tuple[str, ...]], None] | None = field(default=None, compare=False, repr=False)
    """Takes the command line for the next start; None where breakeven has ended since."""

    def describe(self) -> str:
        return f"start {shown_argv(self.argv)}"

    def describe_undo(self) -> None:
        return None

    async def do(self, host: Host) -> None:
        if self.use is not None:
            self.use(self.argv)

    async def undo(self, host: Host) -> None:
        if self.use is not None:
            self.use(self.before)

    def to_json(self) -> dict[str, Any]:
        return {"op": self.op, "argv": list(masked_argv(self.argv))}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StartWith:
        return cls(tuple(value["argv"]))


KINDS: Mapping[str, str] = {
    **{kind.op: f"{__name__}:{kind.__name__}" for kind in (WriteFile, RunCommand, StartWith)},
    "compose_up": "breakeven.servers.compose.up:ComposeUp",
    "copy_container": "breakeven.servers.docker.copy:CopyContainer",
    "put_aside": "breakeven.servers.docker.aside:PutAside",
    "stop_container": "breakeven.servers.docker.stop:StopContainer",
    "patch_command": "breakeven.servers.kubernetes.patch:PatchCommand",
    "ask_for_restart": "breakeven.servers.attached.ask:AskForRestart",
}
"""Where each kind is, by its `op`: a class with `from_json`. A module is read only when it is needed."""


def operation_from_json(value: Mapping[str, Any]) -> Operation:
    """Raises UsageError for a kind that is not known, or one that lacks something."""
    place = KINDS.get(str(value.get("op")))
    if place is None:
        raise UsageError(
            f"the journal has an operation {value.get('op')!r}, which this version does not know: "
            "type  pip install -U breakeven"
        )
    module, _, name = place.partition(":")
    kind = getattr(import_module(module), name)
    try:
        operation: Operation = kind.from_json(value)
        return operation
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"the journal's {value['op']} cannot be read ({error!r}): was it edited by hand?"
        ) from None


async def run_checked(
    host: Host, argv: tuple[str, ...], stdin: bytes | None = None, timeout_s: float = COMMAND_TIMEOUT_S
) -> Completed:
    """Raises ServerError where it exits with anything but 0; the message has what it said."""
    done = await host.run(argv, stdin, timeout_s)
    if done.returncode:
        raise command_failed(argv, done)
    return done


def command_failed(argv: tuple[str, ...], done: Completed) -> ServerError:
    said = " ".join((done.stderr.strip() or done.stdout.strip() or "it said nothing").split())
    command = shown_argv(argv)
    return ServerError(f"{command} failed with status {done.returncode}: {said[-SAID_CHARACTERS:]}")


def _encode(data: bytes) -> dict[str, str]:
    """Text as it is, for a human to read; other bytes in base64."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _decode(value: Mapping[str, str]) -> bytes:
    if "text" in value:
        return value["text"].encode()
    try:
        return base64.b64decode(value["base64"], validate=True)
    except binascii.Error as error:
        raise ValueError(f"no base64: {error}") from None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
