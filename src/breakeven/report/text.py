"""Text from servers, models and prompt files, made harmless before it is shown. None of it is trusted."""

from __future__ import annotations

import re

# ECMA-48: CSI sequences, then string sequences (OSC, DCS, …) up to BEL or ST, then two-byte escapes.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"
    r"|\x1b[ -/]*[0-~]"
)
_C0_EXCEPT_NEWLINE_AND_TAB = {c: 0x2400 + c for c in range(0x20) if chr(c) not in "\n\t"}
_C1 = dict.fromkeys(range(0x80, 0xA0))
# Unicode TR 9: marks, embeddings, overrides and isolates, which reorder the text around them.
BIDI = dict.fromkeys((0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
_REPLACED = {0x7F: 0x2421, 0x2028: "\n", 0x2029: "\n", **_C0_EXCEPT_NEWLINE_AND_TAB, **_C1, **BIDI}
_SURROGATES = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    """Lone surrogates, which UTF-8 cannot carry, become U+FFFD."""
    return _SURROGATES.sub("\ufffd", text)


def clean(text: str) -> str:
    """Several lines of harmless text: no escape sequence, no control character but newline and tab.

    Control characters are shown as their pictures (NUL is ␀); those that reorder text are dropped.
    """
    without_escapes = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    return encodable(without_escapes).translate(_REPLACED)


def line(text: str, limit: int = 200) -> str:
    """One line of harmless text, at most `limit` characters, cut with an ellipsis."""
    joined = " ".join(clean(text).split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


def lines(text: str, limit: int = 200) -> str:
    """Lines of harmless text, without the blank ones, together at most `limit` characters; those that are
    indented stay so."""
    whole = (one for one in clean(text).splitlines() if one.strip())
    joined = "\n".join(f"{'  ' if one[0].isspace() else ''}{line(one, limit)}" for one in whole)
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


def named_build(server: str) -> str:
    """Engine and version, without the number that a llama.cpp built outside its repository gives itself."""
    return server.replace("b0-unknown", "(build not known)")
