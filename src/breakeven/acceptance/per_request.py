"""Speculation counts that a server puts into the reply of one request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from breakeven.acceptance.counters import MAX_COUNT, SpecCounters, possible


def from_chunk(chunk: Mapping[str, Any], output_tokens: int | None) -> SpecCounters | None:
    """Counts of the chunk that carries vLLM's `metrics` or llama.cpp's `timings`; None where it says nothing
    of speculation, or what cannot be.

    `output_tokens` (N, from usage) gives the decode steps: the prefill emits the first token, and every
    decode step one more and those accepted in it, so steps = N − 1 − accepted.
    """
    metrics = chunk.get("metrics")
    if isinstance(metrics, Mapping) and isinstance(metrics.get("speculative_decoding"), Mapping):
        return possible(_from_vllm(metrics["speculative_decoding"], output_tokens))
    timings = chunk.get("timings")
    if isinstance(timings, Mapping):
        return possible(_from_llamacpp(timings, output_tokens))
    return None


def _from_vllm(spec: Mapping[str, Any], output_tokens: int | None) -> SpecCounters:
    """vLLM's num_spec_steps counts the steps that drafted; its histogram counts them by accepted length."""
    accepted = _count(spec.get("num_accepted_draft_tokens"))
    drafts = _count(spec.get("num_spec_steps"))
    return SpecCounters(
        steps=_steps(output_tokens, accepted, drafts),
        drafts=drafts,
        drafted_tokens=_count(spec.get("num_draft_tokens")),
        accepted_tokens=accepted,
        accepted_per_position=_at_least(spec.get("acceptance_histogram")),
        source="vLLM metrics in the reply",
    )


def _from_llamacpp(timings: Mapping[str, Any], output_tokens: int | None) -> SpecCounters:
    """llama.cpp leaves draft_n out when nothing was drafted, and never says in how many steps it drafted."""
    drafted = _count(timings.get("draft_n", 0))
    accepted = _count(timings.get("draft_n_accepted", 0))
    return SpecCounters(
        steps=_steps(output_tokens, accepted, None),
        drafts=0 if drafted == 0 else None,
        drafted_tokens=drafted,
        accepted_tokens=accepted,
        source="llama.cpp timings in the reply",
    )


def _steps(output_tokens: int | None, accepted: int | None, drafts: int | None) -> int | None:
    """A last step may have accepted tokens beyond the reply's end: steps are never fewer than drafts."""
    if output_tokens is None or accepted is None:
        return None
    return max(output_tokens - 1 - accepted, drafts or 0, 0)


def _at_least(histogram: Any) -> tuple[int, ...] | None:
    """[drafts with exactly 0, 1, … accepted] → (drafts with at least 1, 2, … accepted)."""
    if not isinstance(histogram, Sequence) or isinstance(histogram, str):
        return None
    counts = [_count(value) for value in histogram]
    if any(count is None for count in counts):
        return None
    known = [count for count in counts if count is not None]
    return tuple(sum(known[length:]) for length in range(1, len(known)))


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < MAX_COUNT else None
