"""Words of a unit file's settings, split and quoted by systemd's rules (systemd.syntax(7), "Quoting").

They differ from a shell's: escapes are C's, also between single quotes, and an unknown one stays as it is.
Specifiers (%i) and variables ($VAR) are no part of quoting: systemd fills them in after the split.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from breakeven.errors import UsageError
from breakeven.secrets import masked_text

WHITESPACE = " \t\n\r"
_SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", '"': '"', "'": "'", "s": " ",
}  # fmt: skip
_NUMBER = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./${}~^*?!\[\]-]+")
_WRITTEN = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


@dataclass(frozen=True, slots=True)
class Word:
    """One word; bytes that are no UTF-8 are surrogates, as in Python's own argument lists."""

    value: str
    source: str
    """As it is spelled in the unit, quotes and all."""

    @classmethod
    def of(cls, value: str) -> Word:
        """A word spelled anew. Raises UsageError for one that is no text: systemd would run it, but could not
        be asked about the unit any more, as its bus carries nothing but text."""
        if not all(map(_is_text, value)):
            raise UsageError(f"{value!r}: a unit's command line holds text only, and this is none")
        return cls(value, quote(value))


def split(text: str) -> tuple[Word, ...]:
    """All words of a setting. Raises UsageError for a quote that is not closed."""
    words: list[Word] = []
    at = 0
    while (found := next_word(text, at)) is not None:
        word, at = found
        words.append(word)
    return tuple(words)


def next_word(text: str, at: int) -> tuple[Word, int] | None:
    """The word from `at` on, and where the next begins; None at the end."""
    while at < len(text) and text[at] in WHITESPACE:
        at += 1
    if at == len(text):
        return None
    value, end = _read(text, at)
    word = Word(value.decode("utf-8", "surrogateescape"), text[at:end])
    while end < len(text) and text[end] in WHITESPACE:
        end += 1
    return word, end


def _read(text: str, at: int) -> tuple[bytes, int]:
    """A word's bytes, and where it ends."""
    value, quoted_by, start = bytearray(), "", at
    while at < len(text):
        character = text[at]
        if character == "\\":
            piece, at = _unescaped(text, at)
            value += piece
            continue
        if quoted_by:
            if character == quoted_by:
                quoted_by = ""
            else:
                value += _encoded(character)
        elif character in "\"'":
            quoted_by = character
        elif character in WHITESPACE:
            break
        else:
            value += _encoded(character)
        at += 1
    if quoted_by:
        raise UsageError(f"a quote is not closed: {masked_text(text[start:])}")
    return bytes(value), at


def _unescaped(text: str, at: int) -> tuple[bytes, int]:
    """What a backslash and what follows stand for, and where it ends; an unknown escape is itself."""
    following = text[at + 1 : at + 2]
    if following in _SIMPLE_ESCAPES:
        return _SIMPLE_ESCAPES[following].encode(), at + 2
    match = _NUMBER.match(text, at + 1)
    if match:
        value = _number(*match.groups())
        if value is not None:
            return value, match.end()
    return b"\\" + _encoded(following), at + 1 + len(following)


def _number(byte: str | None, short: str | None, long: str | None, octal: str | None) -> bytes | None:
    """\\xHH and \\OOO are bytes, \\uHHHH and \\UHHHHHHHH characters; None for 0 and what is none."""
    if byte or octal:
        code = int(byte or "", 16) if byte else int(octal or "", 8)
        return bytes((code,)) if code else None
    code = int(short or long or "", 16)
    if not code or code > 0x10FFFF or (long and not _is_character(code)):
        return None
    return chr(code).encode("utf-8", "surrogatepass")


def _is_text(character: str) -> bool:
    return character != "\0" and _is_character(ord(character))


def _is_character(code: int) -> bool:
    return not (0xD800 <= code < 0xE000 or 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE)


def _encoded(character: str) -> bytes:
    return character.encode("utf-8", "surrogateescape")


def quote(value: str) -> str:
    """Spell a word so that systemd reads exactly it."""
    if _PLAIN.fullmatch(value):
        return value
    mark = "'" if '"' in value and "'" not in value else '"'
    return mark + "".join(_written(character, mark) for character in value) + mark


def _written(character: str, mark: str) -> str:
    """A unit file's line has to be UTF-8 without control characters or noncharacters."""
    if character in (mark, "\\"):
        return "\\" + character
    if character in _WRITTEN:
        return _WRITTEN[character]
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
