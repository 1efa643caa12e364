"""Specifiers and variables of a unit filled in, to know what its process is told; no unit is written so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from breakeven.errors import UsageError
from breakeven.servers.systemd.words import split

_SPECIFIER = re.compile(r"%(.)")
_WHOLE_WORD = re.compile(r"\$(?![{$])(.+)", re.DOTALL)
_INSIDE = re.compile(r"\$\$|\$\{([^}]*)\}")


def with_specifiers(text: str, specifiers: Mapping[str, str]) -> str:
    """`%%` is a percent sign; specifiers that are not known here stay."""
    return _SPECIFIER.sub(lambda found: "%" if found[1] == "%" else specifiers.get(found[1], found[0]), text)


def with_variables(words: Iterable[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Words as the process gets them (systemd.service(5), "COMMAND LINES"): `$VAR` alone is as many words as
    it holds, `${VAR}` is what it holds, `$$` a dollar; a variable that is not set is nothing."""
    filled: list[str] = []
    for word in words:
        if whole := _WHOLE_WORD.fullmatch(word):
            filled += _split_value(environment.get(whole[1], ""))
        else:
            filled.append(_INSIDE.sub(lambda found: _held(found, environment), word))
    return tuple(filled)


def _split_value(value: str) -> list[str]:
    try:
        return [word.value for word in split(value)]
    except UsageError:
        return value.split()


def _held(found: re.Match[str], environment: Mapping[str, str]) -> str:
    return "$" if found[1] is None else environment.get(found[1], "")
