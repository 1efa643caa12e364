"""What the target is to answer: every distinct prompt of the sources, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from breakeven.eagle.data.chats import Chat, id_of
from breakeven.eagle.data.of_rows import MEDIA, NO_PROMPT
from breakeven.errors import UsageError
from breakeven.workload.prompts import Prompt, Workload

NAME = "eagle data"
TOOLS = "definitions of tools, which the target is not asked with"


@dataclass(frozen=True, slots=True)
class Asking:
    """The prompts, whose ids are those of the samples to be."""

    workload: Workload
    raw: bool
    """They are texts for completions; else messages for chats."""
    duplicates: int
    """Prompts that were there already."""


def distinct(chats: Iterable[Chat], left_out: Counter[str]) -> Asking:
    """A conversation of several turns is a prompt for each of its replies.

    Raises UsageError if there is none, or if some are chats and others raw completions.
    """
    found: dict[str, Prompt] = {}
    duplicates = 0
    for chat in chats:
        reason = _unusable(chat)
        if reason is not None:
            left_out[reason] += 1
            continue
        for asked in chat.prompts():
            name = id_of(asked)
            if name in found:
                duplicates += 1
                continue
            found[name] = Prompt(
                name,
                chat.category,
                messages=asked if isinstance(asked, tuple) else None,
                text=asked if isinstance(asked, str) else None,
            )
    return Asking(Workload(NAME, tuple(found.values())), _is_raw(found.values(), left_out), duplicates)


def _unusable(chat: Chat) -> str | None:
    if chat.asked is None:
        return NO_PROMPT
    if chat.has_media:
        return MEDIA
    return TOOLS if chat.tools else None


def _is_raw(prompts: Iterable[Prompt], left_out: Counter[str]) -> bool:
    kinds = {prompt.text is not None for prompt in prompts}
    if not kinds:
        raise UsageError(
            f"the sources hold no prompt to ask ({reasons(left_out) or 'they are empty'}): name others under "
            "sources"
        )
    if len(kinds) > 1:
        raise UsageError(
            "the sources hold chats and raw completions, which one server is not asked alike: make a recipe "
            "of each, with a folder of its own"
        )
    return kinds.pop()


def reasons(left_out: Counter[str]) -> str:
    """`no reply: 3, pictures or sound: 1`."""
    return ", ".join(f"{reason}: {n:,}" for reason, n in left_out.most_common() if n)
