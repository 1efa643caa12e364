"""Lifecycle: how a server on some kind of host is looked at, changed, restarted and put back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from breakeven.servers.operations import Operation

Kind = Literal["process", "systemd", "docker", "compose", "kubernetes", "attached"]
Condition = Literal["running", "starting", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class Found:
    """A server as it was before anything was touched."""

    target: str
    """As the user names it, such as systemd:vllm.service."""
    argv: tuple[str, ...]
    """Its command line as its process gets it; specifiers and variables as they stand in its unit."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What its unit or container sets; values of secrets are not kept: None of them is ever printed."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """What was read to know this, such as the unit's text by its path."""
    as_run: tuple[str, ...] | None = None
    """`argv` with specifiers and variables filled in and secrets hidden, to read an address from; None: as
    it is."""
    warnings: tuple[str, ...] = ()
    """What could go wrong with a trial here, each a sentence with what to do about it."""


@dataclass(frozen=True, slots=True)
class State:
    """How the server's process is."""

    condition: Condition
    detail: str = ""
    """Such as an exit code or `OOMKilled`."""
    since_s: float | None = None
    """Seconds in this condition."""


class Lifecycle(ABC):
    """One server on one host. Nothing but the operations of `change` and `restart` alters anything."""

    kind: ClassVar[Kind]

    @abstractmethod
    async def inspect(self) -> Found:
        """Look, touch nothing. Raises UsageError for a target that there is not, or that cannot be changed,
        and says why; ServerError where looking fails."""

    async def check_rights(self) -> None:
        """Raises UsageError where it could be looked at but not changed; asked before a change, not for a dry
        run."""
        return

    @abstractmethod
    def change(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        """What makes it start with `argv` instead, in order; undone in reverse order. Does nothing yet."""

    def keep(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        """Like `change`, for good: for a winner that the user wants to stay, once the trial's own change is
        undone."""
        return self.change(found, argv)

    @abstractmethod
    def diff(self, found: Found, argv: tuple[str, ...]) -> str:
        """The change as a unified diff, for a human to agree to."""

    @abstractmethod
    async def restart(self) -> None:
        """Have it run as it is configured now. Returns once asked, not once ready. Raises ServerError."""

    @abstractmethod
    async def state(self) -> State:
        """How it is right now."""

    @abstractmethod
    def logs(self) -> AsyncIterator[str]:
        """Lines of its log from the latest start on, as they come; ends when the server does."""
