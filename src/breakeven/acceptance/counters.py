"""SpecCounters: what a server or a replay counted about speculation, and the ratios made from it.

Raw counts travel; ratios are made here, at the edge, beside their definition. A count that a source does
not give is None (unknown), and every ratio that needs it is None too: never 0.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFINITIONS = {
    "acceptance_rate": "accepted draft tokens / drafted tokens",
    "mean_acceptance_length": "1 + accepted tokens / drafts, over steps that drafted, as vLLM defines it",
    "tokens_per_step": "emitted tokens / all decode steps, whether or not they drafted",
    "draft_share": "steps that drafted / all decode steps",
}

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
    accepted_per_position: tuple[int, ...] | None = None
    """accepted_per_position[i] counts drafts of which at least i + 1 tokens were accepted."""
    source: str = ""
    """Where the counts come from, such as `vllm /metrics` or `llama.cpp timings`."""

    def __add__(self, other: SpecCounters) -> SpecCounters:
        return SpecCounters(
            steps=_add(self.steps, other.steps),
            drafts=_add(self.drafts, other.drafts),
            drafted_tokens=_add(self.drafted_tokens, other.drafted_tokens),
            accepted_tokens=_add(self.accepted_tokens, other.accepted_tokens),
            accepted_per_position=_add_positions(self.accepted_per_position, other.accepted_per_position),
            source=self.source if other.source in self.source else f"{self.source}, {other.source}",
        )

    @property
    def acceptance_rate(self) -> float | None:
        return _ratio(self.accepted_tokens, self.drafted_tokens)

    @property
    def mean_acceptance_length(self) -> float | None:
        per_draft = _ratio(self.accepted_tokens, self.drafts)
        return None if per_draft is None else 1 + per_draft

    @property
    def tokens_per_step(self) -> float | None:
        """Every decode step emits one token of the target's own and those accepted in it."""
        per_step = _ratio(self.accepted_tokens, self.steps)
        return None if per_step is None else 1 + per_step

    @property
    def draft_share(self) -> float | None:
        return _ratio(self.drafts, self.steps)


def possible(counters: SpecCounters) -> SpecCounters | None:
    """The counts, or None where they contradict themselves: more tokens accepted than were drafted."""
    drafted, accepted = counters.drafted_tokens, counters.accepted_tokens
    return None if drafted is not None and accepted is not None and accepted > drafted else counters


def _add(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _add_positions(a: tuple[int, ...] | None, b: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if a is None or b is None:
        return None
    length = max(len(a), len(b))
    padded = (values + (0,) * (length - len(values)) for values in (a, b))
    return tuple(sum(pair) for pair in zip(*padded, strict=True))


def _ratio(numerator: int | None, denominator: int | None) -> float | None:
    return None if numerator is None or not denominator else numerator / denominator
