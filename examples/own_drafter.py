"""A drafter of one's own: the token that followed the last token the last time, and so on, k times.

breakeven replay RUN --drafter own_drafter:LastTime --k 3
"""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.drafters.base import Drafter, Ids
from breakeven.drafters.settings import Settings, setting


@dataclass(frozen=True, slots=True)
class LastTimeSettings(Settings):
    k: int = setting(3, "tokens of a draft", low=1)


class LastTime(Drafter[LastTimeSettings]):
    name = "own-last-time"
    summary = "what followed the last token the last time"
    Config = LastTimeSettings

    def propose(self, context: Ids, room: int) -> list[int]:
        tokens = context.tolist()
        draft: list[int] = []
        while tokens and len(draft) < min(self.settings.k, room):
            earlier = [i for i in range(len(tokens) - 1) if tokens[i] == tokens[-1]]
            if not earlier:
                break
            draft.append(tokens[earlier[-1] + 1])
            tokens.append(draft[-1])
        return draft
