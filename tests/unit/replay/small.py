"""A drafter small enough to follow by hand, and records for it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from breakeven.drafters.base import Draft, Drafter
from breakeven.drafters.settings import Settings, setting
from breakeven.replay.records import Origin, RecordedRequest
from breakeven.replay.sources import Source


@dataclass(frozen=True, slots=True)
class CountUpSettings(Settings):
    k: int = setting(2, "Most tokens of a draft.", low=1)
    after: int = setting(0, "Drafts only after this token or a higher one.")


class CountUp(Drafter[CountUpSettings]):
    """Drafts the numbers that follow the last token."""

    name = "count-up"
    Config = CountUpSettings

    def propose(self, context: Any, room: int) -> Draft:
        last = int(context[-1])
        return [last + 1 + i for i in range(self.settings.k)] if last >= self.settings.after else []


COUNT_UP = f"{CountUp.__module__}:CountUp"
"""The name under which a replay finds CountUp."""


class Held(Source):
    """Requests held in memory."""

    def __init__(self, requests: Iterable[RecordedRequest], temperature: float | None = 0.0) -> None:
        super().__init__(Origin("held", "jsonl", temperature))
        self.held = list(requests)

    def _requests(self):
        for request in self.held:
            if len(request.output):
                yield request
            else:
                self._skip("empty output")


def recorded(
    prompt: list[int], output: list[int], id: str = "r", category: str = "count", **more: Any
) -> RecordedRequest:
    return RecordedRequest(id, category, np.array(prompt, np.int32), np.array(output, np.int32), **more)
