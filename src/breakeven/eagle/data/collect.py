"""Chats → samples: as token ids with their masks, each prompt once, cut to a length, on one side of the
split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from breakeven.eagle.data.asking import reasons
from breakeven.eagle.data.chats import Chat, Message
from breakeven.eagle.data.masks import RAW, REFUSED, UNPROVEN, Masked, of_ids, of_text
from breakeven.eagle.data.samples import Sample, Split
from breakeven.eagle.data.spelling import Spelling
from breakeven.eagle.data.split import held_out
from breakeven.eagle.data.target import TargetFolder
from breakeven.eagle.data.template import ChatTemplate, TargetTemplate, no_marks
from breakeven.eagle.recipe import DataSettings
from breakeven.errors import UsageError

TOO_LONG = "a prompt of max_length or more"


@dataclass(frozen=True, slots=True)
class _Kept:
    """A sample before it has a side."""

    opening: str
    category: str
    masked: Masked


class Collection:
    """Takes chats and holds their tokens: 5 bytes for each, all in memory."""

    def __init__(
        self, target: TargetFolder, settings: DataSettings, spelling: Spelling, left_out: Counter[str]
    ) -> None:
        self.left_out = left_out
        self.duplicates = self.cut = self.from_text = self.thoughts = 0
        """Prompts that came before, samples cut to max_length, samples made of text, and replies that
        max_tokens cut before an answer began."""
        self._target = target
        self._settings = settings
        self._spelling = spelling
        self._kept: dict[str, _Kept] = {}

    def take(self, chats: Iterable[Chat]) -> None:
        """Raises UsageError for ids of another tokenizer; MissingExtra where a template is needed."""
        for chat in chats:
            if chat.id in self._kept:
                self.duplicates += 1
                continue
            masked = self._masked(chat)
            if isinstance(masked, Masked):
                self._kept[chat.id] = _Kept(chat.opening, chat.category, masked)
            else:
                self.left_out[masked] += 1

    def samples(self) -> list[Sample]:
        """In the order of their ids. Raises UsageError if there is none, saying why."""
        self._spelling.close()
        if not self._kept:
            raise self._nothing()
        apart = held_out(
            (one.opening for one in self._kept.values()), self._settings.held_out, self._settings.seed
        )
        return [_sample(name, self._kept[name], apart) for name in sorted(self._kept)]

    def _masked(self, chat: Chat) -> Masked | str:
        found = self._tokens(chat)
        if isinstance(found, str):
            return found
        self._spelling.in_range(chat.where, found.ids)
        if chat.ids is not None and chat.reply is not None:
            said = chat.reply
            self._spelling.see(
                chat.where, chat.ids.output, _text(said["content"]), said.get("reasoning_content", "")
            )
        most = self._settings.max_length
        if not found.mask[:most].any():
            return TOO_LONG
        self.cut += len(found.ids) > most
        self.from_text += chat.ids is None
        self.thoughts += not chat.ended and _is_thought(chat.reply)
        return Masked(found.ids[:most], found.mask[:most])

    def _tokens(self, chat: Chat) -> Masked | str:
        """No template is looked for where none can help."""
        if chat.ids is not None:
            return of_ids(chat.ids)
        return RAW if chat.messages is None else of_text(chat, self._template, self._target.ends)

    @cached_property
    def _template(self) -> ChatTemplate:
        return TargetTemplate(self._target.path)

    def _nothing(self) -> UsageError:
        if self.left_out[UNPROVEN] and not self._template.has_marks:
            return no_marks(self._target.path)
        refused = "; see its chat template" if self.left_out[REFUSED] else ""
        return UsageError(
            f"the sources hold nothing to learn from "
            f"({reasons(self.left_out) or 'they are empty'}{refused}): name others under sources"
        )


def count_ids(samples: Sequence[Sample], split: Split, vocabulary: int) -> NDArray[np.int64]:
    """How often the target wrote each token in the samples of one side; shape (vocabulary,)."""
    counts = np.zeros(vocabulary, np.int64)
    for one in samples:
        if one.split == split:
            counts += np.bincount(one.input_ids[one.loss_mask], minlength=vocabulary)
    return counts


def _sample(name: str, kept: _Kept, apart: frozenset[str]) -> Sample:
    ids, mask = kept.masked.ids, kept.masked.mask
    side: Split = "held_out" if kept.opening in apart else "train"
    return Sample(name, kept.category, side, int(np.argmax(mask)), ids, mask)


def _text(content: object) -> str:
    return content if isinstance(content, str) else ""


def _is_thought(reply: Message | None) -> bool:
    """Reasoning, and no answer yet."""
    return reply is not None and "reasoning_content" in reply and not _text(reply["content"]).strip()
