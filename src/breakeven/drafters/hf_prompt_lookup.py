"""hf-prompt-lookup: prompt lookup of Hugging Face transformers.

Semantics from transformers 5.19, `PromptLookupCandidateGenerator` in `generation/candidate_generator.py`, and
`generation/utils.py` (settings, max_length).

The longest of the context's last max_n to 1 tokens that occurred before, at its first occurrence: the k
tokens that followed there, or as many as there are up to the end of the context, and none from the first
end-of-sequence token on. If that is the first of them there is no draft, and no shorter n-gram is tried. A
draft may go beyond max_length, but there is none when only one token is left. Tokens that a logits processor
forbids end a draft too; a replay does not know them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters._ngram_tables import Lookups, earlier_ends, first_occurrences
from breakeven.drafters.base import Ids, Limits, Table, TableDrafter
from breakeven.drafters.room import room_of, rooms_of
from breakeven.drafters.settings import Settings, setting, shown
from breakeven.drafters.tokens import UNLIMITED, Tokens
from breakeven.errors import UsageError

ID_DIGITS = 10
"""Of the highest token id, 2**31 − 1."""


@dataclass(frozen=True, slots=True)
class HfPromptLookupSettings(Settings):
    """The defaults are the generator's own; `generate` takes k from prompt_lookup_num_tokens."""

    k: int = setting(10, "most tokens of a draft (prompt_lookup_num_tokens)", 1)
    max_n: int = setting(2, "longest n-gram looked up (max_matching_ngram_size)", 1)
    eos_token_ids: str = setting("", "end-of-sequence token ids that end a draft, as in 128001,128009")

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if not all(_is_id(word.strip()) for word in self.eos_token_ids.split(",") if word):
            raise UsageError(
                f"eos_token_ids are token ids with commas between, not {shown(self.eos_token_ids)}: "
                "type --set eos_token_ids=128001,128009"
            )

    @property
    def eos(self) -> tuple[int, ...]:
        """eos_token_ids as numbers."""
        return tuple(int(word) for word in self.eos_token_ids.split(",") if word)


class HfPromptLookup(TableDrafter[HfPromptLookupSettings]):
    """Drafts the continuation of the first occurrence of the longest repeated n-gram, from one token on."""

    name: ClassVar[str] = "hf-prompt-lookup"
    engine: ClassVar[str] = "transformers"
    summary: ClassVar[str] = "first occurrence of the longest repeated n-gram, from one token on"
    Config: ClassVar[type[Settings]] = HfPromptLookupSettings
    compiled: ClassVar[bool] = True

    def propose(self, context: Ids, room: int) -> list[int]:
        for n in range(min(self.settings.max_n, len(context)), 0, -1):
            ends = earlier_ends(context, n)
            if len(ends):
                draft: list[int] = context[ends[0] :][: max(0, min(self.settings.k, room))].tolist()
                return draft[: next((i for i, t in enumerate(draft) if t in self.settings.eos), len(draft))]
        return []

    def room(self, context_tokens: int, output_tokens: int, limits: Limits) -> int:
        """max_length is prompt + max_tokens, and no more than the context that the record's server had."""
        return room_of(_room, context_tokens, output_tokens, limits)

    def flags(self) -> str:
        """Arguments of `generate`."""
        return f"prompt_lookup_num_tokens={self.settings.k}, max_matching_ngram_size={self.settings.max_n}"

    def table(self, tokens: Tokens) -> Table:
        return next(self.tables(tokens, [self.settings]))

    @classmethod
    def tables(cls, tokens: Tokens, settings: Sequence[HfPromptLookupSettings]) -> Iterator[Table]:
        """One pass looks up every n-gram; each table then costs a few operations a position."""
        if not settings:
            return
        k = max(one.k for one in settings)
        found = first_occurrences(tokens, 1, [one.max_n for one in settings], k)
        rooms = rooms_of(_room, tokens, k)
        for one in settings:
            yield found.table(_before_eos(tokens, found, one), one.max_n, one.k, rooms)


def _is_id(word: str) -> bool:
    return word.isdecimal() and len(word) <= ID_DIGITS and int(word) <= UNLIMITED


def _room(context_tokens: Any, output_tokens: Any, max_tokens: Any, max_model_len: Any) -> Any:
    max_length = np.minimum(max_model_len, context_tokens - output_tokens + max_tokens)
    return (context_tokens + 1 < max_length) * UNLIMITED


def _before_eos(tokens: Tokens, found: Lookups, settings: HfPromptLookupSettings) -> NDArray[np.int32]:
    """The reach, cut before the first end-of-sequence token."""
    reach = found.reach_of(1, settings.max_n)
    if not settings.eos:
        return reach
    numbers = np.arange(len(tokens.ids) + 1)
    is_eos = np.append(np.isin(tokens.ids, settings.eos), True)
    next_eos = np.minimum.accumulate(np.where(is_eos, numbers, len(tokens.ids))[::-1])[::-1]
    source = tokens.spread(tokens.starts[:-1]) + tokens.context_tokens - reach
    cut: NDArray[np.int32] = np.minimum(reach, next_eos[source] - source).astype(np.int32)
    return cut
