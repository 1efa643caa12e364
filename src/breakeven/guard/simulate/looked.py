"""Looked: a whole record, with the longest match at every output position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters import vllm_common
from breakeven.drafters._ngram_tables import first_occurrences
from breakeven.drafters.tokens import Tokens
from breakeven.guard.settings import GuardSettings
from breakeven.replay.batches import Batch, batch_of
from breakeven.replay.records import FirstToken
from breakeven.replay.run import FIRST
from breakeven.replay.sources import Source

Int32s = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Looked:
    """What a guard finds if the context ends before each output token; arrays of shape (positions,)."""

    batch: Batch
    first: int
    """Output tokens of each request before its first step."""
    length: Int32s
    """Tokens of the longest match; 0 without one, or without room for a draft."""
    period: Int32s
    """Tokens from the end of the match to the end of the context."""
    available: Int32s
    """Tokens of the candidate draft."""
    agreed: Int32s
    """Of them, how many the record goes on with."""

    @property
    def tokens(self) -> Tokens:
        return self.batch.tokens


def look(source: Source, settings: GuardSettings, first_token: FirstToken) -> Looked:
    """Read the record, and look up every context of it. All of it is held in memory."""
    batch = batch_of(list(source))
    tokens, most = batch.tokens, settings.most_tokens
    found = first_occurrences(tokens, settings.least_match, [settings.most_match], most)
    table = found.table(found.reach[0], settings.most_match, most, vllm_common.rooms(tokens, most))
    length = np.where(table.drafted > 0, found.length, np.int32(0))
    return Looked(batch, FIRST[first_token], length, found.reach[0], table.drafted, table.accepted)
