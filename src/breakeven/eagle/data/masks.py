"""Chat → token ids, and which of them the target wrote.

Ids that the server told need nothing else. Of text the chat template decides: by its generation marks, or,
where it has none, by what it adds to a prompt when the reply is appended. The latter is used only where it is
exact: the prompt with the reply begins as the prompt does, in text and in ids; what follows is the reply and
the token that ends it; no token lies across these bounds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.eagle.data.chats import ASSISTANT, Chat, Ids, Message
from breakeven.eagle.data.template import ChatTemplate, TemplateRefused

RAW = "completion without token ids"
REFUSED = "the chat template refuses it"
DROPPED = "the chat template leaves out the reply or its reasoning"
UNPROVEN = "where the reply begins and ends is not certain"
COUNTS_DIFFER = "ids made from text are not as many as the server counted"


@dataclass(frozen=True, slots=True)
class Masked:
    """Token ids, and True for those that the target wrote; both of the same length."""

    ids: NDArray[np.int32]
    mask: NDArray[np.bool_]


def of_ids(ids: Ids) -> Masked:
    """What the server took and gave, end-of-sequence token and reasoning with it."""
    mask = np.zeros(len(ids.prompt) + len(ids.output), np.bool_)
    mask[len(ids.prompt) :] = True
    return Masked(np.concatenate([ids.prompt, ids.output]), mask)


def of_text(chat: Chat, template: ChatTemplate, ends: Collection[int]) -> Masked | str:
    """What the template and the tokenizer make of a chat, or why that is left out.

    `ends` are the tokens that end a reply.
    """
    if chat.messages is None:
        return RAW
    try:
        rendered = _Rendered(template, chat.messages, chat.tools)
        if not _says(rendered.text, chat.messages[-1]):
            return DROPPED
        by_marks = template.has_marks and not _is_thought_alone(chat.messages[-1])
        found = _by_marks(chat, rendered, ends) if by_marks else _exact(chat, rendered, ends)
    except TemplateRefused:
        return REFUSED
    if found is None:
        return UNPROVEN
    return found if _as_counted(found, chat, by_marks) else COUNTS_DIFFER


def _is_thought_alone(reply: Message) -> bool:
    """Whether it was cut before an answer: what a template puts after a thought, within its marks, the target
    never wrote."""
    return bool(reply.get("reasoning_content")) and not reply["content"] and not reply.get("tool_calls")


class _Rendered:
    """Messages, the last a reply, as the template has them. Raises TemplateRefused."""

    def __init__(self, template: ChatTemplate, messages: Sequence[Message], tools: Sequence[Any]) -> None:
        self.template, self.messages, self.tools = template, messages, tools
        self.text = template.text(messages, tools, prompt=False)
        self.ids = template.ids(self.text)

    def prompt(self, number: int) -> str | None:
        """The text that the target is to go on with message `number`, if the whole begins so."""
        text = self.template.text(self.messages[:number], self.tools, prompt=True)
        return text if self.text.startswith(text) else None

    def tokens(self, characters: int) -> int | None:
        """How many tokens the first characters are; None where one lies across their end."""
        ids = self.template.ids(self.text[:characters])
        return len(ids) if self.ids[: len(ids)] == ids else None


def _says(text: str, reply: Message) -> bool:
    parts = (reply["content"], reply.get("reasoning_content", ""))
    return all(part.strip() in text for part in parts if isinstance(part, str))


def _by_marks(chat: Chat, rendered: _Rendered, ends: Collection[int]) -> Masked | None:
    ids, marks = rendered.template.marked(rendered.messages, rendered.tools)
    mask = np.array(marks, np.bool_)
    last = len(rendered.messages) - 1
    if not chat.several and any(one["role"] == ASSISTANT for one in rendered.messages[:last]):
        prompt = rendered.prompt(last)
        before = None if prompt is None else rendered.tokens(len(prompt))
        if before is None:
            return None
        mask[:before] = False
    if not mask.any():
        return None
    end = int(np.flatnonzero(mask)[-1]) + 1
    return _cut(ids, mask, end - (not chat.ended and ids[end - 1] in ends))


def _exact(chat: Chat, rendered: _Rendered, ends: Collection[int]) -> Masked | None:
    mask = np.zeros(len(rendered.ids), np.bool_)
    last = len(rendered.messages) - 1
    end = 0
    for number, one in enumerate(rendered.messages):
        if one["role"] != ASSISTANT or not number or not (chat.several or number == last):
            continue
        span = _span(rendered, number, ends, ended=chat.ended or number < last)
        if span is not None:
            mask[slice(*span)] = True
            end = span[1]
        elif number == last:
            return None
    return _cut(rendered.ids, mask, end)


def _span(rendered: _Rendered, number: int, ends: Collection[int], ended: bool) -> tuple[int, int] | None:
    """First token of a reply, and the one after its last; None where that is not certain."""
    prompt = rendered.prompt(number)
    if prompt is None:
        return None
    said = _characters(rendered.text[len(prompt) :], rendered.messages[number])
    if said is None:
        return None
    begin, end = rendered.tokens(len(prompt)), rendered.tokens(len(prompt) + said)
    if begin is None or end is None:
        return None
    if ended and end < len(rendered.ids) and rendered.ids[end] in ends:
        return begin, end + 1
    bare = not rendered.text[len(prompt) + said :].strip()
    return (begin, end) if bare or not ended else None


def _characters(tail: str, reply: Message) -> int | None:
    """Of the reply, at the beginning of `tail`; None where something else may be among them."""
    content = reply["content"]
    if not isinstance(content, str) or reply.get("tool_calls"):
        return None
    reasoning, answer = reply.get("reasoning_content", "").strip(), content.strip()
    if not reasoning:
        exact = next((one for one in (content, answer) if one and tail.startswith(one)), None)
        return None if exact is None else len(exact)
    thought = tail.find(reasoning)
    if thought < 0:
        return None
    end = thought + len(reasoning)
    at = tail.find(answer, end)
    return None if at < 0 else at + len(answer)


def _cut(ids: Sequence[int], mask: NDArray[np.bool_], end: int) -> Masked | None:
    """Without what follows the last reply, which the target did not write."""
    kept = mask[:end]
    return Masked(np.array(ids[:end], np.int32), kept) if kept.any() else None


def _as_counted(found: Masked, chat: Chat, by_marks: bool) -> bool:
    """Whether the last reply and what is before it have as many tokens as the server counted, if it did.

    Marks may leave out the token that ends a reply.
    """
    prompt, completion = chat.counted
    begins = np.flatnonzero(np.diff(found.mask.astype(np.int8), prepend=0) == 1)
    begin = int(begins[-1])
    reply = len(found.mask) - begin
    return prompt in (None, begin) and completion in (None, reply, reply + (by_marks and chat.ended))
