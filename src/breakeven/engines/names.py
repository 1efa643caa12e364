"""Names: what an engine calls its methods and its settings, so that a slip is told before a restart.

A setting that is not known is refused: engines do not start with one. A method is refused only where it is
close to one that is known, since engines take methods of plug-ins too. A version above the newest that is
known here may have what is not: then both are passed on, with a warning.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.engines.argv import is_newer
from breakeven.engines.speculation import GUARD_METHODS, LEARNED_METHODS, LOOKUP_METHODS
from breakeven.errors import UsageError

OURS = frozenset((*LOOKUP_METHODS, *LEARNED_METHODS))
"""Methods that an engine which lacks them refuses by itself, saying what it has instead."""
LIKELY = 0.6
"""How alike two names are that may be meant for each other, as difflib measures it: its own default."""


@dataclass(frozen=True, slots=True)
class Named:
    """What somebody typed, spelled as the engine does."""

    methods: tuple[str, ...]
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Names:
    """Of one engine, up to a version."""

    title: str
    newest: str
    """The newest version whose names these are, such as 0.33."""
    methods: tuple[str, ...]
    """Ours that it has, then its own."""
    settings: tuple[str, ...] = ()
    """That --set takes, in any version."""

    def check(self, named: Named, version: str | None) -> None:
        """Raises UsageError for a name that is not known, with the nearest that is; for a setting, with all
        there are. Without a version the newest that is known is meant."""
        for method in named.methods:
            if method.lower() in GUARD_METHODS and method not in self.methods:
                raise UsageError(f"{self.title} has no {method}: the guard is for vLLM only: leave it out")
        if is_newer(version, self.newest):
            return
        for method in self._unknown_methods(named):
            if near := nearest(method, self.methods):
                raise UsageError(f"{self.title} has no {method}: did you mean {near}? type  --method {near}")
        for setting in self._unknown_settings(named):
            near = nearest(setting, self.settings)
            guess = f"did you mean {near}? " if near else ""
            raise UsageError(
                f"{self.title} up to {self.newest} has no setting {setting} of speculation: {guess}it takes "
                f"{', '.join(self.settings)}"
            )

    def knows(self, named: Named) -> bool:
        """Whether each of them is known: then no version makes a difference to `check`."""
        return not self._unknown_methods(named) and not self._unknown_settings(named)

    def doubts(self, named: Named, version: str | None) -> tuple[str, ...]:
        """Of names that are passed on though they are not known, a sentence each."""
        newer = is_newer(version, self.newest)
        methods = [name for name in self._unknown_methods(named) if newer or not nearest(name, self.methods)]
        settings = self._unknown_settings(named) if newer else []
        unknown = [f"method {name}" for name in methods] + [f"setting {name}" for name in settings]
        return tuple(
            f"{what} is none that {self.title} has as far as is known here, up to {self.newest}: if it has "
            "none, the server does not start"
            for what in unknown
        )

    def _unknown_methods(self, named: Named) -> list[str]:
        return [name for name in named.methods if name not in self.methods and name not in OURS]

    def _unknown_settings(self, named: Named) -> list[str]:
        return [name for name in named.settings if name not in self.settings]


def nearest(name: str, known: Sequence[str]) -> str | None:
    """What was probably meant, whatever its case and hyphens; None where nothing is alike. Of several that
    differ in those alone, the first."""
    plain = {_plain(each): each for each in reversed(known)}
    found = difflib.get_close_matches(_plain(name), plain, 1, LIKELY)
    return plain[found[0]] if found else None


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
