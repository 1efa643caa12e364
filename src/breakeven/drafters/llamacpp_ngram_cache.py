"""llama.cpp's ngram-cache: counts of the token after each 1-, 2-, 3- and 4-gram of a slot's context.

What common/ngram-cache.cpp and common/speculative.cpp do, for one slot without look-up files: each step
learns from the tokens that are new since the last one, by themselves, so that no n-gram across the border of
two steps is ever counted. How many tokens were learned is never reset: the next request teaches nothing up to
that length, whatever its tokens. In a context of two or three tokens llama.cpp also looks up n-grams that
begin before it, in memory that holds anything; here there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.drafters import llamacpp_common
from breakeven.drafters.base import Drafter, Ids, Limits
from breakeven.drafters.settings import Settings

MAX_N = 4
"""LLAMA_NGRAM_MAX."""
MIN_CONTEXT = 2
"""LLAMA_NGRAM_STATIC."""
MAX_DRAFT = 8
"""n_draft in common/speculative.cpp, which no flag changes."""
MIN_SEEN = (2, 2, 1, 1)
"""Times that an n-gram of size 1, 2, 3, 4 must have been seen: draft_min_sample_size_lax."""
MIN_PERCENT = (66, 50, 50, 50)
"""Of these, with the token that is drafted: draft_min_percent_lax."""


@dataclass(frozen=True, slots=True)
class NgramCacheSettings(Settings):
    """It has no settings."""


class _Followers:
    """The tokens seen after one n-gram."""

    __slots__ = ("best", "counts", "newest", "seen")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.seen = 0
        self.best = self.newest = -1

    def add(self, token: int) -> None:
        """Of two tokens alike in count, the one first seen later is best: libstdc++'s unordered_map puts it
        first. Between three or more it does not matter, as none of them has half of the count."""
        count = self.counts.get(token, 0) + 1
        self.counts[token] = count
        self.seen += 1
        if count == 1:
            self.newest = token
        most = self.counts.get(self.best, 0)
        if count > most or (count == most and token == self.newest):
            self.best = token

    def certain(self, n: int) -> bool:
        """Whether the best is drafted after an n-gram of this size."""
        enough = 100 * self.counts[self.best] >= MIN_PERCENT[n - 1] * self.seen
        return enough and self.seen >= MIN_SEEN[n - 1]


class LlamaNgramCache(Drafter[NgramCacheSettings]):
    """Drafts token by token, each after the longest n-gram whose followers agree enough."""

    name = "llamacpp-ngram-cache"
    engine = llamacpp_common.ENGINE
    kind = "ngram-cache"
    summary = "the most frequent token after the longest of 4 to 1 tokens, up to 8 times"
    Config = NgramCacheSettings
    learns = True
    steps_matter = True

    def __init__(self, settings: NgramCacheSettings) -> None:
        super().__init__(settings)
        self._followers: dict[tuple[int, ...], _Followers] = {}
        self._learned = 0
        """Tokens of the longest context yet."""

    def propose(self, context: Ids, room: int) -> list[int]:
        if room < 1:
            return []
        self._learn(context[self._learned :].tolist())
        self._learned = max(self._learned, len(context))
        if len(context) < MIN_CONTEXT:
            return []
        return self._chain(context[-MAX_N:].tolist(), min(room, MAX_DRAFT))

    def room(self, context_tokens: int, output_tokens: int, limits: Limits) -> int:
        return llamacpp_common.room(context_tokens, output_tokens, limits)

    def flags(self) -> str:
        return llamacpp_common.flags(self.kind, self.settings, {})

    def _learn(self, new: Sequence[int]) -> None:
        for i in range(1, len(new)):
            for n in range(1, min(i, MAX_N) + 1):
                ngram = tuple(new[i - n : i])
                followers = self._followers.get(ngram)
                if followers is None:
                    followers = self._followers[ngram] = _Followers()
                followers.add(new[i])

    def _chain(self, tokens: list[int], most: int) -> list[int]:
        known = len(tokens)
        while len(tokens) < known + most:
            token = self._next(tokens)
            if token is None:
                break
            tokens.append(token)
        return tokens[known:]

    def _next(self, tokens: Sequence[int]) -> int | None:
        for n in range(min(MAX_N, len(tokens)), 0, -1):
            followers = self._followers.get(tuple(tokens[-n:]))
            if followers is not None and followers.certain(n):
                return followers.best
        return None
