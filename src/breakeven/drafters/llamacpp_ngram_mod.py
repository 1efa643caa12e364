"""llama.cpp's ngram-mod: a hash of the last n tokens leads to the token that came next, in one shared table.

What common/ngram-mod.cpp and common/speculative.cpp do, for one slot: the table has no keys, so that an
n-gram of the same hash drafts another's token. It learns a prompt when its request begins, and the output
whenever more than 32 tokens, less n, are new. It is emptied after five drafts running of which less than a
quarter was accepted (of the draft before it was cut to the step's room), and when a request begins and has
filled it to more than a quarter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from breakeven.drafters import llamacpp_common
from breakeven.drafters.base import Drafter, Ids, Limits
from breakeven.drafters.compiler import kernel
from breakeven.drafters.settings import Settings, setting

SLOTS = 2**22
FACTOR = 6364136223846793005 % SLOTS
"""Of the hash in common/ngram-mod.cpp; a power of two many slots need no more of it."""
CHUNK = 32
LOW_DRAFTS = 5
GOOD_N = 16
"""Below it llama.cpp warns (common/speculative.cpp)."""
NAMES = {"n": "n_match", "min_k": "n_min", "k": "n_max"}


@dataclass(frozen=True, slots=True)
class NgramModSettings(Settings):
    """Sizes in tokens. With min_k > k only drafts of k are made."""

    n: int = setting(24, "tokens hashed to find the next one; below 16, drafts are poor", 1, 1024)
    min_k: int = setting(
        48,
        "tokens below which nothing is drafted; above k, drafts are of exactly k",
        0,
        1024,
    )
    k: int = setting(64, "tokens drafted at most", 0, 1024)

    def can_draft(self) -> bool:
        return self.k > 0


class LlamaNgramMod(Drafter[NgramModSettings]):
    """Follows the table from token to token, up to k or to an empty slot."""

    name = "llamacpp-ngram-mod"
    engine = llamacpp_common.ENGINE
    kind = "ngram-mod"
    summary = "a chain of next tokens by the hash of the n before, learned from all requests"
    Config = NgramModSettings
    learns = True
    steps_matter = True
    compiled = True

    def __init__(self, settings: NgramModSettings) -> None:
        super().__init__(settings)
        self._slots = np.zeros(SLOTS, np.int64)
        """Each holds generation · 2**32 + token; those of earlier generations are empty."""
        self._generation = 1
        self._used = 0
        self._learned = 0
        """n-grams of the request that begin before it are in the table."""
        self._drafted = 0
        """Tokens of the last draft, before it was cut to the step's room."""
        self._low_drafts = 0
        """Drafts running of which less than a quarter was accepted, over all requests."""
        self._outgoing = pow(FACTOR, settings.n, SLOTS)
        self._window = np.zeros(settings.n + settings.k, np.int32)

    def begin(self, prompt: Ids, limits: Limits) -> None:
        self._learned = self._drafted = 0
        if len(prompt) < self.settings.n:
            return
        self._learn(prompt)
        if 4 * self._used > SLOTS:
            self._empty()

    def propose(self, context: Ids, room: int) -> list[int]:
        self._drafted = 0
        known = context[:-1]
        if room < 1 or len(known) < self.settings.n:
            return []
        if self._learned + CHUNK < len(known):
            self._learn(known)
        drafted = self._chain(context)
        if drafted < min(self.settings.min_k, self.settings.k):
            return []
        self._drafted = drafted
        n = self.settings.n
        tokens: list[int] = self._window[n : n + min(drafted, room)].tolist()
        return tokens

    def accept(self, accepted: int) -> None:
        self._low_drafts = self._low_drafts + 1 if 4 * accepted < self._drafted else 0
        if self._low_drafts == LOW_DRAFTS:
            self._empty()
            self._low_drafts = self._learned = 0

    def room(self, context_tokens: int, output_tokens: int, limits: Limits) -> int:
        return llamacpp_common.room(context_tokens, output_tokens, limits)

    def warnings(self) -> tuple[str, ...]:
        return tuple(_traps(self.settings))

    def flags(self) -> str:
        return llamacpp_common.flags(self.kind, self.settings, NAMES)

    def _learn(self, known: Ids) -> None:
        n = self.settings.n
        self._used += learn(known, self._learned, n, self._outgoing, self._slots, self._generation)
        self._learned = len(known) - n

    def _chain(self, context: Ids) -> int:
        n = self.settings.n
        self._window[:n] = context[-n:]
        return int(chain(self._window, n, self._outgoing, self._slots, self._generation))

    def _empty(self) -> None:
        self._generation += 1
        self._used = 0


def _traps(settings: NgramModSettings) -> Iterator[str]:
    n, least, k = settings.n, settings.min_k, settings.k
    if not settings.can_draft():
        yield "k is 0: nothing is drafted: give a k of 64, its default"
    elif least > k:
        yield (
            f"min_k {least} is above k {k}: only drafts of exactly k tokens are made: "
            "give a min_k of 1 for shorter ones"
        )
    if n < GOOD_N:
        yield (
            f"n {n} is below {GOOD_N}: llama.cpp warns that drafts may be of poor quality: "
            f"give an n of {GOOD_N} or more"
        )


@kernel
def learn(tokens: Any, first: int, n: int, outgoing: int, slots: Any, generation: int) -> int:
    """Store the token after each n-gram that begins at `first` or later; returns how many slots were empty.

    tokens: shape (length,), at least n long; outgoing: FACTOR**n % SLOTS; slots: shape (SLOTS,).
    """
    filled = 0
    slot = slot_of(tokens, first, n)
    for i in range(first + n, len(tokens)):
        if slots[slot] >> 32 != generation:
            filled += 1
        slots[slot] = generation << 32 | int(tokens[i])
        slot = moved(slot, int(tokens[i - n]), int(tokens[i]), outgoing)
    return filled


@kernel
def chain(window: Any, n: int, outgoing: int, slots: Any, generation: int) -> int:
    """Write tokens after the first n of the window, until it is full or a slot is empty; returns how many.

    window: shape (n + k,).
    """
    slot = slot_of(window, 0, n)
    for i in range(n, len(window)):
        if slots[slot] >> 32 != generation:
            return i - n
        window[i] = slots[slot] & 0xFFFFFFFF
        slot = moved(slot, int(window[i - n]), int(window[i]), outgoing)
    return len(window) - n


@kernel
def slot_of(tokens: Any, first: int, n: int) -> int:
    """The slot of the n tokens from `first` on."""
    slot = 0
    for i in range(first, first + n):
        slot = (slot * FACTOR + int(tokens[i])) & (SLOTS - 1)
    return slot


@kernel
def moved(slot: int, leaving: int, entering: int, outgoing: int) -> int:
    """The slot of the n-gram one token further on."""
    return (slot * FACTOR - leaving * outgoing + entering) & (SLOTS - 1)
