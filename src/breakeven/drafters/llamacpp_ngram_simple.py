"""llamacpp-ngram-simple: llama.cpp's ngram-simple, which looks up one n-gram length and keeps no index.

What `common_ngram_simple_draft` in common/ngram-map.cpp does, in positions of prompt and output. The engine
keeps the token sampled last apart from the others, and drafts from these alone:

- The latest earlier occurrence of the context's last n tokens counts, if it neither starts at the first token
  nor ends at the last but one.
- The draft is the k tokens that followed it, or as many as there are before the last token of the context.
- There is none if these are fewer than n, though an earlier occurrence may have more; and none in a context
  of n + k + 2 tokens or fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters import llamacpp_common
from breakeven.drafters._ngram_latest import look_up_latest
from breakeven.drafters._ngram_tables import earlier_ends
from breakeven.drafters.base import Ids, Limits, Table, TableDrafter
from breakeven.drafters.settings import Settings, setting
from breakeven.drafters.tokens import Tokens


@dataclass(frozen=True, slots=True)
class NgramSimpleSettings(Settings):
    """Sizes in tokens. --spec-ngram-simple-min-hits exists, but nothing reads it."""

    n: int = setting(12, "tokens that must have occurred before", 1, 1024)
    k: int = setting(48, "tokens drafted at most; below n, nothing is drafted", 1, 1024)

    def can_draft(self) -> bool:
        return self.k >= self.n


class LlamaNgramSimple(TableDrafter[NgramSimpleSettings]):
    """Drafts what followed the latest occurrence of the last n tokens."""

    name: ClassVar[str] = "llamacpp-ngram-simple"
    engine: ClassVar[str] = llamacpp_common.ENGINE
    summary: ClassVar[str] = "what followed the last n tokens the last time"
    Config: ClassVar[type[Settings]] = NgramSimpleSettings
    compiled: ClassVar[bool] = True

    def propose(self, context: Ids, room: int) -> list[int]:
        n, k = self.settings.n, self.settings.k
        if len(context) <= n + k + 2:
            return []
        known = context[:-1]
        ends = earlier_ends(context, n)
        ends = ends[(ends > n) & (ends < len(known))]
        draft = known[ends[-1] :][:k].tolist() if len(ends) else []
        return draft[: max(0, room)] if len(draft) >= n else []

    def room(self, context_tokens: int, output_tokens: int, limits: Limits) -> int:
        return llamacpp_common.room(context_tokens, output_tokens, limits)

    def warnings(self) -> tuple[str, ...]:
        n, k = self.settings.n, self.settings.k
        if self.settings.can_draft():
            return ()
        return (
            f"k {k} is below n {n}: llama.cpp drops drafts shorter than n, so that nothing is drafted: "
            f"give a k of {n} or more",
        )

    def flags(self) -> str:
        return llamacpp_common.flags("ngram-simple", self.settings, llamacpp_common.SIZES)

    def table(self, tokens: Tokens) -> Table:
        return next(self.tables(tokens, [self.settings]))

    @classmethod
    def tables(cls, tokens: Tokens, settings: Sequence[NgramSimpleSettings]) -> Iterator[Table]:
        """One pass over the tokens for each n."""
        most = {one.n: max(other.k for other in settings if other.n == one.n) for one in settings}
        found = {n: _latest(tokens, n, k) for n, k in most.items()}
        context, rooms = tokens.context_tokens, llamacpp_common.rooms(tokens, max(most.values(), default=0))
        for one in settings:
            reach, agreed = found[one.n]
            drafted = np.minimum(reach, np.int32(one.k))
            drafted[(drafted < one.n) | (context <= one.n + one.k + 2)] = 0
            if rooms is not None:
                np.minimum(drafted, rooms, out=drafted)
            yield Table(drafted, np.minimum(agreed, drafted))


def _latest(tokens: Tokens, n: int, k: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    longest = int(np.diff(tokens.starts).max(initial=0))
    table = np.zeros(1 << (2 * longest).bit_length(), np.int64)
    hashes = np.zeros(longest + 1, np.int64)
    reach, agreed = (np.empty(tokens.positions[-1], np.int32) for _ in range(2))
    look_up_latest(tokens.ids, tokens.starts, tokens.outputs, n, k, table, hashes, reach, agreed)
    return reach, agreed
