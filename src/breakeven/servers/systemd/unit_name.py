"""UnitName: the name of a service, in its parts (systemd.unit(5))."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from breakeven.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9:_.\\][A-Za-z0-9:_.\\-]*(@[A-Za-z0-9:_.\\@-]*)?\.service")
MAX_LENGTH = 255
_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class UnitName:
    """A service that can run: no template without an instance."""

    full: str

    @classmethod
    def parse(cls, text: str) -> UnitName:
        """`vllm` is `vllm.service`. Raises UsageError for other kinds of units, and for templates."""
        ending = text.rpartition(".")[2]
        if ending in ("socket", "timer", "target", "path", "slice", "scope", "mount"):
            raise UsageError(f"{text} is a {ending}, not a service: name the service that it starts")
        full = text if text.endswith(".service") else f"{text}.service"
        if not _NAME.fullmatch(full) or len(full) > MAX_LENGTH:
            raise UsageError(f"{text!r} is no name of a service: type it as  systemctl list-units  shows it")
        name = cls(full)
        if name.is_instance and not name.instance:
            raise UsageError(f"{full} is a template: name one of its instances, such as {name.prefix}@NAME")
        return name

    @property
    def stem(self) -> str:
        return self.full.removesuffix(".service")

    @property
    def is_instance(self) -> bool:
        return "@" in self.full

    @property
    def prefix(self) -> str:
        return self.stem.partition("@")[0]

    @property
    def instance(self) -> str:
        return self.stem.partition("@")[2]

    @property
    def template(self) -> str | None:
        """The unit that an instance is one of."""
        return f"{self.prefix}@.service" if self.instance else None

    def dropin_names(self) -> Iterator[str]:
        """Names under which systemd looks for its drop-ins, in order: its own, its template's, and those of
        its families, as `a-b` is of the family `a-`."""
        yield self.full
        if self.template:
            yield from UnitName(self.template).dropin_names()
        family = self.prefix.removesuffix("-").rpartition("-")[0]
        if family:
            instance = f"@{self.instance}" if self.instance else ""
            yield from UnitName(f"{family}-{instance}.service").dropin_names()

    def dropin_folders(self, unit_path: Sequence[str]) -> tuple[str, ...]:
        """Where drop-ins may be; of two with the same file name, the one in the first folder counts."""
        names = list(self.dropin_names())
        own = [f"{folder}/{name}.d" for folder in unit_path for name in names]
        return (*own, *(f"{folder}/service.d" for folder in unit_path))

    def specifiers(self) -> dict[str, str]:
        """What those specifiers stand for that tell of the name."""
        return {
            "n": self.full,
            "N": self.stem,
            "p": self.prefix,
            "P": unescaped(self.prefix),
            "i": self.instance,
            "I": unescaped(self.instance),
            "j": self.prefix.rpartition("-")[2],
            "J": unescaped(self.prefix.rpartition("-")[2]),
            "f": "/" + unescaped(self.instance or self.prefix).lstrip("/"),
        }


def unescaped(text: str) -> str:
    """What systemd-escape made a name of: `-` was a slash, and `\\xHH` a byte."""
    pieces = _ESCAPE.split(text.replace("-", "/"))
    data = b"".join(
        bytes((int(piece, 16),)) if odd % 2 else piece.encode() for odd, piece in enumerate(pieces)
    )
    return data.decode("utf-8", "surrogateescape")
