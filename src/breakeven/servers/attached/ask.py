"""AskForRestart: somebody else is asked to restart the server, and it is seen that it was done."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from breakeven.client.endpoint import Endpoint
from breakeven.secrets import masked_argv
from breakeven.servers.attached.person import Person, Terminal
from breakeven.servers.attached.probe import Seen, look
from breakeven.servers.operations import Host

LOOK_S = 2.0


@dataclass(frozen=True, slots=True)
class Launch:
    """How the server is to run."""

    command: tuple[str, ...]
    """Its command line, or the flags to add to it, the secrets hidden; empty: as it ran before."""
    speculates: bool


@dataclass(frozen=True, slots=True)
class AskForRestart:
    """Nothing is touched by it: it says what to run, and waits until that answers. Undone, likewise."""

    op: ClassVar[str] = "ask_for_restart"
    waits_for_somebody: ClassVar[Literal[True]] = True

    url: str
    before: Launch
    after: Launch
    started: str | None = None
    """When the server that was found had started, by its own clock; None where it does not say."""
    person: Person = field(default_factory=Terminal, compare=False)
    endpoint: Endpoint | None = field(default=None, compare=False)
    """With credentials, which are not kept; None is `url` without any."""
    said: list[Launch] = field(default_factory=list, compare=False)
    """What somebody was told to run, as far as this process knows; a journal does not, and has `after`."""

    def describe(self) -> str:
        return f"ask you to restart the server at {self.url}"

    def describe_undo(self) -> str:
        return self.describe()

    async def do(self, host: Host) -> None:
        await self._ask(self.after, self.before)

    async def undo(self, host: Host) -> None:
        """Where nobody was told to restart it, or it never was, it is as it was, and nobody is asked."""
        if not self.said:
            return
        seen = await look(self._endpoint())
        if seen.answers and self.started is not None and seen.started == self.started:
            return
        await self._ask(self.before, self.after)

    async def _ask(self, wanted: Launch, other: Launch) -> None:
        first = await look(self._endpoint())
        self.person.tell(_request(self.url, wanted, other))
        self.said.append(wanted)
        went = not first.answers
        while True:
            seen = await look(self._endpoint())
            went = went or not seen.answers
            if seen.answers and await self._is_as_wanted(first, seen, went, wanted, other):
                return
            await asyncio.sleep(LOOK_S)

    async def _is_as_wanted(self, first: Seen, seen: Seen, went: bool, wanted: Launch, other: Launch) -> bool:
        """By what it says itself, where that decides; else by what the person says."""
        if seen.speculates is not None and seen.speculates is not wanted.speculates:
            return False
        again = seen.started != first.started if seen.started and first.started else went
        changed = seen.speculates is not None and wanted.speculates is not other.speculates
        if changed and (again or first.speculates is not seen.speculates):
            return True
        if not again and first.started is not None:
            return False
        return await self.person.confirm(f"Does the server at {self.url} run like that now?")

    def _endpoint(self) -> Endpoint:
        return self.endpoint or Endpoint(self.url)

    def to_json(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "url": self.url,
            "before": [list(self.before.command), self.before.speculates],
            "after": [list(self.after.command), self.after.speculates],
            "started": self.started,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> AskForRestart:
        before, after = (Launch(tuple(command), on) for command, on in (value["before"], value["after"]))
        return cls(value["url"], before, after, value["started"], said=[after])


def launch(argv: tuple[str, ...], speculates: bool) -> Launch:
    return Launch(masked_argv(argv), speculates)


def _request(url: str, wanted: Launch, other: Launch) -> str:
    if wanted.command:
        what = f"with\n\n  {shlex.join(wanted.command)}\n"
    else:
        what = f"as it ran before, without\n\n  {shlex.join(other.command)}\n"
    return f"Restart the server at {url} {what}\nThis waits until it answers."
