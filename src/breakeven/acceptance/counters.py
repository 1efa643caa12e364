"""SpecCounters: what a server or a replay counted about speculation, and the ratios made from it.

Raw counts travel; ratios are made here, at the edge, beside their definition. A count that a source does
not give is None (unknown), and every ratio that needs it is None too: never 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

DEFINITIONS = {
    "acceptance_rate": "accepted draft tokens / drafted tokens",
    "mean_acceptance_length": "1 + accepted tokens / drafts, over steps that drafted, as vLLM defines it",
    "tokens_per_step": "emitted tokens / all decode steps, whether or not they drafted",
    "draft_share": "steps that drafted / all decode steps",
}

LEAST_DRAFTS = 100
"""Before anything is concluded from shares of drafts: one of 100 has a standard error of up to 5 points."""
MAX_COUNT = 2**53
"""Beyond it a Prometheus value, which is a float, no longer counts by ones; nor does any server get there."""


@dataclass(frozen=True, slots=True)
class SpecCounters:
    """Counts over some requests. None is unknown."""

    steps: int | None = None
    """Decode steps of the target model, drafted or not; the prefill that gives the first token is none."""
    drafts: int | None = None
    """Steps in which at least one token was drafted."""
    drafted_tokens: int | None = None
    accepted_tokens: int | None = None
    """Also those of a last step that the end of the reply cut off, where the source counts them."""
    accepted_per_position: tuple[int, ...] | None = None
    """accepted_per_position[i] counts drafts of which at least i + 1 tokens were accepted."""
    source: str = ""
    """Where the counts come from, such as `vllm /metrics` or `llama.cpp timings`."""
    emitted_tokens: int | None = None
    """Tokens of the decode steps that are in the replies: each request's but its first. Where it is unknown a
    step is taken to emit one token and those accepted in it."""

    def __add__(self, other: SpecCounters) -> SpecCounters:
        source = self.source if other.source in self.source else f"{self.source}, {other.source}"
        return _each(self, other, lambda a, b: a + b, source)

    def __sub__(self, earlier: SpecCounters) -> SpecCounters:
        """What was counted since `earlier`, an earlier state of the same counters (see `fell`)."""
        return _each(self, earlier, lambda now, before: now - before, self.source)

    @property
    def acceptance_rate(self) -> float | None:
        return _ratio(self.accepted_tokens, self.drafted_tokens)

    @property
    def mean_acceptance_length(self) -> float | None:
        per_draft = _ratio(self.accepted_tokens, self.drafts)
        return None if per_draft is None else 1 + per_draft

    @property
    def tokens_per_step(self) -> float | None:
        if self.emitted_tokens is not None:
            return _ratio(self.emitted_tokens, self.steps)
        per_step = _ratio(self.accepted_tokens, self.steps)
        return None if per_step is None else 1 + per_step

    @property
    def draft_share(self) -> float | None:
        return _ratio(self.drafts, self.steps)


def possible(counters: SpecCounters) -> SpecCounters | None:
    """The counts, or None where they contradict themselves: more tokens accepted than were drafted, or more
    drafts accepted to some position than there were."""
    drafted, accepted = counters.drafted_tokens, counters.accepted_tokens
    drafts, reached = counters.drafts, max(counters.accepted_per_position or (0,))
    too_many = drafted is not None and accepted is not None and accepted > drafted
    return None if too_many or (drafts is not None and reached > drafts) else counters


def fell(earlier: SpecCounters, later: SpecCounters) -> bool:
    """Whether any count is lower than it was: no counter falls while its server runs (sglang#29329)."""
    change = later - earlier
    counts = (*(getattr(change, name) for name in COUNTS), *(change.accepted_per_position or ()))
    return any(count is not None and count < 0 for count in counts)


COUNTS = ("steps", "drafts", "drafted_tokens", "accepted_tokens", "emitted_tokens")
"""The fields that are one number."""


def _each(a: SpecCounters, b: SpecCounters, join: Callable[[int, int], int], source: str) -> SpecCounters:
    """Count by count; one that either side does not know is unknown."""
    counts = {name: _both(getattr(a, name), getattr(b, name), join) for name in COUNTS}
    positions = None
    if a.accepted_per_position is not None and b.accepted_per_position is not None:
        pairs = zip_longest(a.accepted_per_position, b.accepted_per_position, fillvalue=0)
        positions = tuple(join(*pair) for pair in pairs)
    return SpecCounters(**counts, accepted_per_position=positions, source=source)


def _both(a: int | None, b: int | None, join: Callable[[int, int], int]) -> int | None:
    return None if a is None or b is None else join(a, b)


def _ratio(numerator: int | None, denominator: int | None) -> float | None:
    return None if numerator is None or not denominator else numerator / denominator
