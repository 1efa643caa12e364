"""PlainDialect: an engine whose log is easy to write: `PHASE name [done/total]` and `FATAL words`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from breakeven.engines.dialect import Address, Dialect
from breakeven.engines.names import Names
from breakeven.engines.phase import Phase
from breakeven.engines.speculation import SpeculationConfig


class PlainDialect(Dialect):
    name: ClassVar[str] = "plain"
    title: ClassVar[str] = "Plain"
    names: ClassVar[Names] = Names("Plain", "1", ("ngram",))

    def start(self, argv: Sequence[str]) -> int | None:
        return 1

    def flags(self, config: SpeculationConfig, version: str | None = None) -> tuple[str, ...]:
        return ("--speculate",)

    def speculation(self, argv: Sequence[str]) -> SpeculationConfig | None:
        return SpeculationConfig("ngram") if "--speculate" in argv else None

    def without(self, argv: Sequence[str]) -> tuple[str, ...]:
        return tuple(word for word in argv if word != "--speculate")

    def address(self, argv: Sequence[str], environment: Mapping[str, str]) -> Address:
        return Address("127.0.0.1", 8000)

    def warnings(
        self, config: SpeculationConfig, argv: Sequence[str], version: str | None = None
    ) -> tuple[str, ...]:
        return ()

    def phase(self, line: str) -> Phase | None:
        word, _, rest = line.partition(" ")
        if word != "PHASE":
            return None
        name, _, units = rest.rpartition(" ") if "/" in rest else (rest, "", "")
        done, _, total = units.partition("/")
        return Phase(name, int(done), int(total)) if units else Phase(name)

    def failure(self, lines: Iterable[str]) -> str | None:
        return next((line for line in lines if line.startswith("FATAL")), None)

    def facts(self, lines: Iterable[str]) -> dict[str, str]:
        return {}
