"""Reasoning that a server leaves inside the content, between tags such as <think> and </think>.

Done once per reply, on the joined text, so that it does not matter how chunks split the tags. Reasoning is
taken to run from an opening tag at the very start; or, where a chat template has opened it already, up to a
lone </think>. The tags themselves belong to the reasoning: the model spent tokens on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.trace.records import Kind

TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<seed:think>", "</seed:think>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("[THINK]", "[/THINK]"),
)
PRE_OPENED_BY = "</think>"
"""The one closing tag that is believed without its opening one: templates that open <think> are common."""


@dataclass(frozen=True, slots=True)
class Split:
    """Content and reasoning apart, without the tags, and the kind of each event."""

    content: str
    reasoning: str
    kinds: tuple[Kind, ...]
    pre_opened: bool


def split_inline(contents: Sequence[str], kinds: Sequence[Kind]) -> Split | None:
    """None if there is no inline reasoning. `contents` has one string per event, empty for other kinds."""
    text = "".join(contents)
    found = _find(text)
    if found is None:
        return None
    start, end, resume = found
    return Split(
        content=text[resume:],
        reasoning=text[start:end],
        kinds=_relabel(contents, kinds, text, resume),
        pre_opened=start == 0,
    )


def _find(text: str) -> tuple[int, int, int] | None:
    """(where reasoning starts, where it ends, where the content goes on); all indices into `text`."""
    lead = len(text) - len(text.lstrip())
    for opening, closing in TAGS:
        if text.startswith(opening, lead):
            start = lead + len(opening)
            end = text.find(closing, start)
            return (start, len(text), len(text)) if end < 0 else (start, end, end + len(closing))
    end = text.find(PRE_OPENED_BY)
    return None if end < 0 else (0, end, end + len(PRE_OPENED_BY))


def _relabel(contents: Sequence[str], kinds: Sequence[Kind], text: str, resume: int) -> tuple[Kind, ...]:
    """Events before `resume` are reasoning; one that straddles it is content if more than blanks follow."""
    relabelled = []
    position = 0
    for content, kind in zip(contents, kinds, strict=True):
        start, position = position, position + len(content)
        if kind is Kind.CONTENT and start < resume:
            rest = text[resume:position] if position > resume else ""
            kind = Kind.CONTENT if rest.strip() else Kind.REASONING
        relabelled.append(kind)
    return tuple(relabelled)
