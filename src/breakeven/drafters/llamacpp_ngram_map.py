"""llama.cpp's ngram-map-k and ngram-map-k4v: an index of the n-grams of one slot, kept between requests.

What common/ngram-map.cpp does, in positions of prompt and output, for one slot:

- A draft follows an earlier place of the last n tokens: the one in the n-gram's bucket, or else the latest
  place not indexed yet. Then all places up to n + m + 2 tokens before the end of the context are indexed. A
  bucket keeps its first place; other n-grams of the same hash are not found there later.
- The last n + m + 1 places of the prompt are never indexed.
- Every n-gram that was found is a key with the number of draft tokens accepted last, which no later draft of
  that key (for k4v: of that continuation) exceeds; after 0 it drafts no more.
- Places, not tokens, are kept between requests: those in the earlier prompt if the next prompt is shorter
  than the earlier request, all of them if it is not. They stand for whichever tokens are there then.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np

from breakeven.drafters import llamacpp_common
from breakeven.drafters.base import Drafter, Ids, Limits
from breakeven.drafters.compiler import kernel
from breakeven.drafters.settings import Settings, setting

BUCKETS = 2**18
"""COMMON_NGRAM_HASH_MAP_SIZE."""
FACTOR = 2654435761 % BUCKETS
"""LCG_FACTOR; a power of two many buckets need no more of it."""
MOST_COUNTED = 16380
"""COMMON_NGRAM_MAX_VALUE_COUNT."""
CONTINUATIONS = 4
"""COMMON_NGRAM_MAX_VALUES."""


@dataclass(frozen=True, slots=True)
class NgramMapKSettings(Settings):
    """Sizes in tokens. --spec-ngram-map-k-min-hits exists, but nothing reads it."""

    n: int = setting(12, "tokens that must have occurred before", 1, 1024)
    k: int = setting(48, "tokens drafted at most", 1, 1024)


@dataclass(frozen=True, slots=True)
class NgramMapK4VSettings(NgramMapKSettings):
    """Sizes in tokens."""

    min_hits: int = setting(1, "times that an n-gram must have been found before it drafts", 1, 65535)


S = TypeVar("S", bound=NgramMapKSettings)


@dataclass(slots=True)
class _Continuation:
    """The m tokens from `place` on, after a key."""

    place: int
    most: int
    """Draft tokens accepted last; m before the first draft."""
    seen: int = 0


@dataclass(slots=True)
class _Key:
    """An n-gram that was found; it is the one at `place`, whichever tokens are there."""

    place: int
    found: int = 0
    counted_from: int = 0
    """Continuations of places before it are counted."""
    continuations: list[_Continuation] = field(default_factory=list)


class _NgramMap(Drafter[S]):
    engine = llamacpp_common.ENGINE
    kind: ClassVar[str]
    learns = True
    steps_matter = True
    compiled = True

    def __init__(self, settings: S) -> None:
        super().__init__(settings)
        self._buckets = np.zeros(BUCKETS, np.int32)
        self._indexed = 0
        """Places up to here are in their buckets, or never will be."""
        self._prompt_tokens = 0
        self._checked = 0
        """Tokens before the one sampled last, at the latest look-up."""
        self._keys: list[_Key] = []
        self._by_ngram: dict[bytes, _Key] = {}
        self._drafted: _Continuation | None = None

    def begin(self, prompt: Ids, limits: Limits) -> None:
        if len(prompt) < self._checked:
            self._forget_from(self._first_outdated(len(prompt)))
        self._by_ngram = {}
        for key in self._keys:
            self._by_ngram.setdefault(self._ngram(prompt, key.place), key)
        self._checked = self._prompt_tokens = len(prompt)

    def propose(self, context: Ids, room: int) -> list[int]:
        n, m = self.settings.n, self.settings.k
        self._drafted = None
        if room < 1 or len(context) - 1 < 2 * n + m:
            return []
        self._checked = len(context) - 1
        place = self._find(context)
        if place == 0:
            return []
        key = self._key(context, place)
        key.found = min(key.found + 1, MOST_COUNTED)
        self._drafted = self._choose(key, context, place)
        if self._drafted is None:
            return []
        drafted: list[int] = context[place + n : place + n + min(self._drafted.most, room)].tolist()
        return drafted

    def accept(self, accepted: int) -> None:
        if self._drafted is not None:
            self._drafted.most = accepted

    def room(self, context_tokens: int, output_tokens: int, limits: Limits) -> int:
        return llamacpp_common.room(context_tokens, output_tokens, limits)

    def flags(self) -> str:
        return llamacpp_common.flags(self.kind, self.settings, llamacpp_common.SIZES)

    @abstractmethod
    def _choose(self, key: _Key, context: Ids, place: int) -> _Continuation | None:
        """The continuation that limits the draft and learns from it; None is no draft."""

    def _first_outdated(self, prompt_tokens: int) -> int:
        if prompt_tokens >= self._prompt_tokens:
            return self._prompt_tokens
        return max(0, prompt_tokens - self.settings.n - self.settings.k)

    def _forget_from(self, place: int) -> None:
        self._buckets[self._buckets >= place] = 0
        self._indexed = max(0, place - 1)
        self._keys = [key for key in self._keys if key.place < place and self._keep(key, place)]

    def _keep(self, key: _Key, place: int) -> bool:
        return True

    def _ngram(self, context: Ids, place: int) -> bytes:
        return context[place : place + self.settings.n].tobytes()

    def _find(self, context: Ids) -> int:
        n, m = self.settings.n, self.settings.k
        place = find_and_index(context, n, m, self._buckets, self._prompt_tokens, self._indexed)
        self._indexed = max(self._indexed, len(context) - n - m - 2)
        return int(place)

    def _key(self, context: Ids, place: int) -> _Key:
        ngram = self._ngram(context, place)
        key = self._by_ngram.get(ngram)
        if key is None:
            key = self._by_ngram[ngram] = _Key(place)
            self._keys.append(key)
        return key


class LlamaNgramMapK(_NgramMap[NgramMapKSettings]):
    """Drafts what followed the place found, at most as many tokens as its n-gram's last draft got right."""

    name = "llamacpp-ngram-map-k"
    kind = "ngram-map-k"
    summary = "what followed the last n tokens earlier, as far as it was right the last time"
    Config = NgramMapKSettings

    def _choose(self, key: _Key, context: Ids, place: int) -> _Continuation:
        if not key.continuations:
            key.continuations.append(_Continuation(place, self.settings.k))
        return key.continuations[0]


class LlamaNgramMapK4V(_NgramMap[NgramMapK4VSettings]):
    """Counts up to four continuations of an n-gram; drafts if the most frequent has twice all the others.

    The draft is what followed the place found, even if that is not the most frequent continuation.
    """

    name = "llamacpp-ngram-map-k4v"
    kind = "ngram-map-k4v"
    summary = "as ngram-map-k, if one of up to four continuations is twice as frequent as the others"
    Config = NgramMapK4VSettings

    def _choose(self, key: _Key, context: Ids, place: int) -> _Continuation | None:
        if key.found < self.settings.min_hits:
            return None
        self._count(key, context, place)
        best = max(key.continuations, key=lambda one: one.seen)
        others = sum(one.seen for one in key.continuations) - best.seen
        return best if best.seen >= 2 * others else None

    def _count(self, key: _Key, context: Ids, place: int) -> None:
        """Count those from where counting stopped to the place found, which so counts again each time."""
        at = key.counted_from
        while (at := int(next_place(context, self.settings.n, at, place))) >= 0:
            one = self._continuation(key, context, at + self.settings.n)
            if one is not None:
                one.seen = min(one.seen + 1, MOST_COUNTED)
            at += 1
        key.counted_from = place

    def _continuation(self, key: _Key, context: Ids, place: int) -> _Continuation | None:
        m = self.settings.k
        wanted = context[place : place + m].tobytes()
        for one in key.continuations:
            if context[one.place : one.place + m].tobytes() == wanted:
                return one
        if len(key.continuations) == CONTINUATIONS:
            return None
        key.continuations.append(_Continuation(place, m))
        return key.continuations[-1]

    def _keep(self, key: _Key, place: int) -> bool:
        key.continuations = [one for one in key.continuations if one.place < place]
        return bool(key.continuations)


@kernel
def find_and_index(context: Any, n: int, m: int, buckets: Any, prompt_tokens: int, indexed: int) -> int:
    """An earlier place of the last n tokens, 0 if none is found; then puts new places into their buckets.

    context: shape (length,), at least 2n + m + 1 long; buckets: a place of each hash, 0 where there is none,
    shape (BUCKETS,); indexed: places up to here are not looked at one by one.
    """
    key = len(context) - n
    last = key - m - 2
    in_prompt = prompt_tokens - n - m - 1
    in_output = max(prompt_tokens, indexed)
    found = int(buckets[bucket(context, key, n)])
    if not (0 < found < last and same(context, found, key, n)):
        found = latest_place(context, n, in_prompt, indexed)
        if found == 0:
            found = latest_place(context, n, last, in_output)
    index(context, n, buckets, in_prompt, indexed)
    index(context, n, buckets, last, in_output)
    return found


@kernel
def latest_place(context: Any, n: int, last: int, before: int) -> int:
    """The latest place p of the last n tokens with before < p <= last; 0 if there is none."""
    for place in range(last, before, -1):
        if same(context, place, len(context) - n, n):
            return place
    return 0


@kernel
def next_place(context: Any, n: int, first: int, last: int) -> int:
    """The earliest place p of the last n tokens with first <= p <= last; −1 if there is none."""
    for place in range(first, last + 1):
        if same(context, place, len(context) - n, n):
            return place
    return -1


@kernel
def index(context: Any, n: int, buckets: Any, last: int, before: int) -> None:
    """Put the places p with before < p <= last into their buckets, the latest first, where still empty."""
    for place in range(last, before, -1):
        at = bucket(context, place, n)
        if buckets[at] == 0:
            buckets[at] = place


@kernel
def bucket(context: Any, place: int, n: int) -> int:
    """Which bucket the n tokens from `place` on belong to."""
    found = 0
    for i in range(place, place + n):
        found = (found * FACTOR + int(context[i])) & (BUCKETS - 1)
    return found


@kernel
def same(context: Any, a: int, b: int, n: int) -> bool:
    """Whether the n tokens from a on are those from b on."""
    for i in range(n):  # noqa: SIM110  a kernel has no generator expressions
        if context[a + i] != context[b + i]:
            return False
    return True
