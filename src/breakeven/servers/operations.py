"""Operations: the only ways in which a server of somebody else's is changed, each with its undo, as data.

An operation is written to the journal before it is done; it knows all that its undo needs, so that a later
process that knows nothing else can put everything back. To undo what was never done, or twice, does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


class Host(Protocol):
    """The seam to the machine: every command and every file of somebody else's goes through it. Commands are
    argument lists, and no shell sees them."""

    async def run(
        self, argv: tuple[str, ...], stdin: bytes | None = None, timeout_s: float = 60.0
    ) -> Completed:
        """Raises ServerError where it cannot be started, or takes longer."""

    def read(self, path: str) -> bytes | None:
        """None where there is no such file. Raises ServerError where it cannot be read."""

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """As a whole and on disk before it returns, with its folders. Raises StorageError."""

    def remove(self, path: str) -> None:
        """With the folders that `write` made and that are empty now. No harm where there is none."""


class Operation(Protocol):
    """One change."""

    def describe(self) -> str:
        """One line, as --dry-run and the journal show it."""

    async def do(self, host: Host) -> None:
        """Raises ServerError or StorageError."""

    async def undo(self, host: Host) -> None:
        """Likewise. Safe whether or not it was done."""

    def to_json(self) -> dict[str, Any]:
        """All of it; `op` names the kind, by which `operation_from_json` reads it again."""


def operation_from_json(value: Mapping[str, Any]) -> Operation:
    """Raises UsageError for a kind that is not known."""
    raise NotImplementedError
