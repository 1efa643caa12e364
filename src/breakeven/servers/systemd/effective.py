"""EffectiveUnit: a unit's own file and its drop-ins, as systemd puts them together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from breakeven.errors import UsageError
from breakeven.servers.systemd.command import Command, commands
from breakeven.servers.systemd.expand import with_specifiers
from breakeven.servers.systemd.unit_text import Assignment, assignments
from breakeven.servers.systemd.words import split


@dataclass(frozen=True)
class EffectiveUnit:
    """Assignments count in the order of the files; an empty one takes back those before it of its name."""

    files: Mapping[str, bytes]
    """By path, in the order in which systemd reads them: the unit's own, then drop-ins by file name."""
    specifiers: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def assignments(self) -> tuple[Assignment, ...]:
        return tuple(one for data in self.files.values() for one in assignments(data))

    def values(self, name: str) -> tuple[str, ...]:
        """What a setting of [Service] that may be repeated holds."""
        found: list[str] = []
        for value in self._all(name):
            found = [*found, value] if value else []
        return tuple(found)

    def value(self, name: str) -> str:
        """The last of a setting that has one value; empty where it is not set."""
        return next(reversed(list(self._all(name))), "")

    def _all(self, name: str) -> Iterator[str]:
        return (one.value for one in self.assignments if (one.section, one.name) == ("Service", name))

    @cached_property
    def exec_start(self) -> tuple[Command, ...]:
        """Raises UsageError for a command line that systemd refuses."""
        return tuple(command for value in self.values("ExecStart") for command in commands(value))

    @cached_property
    def environment(self) -> dict[str, str]:
        """What Environment= sets; the last of a name counts."""
        words = [word for value in self.values("Environment") for word in _words(value)]
        pairs = (with_specifiers(word, self.specifiers).partition("=") for word in words)
        return {name: value for name, equals, value in pairs if equals and name.isidentifier()}

    @cached_property
    def environment_files(self) -> tuple[str, ...]:
        """Paths, those that may be missing marked by a leading `-`."""
        return tuple(with_specifiers(value, self.specifiers) for value in self.values("EnvironmentFile"))

    def sources_of(self, name: str) -> tuple[str, ...]:
        """The files that say something of a setting."""
        return tuple(
            path for path, data in self.files.items() if any(one.name == name for one in assignments(data))
        )


def _words(value: str) -> tuple[str, ...]:
    """Nothing where a quote is not closed: systemd skips such a line."""
    try:
        return tuple(word.value for word in split(value))
    except UsageError:
        return ()
