"""Windows: the counters of one side's server, read at both ends of each time in which it is asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from breakeven.acceptance import load
from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.meter import Meter
from breakeven.acceptance.page import Page
from breakeven.acceptance.prometheus import between
from breakeven.client.asker import Asker
from breakeven.latency.asked import asked_of
from breakeven.trace.records import RequestTrace


@dataclass(slots=True)
class Windows:
    """A server that once had no page, or could not be read, is not asked for it again."""

    asker: Asker
    meter: Meter = field(default_factory=Meter)
    _tells: bool = True

    async def open(self) -> Page | None:
        """To be called where nothing is in flight, before the first request of a window."""
        page = await self.asker.page() if self._tells else None
        self._tells = page is not None
        return page

    async def close(self, before: Page | None, traces: Iterable[RequestTrace]) -> SpecCounters | None:
        """What was counted since `before` was read, while the requests of these traces were asked; None where
        the server counted other requests or tokens than theirs."""
        if before is None:
            return None
        after, asked = await self.asker.page(), asked_of(traces)
        self.meter = self.meter.add(before, after, asked)
        if after is None or not asked.fits(load.between(before.load, after.load)):
            return None
        return between(before, after)
