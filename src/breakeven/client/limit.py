"""ReplyLimit: how long a reply may grow before its server is taken for one that ignores max_tokens."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.client.chunks import ChunkReader
from breakeven.errors import StreamError

TOKENS = 4
"""Times max_tokens that a reply may have."""
CHUNKS = 16
"""Times max_tokens that a reply may have chunks: some servers send a token character by character."""
MORE = 256
"""Tokens and chunks that any reply may have beyond those, so that a short one is not cut off."""
REASONING = 32_768
"""Further ones for a reply that reasons: some hosted APIs do not count that against max_tokens."""


@dataclass(frozen=True, slots=True)
class ReplyLimit:
    """Generous: to end what has no end, not to judge how exactly a server obeys."""

    max_tokens: int

    def check(self, reader: ChunkReader) -> None:
        """Raises StreamError where a reply that has not ended has too many chunks, or known tokens."""
        more = MORE + (REASONING if reader.reasoning else 0)
        tokens, chunks = reader.known_tokens, reader.chunks
        if tokens > TOKENS * self.max_tokens + more and reader.finish_reason is None:
            raise self._ignored(f"{tokens:,} tokens")
        if chunks > CHUNKS * self.max_tokens + more and not reader.done:
            raise self._ignored(f"{chunks:,} chunks")

    def _ignored(self, came: str) -> StreamError:
        return StreamError(
            f"the server ignores max_tokens: {came} came where {self.max_tokens:,} tokens were asked for, "
            "without an end: update the server, or ask it itself instead of a gateway that drops max_tokens"
        )
