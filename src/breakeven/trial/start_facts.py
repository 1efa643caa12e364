"""StartFacts: what is known of one start of a service, to be held against another one's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from breakeven.servers.lifecycle import MadeOf
from breakeven.trial.confounded import between_sides, between_starts, log_facts, made_of, made_otherwise
from breakeven.trial.live_service import Service

FACTS = "log_facts"
"""Field of run.json: what the log told of the start (Dialect.facts)."""
MADE_OF = "made_of"
"""Field of run.json: what it was started from (Lifecycle.made_of)."""


@dataclass(frozen=True, slots=True)
class StartFacts:
    """Of the latest start when it was looked at."""

    logged: Mapping[str, str]
    made: MadeOf

    @classmethod
    async def of(cls, service: Service) -> StartFacts:
        """Never raises: what cannot be read is not known."""
        lifecycle = service.lifecycle
        return cls(await log_facts(lifecycle, service.dialect), await made_of(lifecycle))

    @classmethod
    def kept(cls, extra: Mapping[str, Any]) -> StartFacts:
        """Those of a run, as `to_json` wrote them."""
        return cls(extra.get(FACTS, {}), extra.get(MADE_OF, {}))

    def to_json(self) -> dict[str, Any]:
        """Fields of run.json."""
        return {FACTS: dict(self.logged), MADE_OF: dict(self.made)}

    def against(self, candidate: StartFacts) -> tuple[str, ...]:
        """What the other side has otherwise, a sentence each."""
        made = made_otherwise("the sides differ in", self.made, candidate.made)
        return (*between_sides(self.logged, candidate.logged), *made)

    def before(self, again: StartFacts) -> tuple[str, ...]:
        """What this side has otherwise once it was started again, a sentence each."""
        made = made_otherwise("the baseline came back with other", self.made, again.made)
        return (*between_starts(self.logged, again.logged), *made)
