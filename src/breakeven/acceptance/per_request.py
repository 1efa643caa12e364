"""Speculation counts that a server puts into the reply of one request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from breakeven.acceptance.counters import MAX_COUNT, SpecCounters, possible
from breakeven.acceptance.steps import emitted_of, steps_of

CARRIERS = ("timings", "metrics", "sglext", "meta_info")
"""Fields of a chunk that hold counts, or the server's own times."""
_ACCEPTED = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_DRAFTED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
_HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")
"""SGLang's names, the newest first."""


def from_chunk(chunk: Mapping[str, Any], output_tokens: int | None) -> SpecCounters | None:
    """Counts of the chunk that carries vLLM's `metrics`, llama.cpp's or mlx-vlm's `timings`, or SGLang's
    `sglext` or `meta_info`; None where it says nothing of speculation, or what cannot be.

    `output_tokens`, from usage, give the decode steps where they are not counted (see `steps_of`).
    """
    tokens = _count(output_tokens)
    metrics = _mapping(chunk, "metrics", "speculative_decoding")
    if metrics is not None:
        return possible(_from_vllm(metrics, tokens))
    timings = _mapping(chunk, "timings")
    if timings is not None:
        return possible(_from_timings(timings, tokens))
    details = _mapping(chunk, "sglext", "spec_tokens_details") or _mapping(chunk, "meta_info")
    if details is not None and "spec_verify_ct" in details:
        return possible(_from_sglang(details, tokens))
    return None


def _from_vllm(spec: Mapping[str, Any], output_tokens: int | None) -> SpecCounters:
    """vLLM's num_spec_steps counts the steps that drafted; its histogram counts them by accepted length."""
    accepted = _count(spec.get("num_accepted_draft_tokens"))
    drafts = _count(spec.get("num_spec_steps"))
    emitted = emitted_of(output_tokens)
    return SpecCounters(
        steps=steps_of(emitted, accepted, drafts),
        drafts=drafts,
        drafted_tokens=_count(spec.get("num_draft_tokens")),
        accepted_tokens=accepted,
        accepted_per_position=_at_least(spec.get("acceptance_histogram")),
        source="vLLM metrics in the reply",
        emitted_tokens=emitted,
    )


def _from_timings(timings: Mapping[str, Any], output_tokens: int | None) -> SpecCounters:
    """llama.cpp leaves draft_n out when nothing was drafted, and never says in how many steps it drafted.
    mlx-vlm does: each of its decode steps is one of its `draft_rounds` where it drafts at all."""
    drafted = _count(timings.get("draft_n", 0))
    accepted = _count(timings.get("draft_n_accepted", 0))
    rounds = _count(timings.get("draft_rounds"))
    emitted = emitted_of(output_tokens if output_tokens is not None else _count(timings.get("predicted_n")))
    return SpecCounters(
        steps=rounds or steps_of(emitted, accepted, None),
        drafts=0 if drafted == 0 else rounds,
        drafted_tokens=drafted,
        accepted_tokens=accepted,
        source="llama.cpp timings in the reply" if rounds is None else "mlx-vlm timings in the reply",
        emitted_tokens=emitted,
    )


def _from_sglang(details: Mapping[str, Any], output_tokens: int | None) -> SpecCounters:
    """Each of SGLang's decode steps is a verify call. Its drafts are taken to be whole."""
    calls = _count(details.get("spec_verify_ct"))
    tokens = output_tokens if output_tokens is not None else _count(details.get("completion_tokens"))
    return SpecCounters(
        steps=calls,
        drafts=calls,
        drafted_tokens=_count(_first(details, _DRAFTED)),
        accepted_tokens=_count(_first(details, _ACCEPTED)),
        accepted_per_position=_at_least(_first(details, _HISTOGRAM)),
        source="SGLang counts in the reply",
        emitted_tokens=emitted_of(tokens),
    )


def _at_least(histogram: Any) -> tuple[int, ...] | None:
    """[drafts with exactly 0, 1, … accepted] → (drafts with at least 1, 2, … accepted)."""
    if not isinstance(histogram, Sequence) or isinstance(histogram, str):
        return None
    counts = [_count(value) for value in histogram]
    if any(count is None for count in counts):
        return None
    known = [count for count in counts if count is not None]
    return tuple(sum(known[length:]) for length in range(1, len(known)))


def _mapping(chunk: Mapping[str, Any], *path: str) -> Mapping[str, Any] | None:
    value: Any = chunk
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else None


def _first(details: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((details[name] for name in names if name in details), None)


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < MAX_COUNT else None
