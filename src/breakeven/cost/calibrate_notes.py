"""What went wrong in one visit of a calibration, in sentences that say what to type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from breakeven.acceptance.prometheus import SOURCES
from breakeven.latency.tokens import total
from breakeven.trace.records import Kind, RequestTrace
from breakeven.trace.run import RunMeta

APART_NOTE = (
    "llama.cpp takes only sequences of neighbouring slots together in a step, and the rest one after the "
    "other, unless all slots share one KV cache (--kv-unified, the default only without --parallel): if they "
    "do not, points below the number of slots take longer than verifying as many tokens, and forecasts are "
    "too low"
)
"""Of a server that is not known to share one; the split is that of ggml-org/llama.cpp#14511."""
MOST_BUNDLED = 1.1
"""Tokens per chunk above which a reply looks like one that was speculated."""


def notes_of(meta: RunMeta, traces: Sequence[RequestTrace], concurrency: int) -> tuple[str, ...]:
    """What qualifies the times of a visit."""
    notes = (_failed(traces, concurrency), _bundles(traces, concurrency), _idle(meta), _uncounted(traces))
    return tuple(note for note in notes if note)


def doubts(meta: RunMeta) -> tuple[str, ...]:
    """Why the client does not vouch for its times. Its self-check speaks of measure's option; this verb has
    another.
    """
    check: dict[str, Any] = dict(meta.self_check or {})
    return tuple(reason.replace("--concurrency", "--max-concurrency") for reason in check.get("reasons", ()))


def decoding_peak(meta: RunMeta) -> int | None:
    """Replies that were decoded at once, at most; None where no reply took any time to decode."""
    peak = (meta.self_check or {}).get("decoding_peak")
    return peak if isinstance(peak, int) else None


def slots_note(meta: RunMeta, concurrency: int) -> str:
    """Why the curve ends before that concurrency."""
    return (
        f"concurrency {concurrency} and above have no point: the server decoded at most "
        f"{decoding_peak(meta)} at once; give it more slots (llama.cpp: --parallel, vLLM: --max-num-seqs), "
        "or replies that outlast the prefill of the others (--max-tokens)"
    )


def missing_note(concurrency: int, reasons: Sequence[str]) -> str:
    """Why a visit gave no times."""
    if reasons:
        return f"a visit to concurrency {concurrency} gave no times: {'; '.join(reasons)}"
    return (
        f"a visit to concurrency {concurrency} gave no times: with that many replies decoded at once there "
        "were too few steps; raise --max-tokens, or where replies end by themselves add  "
        "--extra ignore_eos=true"
    )


def _failed(traces: Sequence[RequestTrace], concurrency: int) -> str | None:
    errors = [trace.error.message for trace in traces if trace.error is not None]
    if not errors:
        return None
    of = f"{len(errors)} of {len(traces)} requests failed"
    return f"at concurrency {concurrency} {of}, the last with: {errors[-1]}"


def _bundles(traces: Sequence[RequestTrace], concurrency: int) -> str | None:
    counts = [event.n_tokens for trace in traces for event in trace.events if event.kind is not Kind.END]
    known = [n for n in counts if n]
    if not known or sum(known) <= MOST_BUNDLED * len(known):
        return None
    return (
        f"at concurrency {concurrency} a chunk carries {sum(known) / len(known):.2g} tokens on average: if "
        "the server speculates without counting it, this is no baseline"
    )


def _idle(meta: RunMeta) -> str | None:
    """vLLM counts drafts only where speculation is on; it takes its time also where nothing is drafted."""
    if meta.counters is None or meta.counters.source != SOURCES["vllm"]:
        return None
    return (
        "the server counts drafts, though there were none: speculation seems to be on, and slows plain steps "
        "too; start it without --speculative-config"
    )


def _uncounted(traces: Sequence[RequestTrace]) -> str | None:
    if not any(trace.error is None and total(trace).source == "chunks" for trace in traces):
        return None
    return (
        "the server does not count tokens, each chunk was taken for one: where chunks carry several, a step "
        "takes less than is said here"
    )
