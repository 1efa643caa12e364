"""AttachedLifecycle: a server at a URL that somebody else restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import ClassVar

from breakeven.client.endpoint import Endpoint
from breakeven.engines.dialects import DIALECTS
from breakeven.errors import UsageError
from breakeven.servers.argv_diff import argv_diff
from breakeven.servers.attached.ask import AskForRestart, launch
from breakeven.servers.attached.person import Person, Terminal
from breakeven.servers.attached.probe import look
from breakeven.servers.lifecycle import Found, Kind, Lifecycle, State
from breakeven.servers.operations import Operation


class AttachedLifecycle(Lifecycle):
    """Its command line is known only as far as it is told: `argv` may be empty, and the flags to be added are
    all that is named then."""

    kind: ClassVar[Kind] = "attached"

    def __init__(self, endpoint: Endpoint, argv: tuple[str, ...] = (), person: Person | None = None) -> None:
        self.endpoint = endpoint
        self._argv = argv
        self._person = person or Terminal()

    async def inspect(self) -> Found:
        seen = await look(self.endpoint)
        if not seen.answers:
            raise UsageError(
                f"nothing answers at {self.endpoint.base_url} ({seen.detail}): start the server first"
            )
        speculates = "unknown" if seen.speculates is None else "on" if seen.speculates else "off"
        evidence = {"speculation": speculates, "started": seen.started or ""}
        return Found(f"attached:{self.endpoint.base_url}", self._argv, evidence=evidence)

    async def check_rights(self) -> None:
        """Raises UsageError where nobody could be asked to restart it."""
        self._person.check()

    def change(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        before = _speculates(found.argv) if found.argv else found.evidence["speculation"] == "on"
        return (
            AskForRestart(
                self.endpoint.base_url,
                launch(found.argv, before),
                launch(argv, _speculates(argv) if found.argv else True),
                found.evidence["started"] or None,
                self._person,
                self.endpoint,
            ),
        )

    def diff(self, found: Found, argv: tuple[str, ...]) -> str:
        return argv_diff(found.argv, argv, found.target)

    async def restart(self) -> None:
        """Nothing is left to do: whoever was asked restarted it."""

    async def state(self) -> State:
        seen = await look(self.endpoint)
        return State("running") if seen.answers else State("stopped", seen.detail)

    async def logs(self) -> AsyncIterator[str]:
        """None: the log is where the server is."""
        no_lines: tuple[str, ...] = ()
        for line in no_lines:
            yield line


def _speculates(argv: tuple[str, ...]) -> bool:
    for dialect in DIALECTS:
        if dialect().is_mine(argv):
            return dialect().speculation(argv) is not None
    return False
