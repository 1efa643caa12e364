"""Operations: the only ways in which a server of somebody else's is changed, each with its undo, as data.

An operation is written to the journal before it is done; it knows all that its undo needs, so that a later
process that knows nothing else can put everything back. To undo what was never done, or twice, does no harm.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


class Host(Protocol):
    """The seam to the machine: every command and every file of somebody else's goes through it. Commands are
    argument lists, and no shell sees them. Paths are absolute."""

    look_s: float
    """Seconds to leave between two commands that only look again at the same: what each of them costs."""

    async def run(
        self,
        argv: tuple[str, ...],
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        hold_stdin: bool = False,
    ) -> Completed:
        """`hold_stdin` leaves its input open until it ends, for those that take the end of it as a reason to
        stop. Raises ServerError where it cannot be started, takes longer, or says far too much."""

    def lines(self, argv: tuple[str, ...]) -> AsyncGenerator[str, None]:
        """What a command that goes on says, on both streams, line by line without their ends, as it comes:
        `journalctl -f` or `docker logs -f`. Ends when the command does, whatever its status; closing the
        iterator ends the command. Raises ServerError where it cannot be started."""

    def read(self, path: str) -> bytes | None:
        """None where there is no such file. Raises ServerError where it cannot be read."""

    def mode(self, path: str) -> int | None:
        """Permission bits of a file; None where there is none. Raises ServerError."""

    def missing_folders(self, path: str) -> tuple[str, ...]:
        """Folders that `write` would have to make for this file, the outermost first. Raises ServerError."""

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """As a whole and on disk before it returns, with its folders; a file that is replaced keeps its
        owner. Raises StorageError."""

    def remove(self, path: str, folders: tuple[str, ...] = ()) -> None:
        """The file, then those of the folders that are empty, the last first; on disk before it returns.
        No harm where there is none. Raises StorageError."""


class Operation(Protocol):
    """One change."""

    def describe(self) -> str:
        """One line, as --dry-run and the journal show it."""

    def describe_undo(self) -> str | None:
        """How it is undone, to be done by hand if need be; None: there is nothing to do."""

    async def do(self, host: Host) -> None:
        """Raises ServerError or StorageError."""

    async def undo(self, host: Host) -> None:
        """Safe whether or not it was done, or while what a `do` began that was cut off still goes on.

        Raises ServerError or StorageError, after which it may be tried again; UsageError for what does not
        come right by itself.
        """

    def to_json(self) -> dict[str, Any]:
        """All that its undo needs; `op` names the kind, by which `operation_from_json` reads it again."""


@runtime_checkable
class Waiting(Protocol):
    """An operation that touches nothing, and waits for somebody who does. It can be cancelled at any time;
    any other comes to its end first, as what it began may take effect later than its undo would."""

    waits_for_somebody: Literal[True]
