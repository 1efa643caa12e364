"""Lifecycle: how a server on some kind of host is looked at, changed, restarted and put back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import ClassVar, Literal

from breakeven.errors import UsageError
from breakeven.servers.operations import Operation

Kind = Literal["process", "systemd", "docker", "compose", "kubernetes", "attached"]
Condition = Literal["running", "starting", "stopped", "failed"]
MadeOf = Mapping[str, str | None]
IMAGE = "image"
"""Of what Lifecycle.made_of tells, a container's image by its id."""
START_LIMIT_S = 7200.0
"""In which a restarted server has to be ready, unless another limit is given."""


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
    folder: str | None = None
    """In which it runs, and from which relative paths of its command line are read; None: not known."""

    def path(self, name: str) -> str:
        """A path of its command line, from the root on. Raises UsageError for a relative one of a folder that
        is not known."""
        if self.folder is None and not PurePosixPath(name).is_absolute():
            raise UsageError(
                f"{self.target} reads {name} from its working directory, which is not known here: give the "
                "path from the root on, in its command line, and restart it"
            )
        return str(PurePosixPath(self.folder or "/") / name)


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

    @property
    def look_s(self) -> float:
        """Seconds to leave between two looks at `state` of many: what they cost is measured too."""
        return 5.0

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

    async def returning_state(self) -> State:
        """How it is while it comes back as it was found: as `state`, but a crash after which something starts
        it again by itself is no failure yet."""
        return await self.state()

    async def runs_as_found(self) -> bool:
        """Once every change is undone: whether the process that runs is beyond doubt of the server as it was
        found, so that no restart is needed."""
        return False

    async def made_of(self) -> MadeOf:
        """What the process that runs was started from, and the next start may take another one of though
        nothing is configured otherwise: an image by its id, a file of variables by its fingerprint. None for
        what is there and not known. Raises ServerError where looking fails."""
        return {}

    @abstractmethod
    def logs(self) -> AsyncIterator[str]:
        """Lines of its log from the latest start on, as they come; ends when the server does."""
