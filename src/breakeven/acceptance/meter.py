"""Meter: what a server counted in the windows of time in which it was asked, beside what was asked of it.

A window begins with a page read before its first request and ends with one read after its last reply: warm-up
and preflight are outside, and nothing that was asked is in flight at either end.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from breakeven.acceptance import load, prometheus
from breakeven.acceptance.combine import total
from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.acceptance.page import Page
from breakeven.units import count

FOREIGN = "other traffic shared the server"
"""Begins the warning of it."""
RESET = (
    "the server started anew while it was asked, for its counters fell: what they counted in that time is "
    "not known"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked in a window."""

    requests: int = 0
    output_tokens: int | None = 0
    """Of all replies; None where one failed, or does not say."""
    longest: int = 0
    """Output tokens of the longest reply."""

    def __add__(self, other: Asked) -> Asked:
        known = self.output_tokens is not None and other.output_tokens is not None
        return Asked(
            self.requests + other.requests,
            (self.output_tokens or 0) + (other.output_tokens or 0) if known else None,
            max(self.longest, other.longest),
        )

    def fits(self, work: Load) -> bool:
        """Whether a server that did this `work` did nothing else, as far as it counts it. It may count the
        end of a request after its reply, but not its tokens."""
        if work.requests is not None and work.requests > self.requests:
            return False
        return work.output_tokens is None or self.output_tokens in (None, work.output_tokens)


@dataclass(frozen=True, slots=True)
class Meter:
    """Sums over the windows whose two pages were read, and in which the server did not start anew."""

    counters: SpecCounters | None = None
    """None where no window counted any."""
    load: Load | None = None
    asked: Asked = field(default_factory=Asked)
    resets: int = 0
    """Windows in which it did."""
    notes: tuple[str, ...] = ()
    """What qualifies the counts, as the last page says it."""
    late: int = 1
    """Requests that may be counted in the first window though they ended before it: servers send the end of a
    reply, and answer for their page, before they count it. They were warm-up, of the same prompts: no longer
    than the longest reply. Between windows nothing can be counted twice."""

    def add(self, before: Page | None, after: Page | None, asked: Asked) -> Meter:
        """With one window more."""
        if before is None or after is None:
            return self
        if prometheus.is_reset(before, after):
            return replace(self, resets=self.resets + 1)
        counted, work = prometheus.between(before, after), load.between(before.load, after.load)
        return replace(
            self,
            counters=total((self.counters, counted)),
            load=total((self.load, work)),
            asked=self.asked + asked,
            notes=after.notes,
        )

    def on_top_of(self, counters: SpecCounters | None, work: Load | None) -> Meter:
        """With what earlier windows counted; `asked` stays that of these."""
        return replace(self, counters=total((counters, self.counters)), load=total((work, self.load)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes the counts mean something else, sentences. To be asked before `on_top_of`."""
        foreign = self._foreign()
        return (*((RESET,) if self.resets else ()), *((foreign,) if foreign else ()))

    def _foreign(self) -> str | None:
        if self.load is None:
            return None
        asked, finished, tokens = self.asked, self.load.requests, self.load.output_tokens
        more = finished is not None and finished > asked.requests + self.late
        if asked.output_tokens is not None and tokens is not None:
            more |= tokens > asked.output_tokens + self.late * asked.longest
        if not more:
            return None
        did = _both(None if finished is None else count(finished, "request"), tokens)
        ours = _both(count(asked.requests, "request"), asked.output_tokens)
        return (
            f"{FOREIGN}: it finished {did} while {ours} were asked of it; times, and "
            "what its page counted, are not of these alone"
        )


def _both(requests: str | None, tokens: int | None) -> str:
    parts = [requests, None if tokens is None else f"{tokens:,} output tokens"]
    return " with ".join(part for part in parts if part)
