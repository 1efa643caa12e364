"""Variables of an EnvironmentFile= (systemd.exec(5)): a shell's assignments, read by no shell."""

from __future__ import annotations

import re

_WHITESPACE = " \t\n\r"
_LINE_ENDS = "\n\r"
_ESCAPED_IN_DOUBLE_QUOTES = '"\\`$'
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def variables(data: bytes) -> dict[str, str]:
    """All that it sets; the last of a name counts. What systemd cannot use is skipped."""
    reader = _Reader(data.decode("utf-8", "replace"))
    found: dict[str, str] = {}
    while reader.skip_to_name():
        name = reader.name()
        if reader.take("="):
            value = reader.value()
            if _NAME.fullmatch(name):
                found[name] = value
    return found


class _Reader:
    """A place in the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def _here(self) -> str:
        """The character here; empty at the end."""
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        character = self._here()
        self._at += 1
        return character

    def _goes_on(self) -> bool:
        """Whether this line does."""
        return bool(self._here()) and self._here() not in _LINE_ENDS

    def take(self, character: str) -> bool:
        if self._here() != character:
            return False
        self._at += 1
        return True

    def skip_to_name(self) -> bool:
        """Past space and comments; False at the end."""
        while self._here() and self._here() in _WHITESPACE + "#;":
            if self._next() in "#;":
                while self._goes_on():
                    self._at += 1
        return bool(self._here())

    def name(self) -> str:
        start = self._at
        while self._goes_on() and self._here() != "=":
            self._at += 1
        return self._text[start : self._at].strip(_WHITESPACE)

    def value(self) -> str:
        """Quoted pieces, which may hold lines, and then a plain one to the end of the line."""
        quoted = ""
        while self._goes_on() and self._here() in " \t'\"":
            mark = self._next()
            if mark in "'\"":
                quoted += self._quoted(mark)
        return quoted + self._plain()

    def _quoted(self, mark: str) -> str:
        value = ""
        while self._here() and not self.take(mark):
            character = self._next()
            if character == "\\" and mark == '"':
                following = self._next()
                character = following if following in _ESCAPED_IN_DOUBLE_QUOTES else f"\\{following}"
                character = "" if following == "\n" else character
            value += character
        return value

    def _plain(self) -> str:
        """Without the space at its end; a backslash keeps what follows, but joins lines."""
        value, kept = "", 0
        while self._goes_on():
            character = self._next()
            if character == "\\":
                following = self._next()
                value += "" if following in _LINE_ENDS else following
                kept = len(value)
            else:
                value += character
        return value[:kept] + value[kept:].rstrip(_WHITESPACE)
