"""Markdown of a card: text of others is shown as text, whatever is in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from breakeven.secrets import masked_text

_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+"
)
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#])")
LONGEST = 2_000


def one_line(text: str) -> str:
    """As it stands in a paragraph: on one line, nothing of it is markup, secrets hidden."""
    plain = " ".join(_CONTROL.sub(" ", masked_text(text)).split())
    shown = plain if len(plain) <= LONGEST else plain[: LONGEST - 1] + "…"
    return _MARKUP.sub(r"\\\1", shown)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are text; one that begins and ends with ` is code."""
    lines = [header, ["---"] * len(header), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {one_line(sentence)}" for sentence in sentences)


def code(text: str) -> str:
    return f"```\n{text}\n```"


def _cell(text: str) -> str:
    is_code = len(text) > 2 and text[0] == text[-1] == "`" and text[1:-1].isalnum()
    return text if is_code else one_line(text)
