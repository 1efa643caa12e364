"""RequestTraces → RunSummary in one pass: eight bytes per request and figure, however long the replies."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from breakeven.acceptance.counters import SpecCounters
from breakeven.latency.records import (
    P99_MIN_N,
    Distribution,
    EnoughTokens,
    RequestLatency,
    RunSummary,
    TokenTotals,
)
from breakeven.latency.request import request_latency
from breakeven.latency.tokens import count
from breakeven.trace.records import RequestTrace

MAX_WARNINGS = 50
"""Distinct warnings kept; a server may invent any number of them."""
_TIMES = ("ttft_s", "ttft_content_s", "tpot_s", "e2e_s")


@dataclass(slots=True)
class _Sums:
    """What one pass gathers."""

    requests: int = 0
    truncated_in_reasoning: int = 0
    decode_s: float = 0.0
    decode_tokens: int = 0
    bundled_tokens: int = 0
    chunks: int = 0
    speculation: SpecCounters | None = None
    speculation_requests: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    first_errors: dict[str, str] = field(default_factory=dict)
    """The first message of each kind."""
    tokens: Counter[str] = field(default_factory=Counter)
    """Sums by prompt, output, reasoning and content."""
    known: Counter[str] = field(default_factory=Counter)
    """Requests that say each of them."""
    tokens_sources: Counter[str] = field(default_factory=Counter)
    n_first_sources: Counter[str] = field(default_factory=Counter)
    warnings: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    times: dict[str, array[float]] = field(default_factory=lambda: {name: array("d") for name in _TIMES})
    ended: Counter[int] = field(default_factory=Counter)
    """Replies that ended by themselves, by output tokens."""
    cut: Counter[int] = field(default_factory=Counter)
    """Replies cut off by max_tokens, by output tokens."""


def summarize(traces: Iterable[RequestTrace], wall_s: float | None) -> RunSummary:
    """The figures of a run; `wall_s` is how long its measured part took, None if unknown.

    Failed requests count as errors and in nothing else. A request without a figure is left out of that
    figure's distribution, whose n says how many are in it.
    """
    sums = _Sums()
    for trace in traces:
        _add(sums, trace)
    return _summary(sums, wall_s)


def _add(sums: _Sums, trace: RequestTrace) -> None:
    sums.requests += 1
    _count_warnings(sums, trace.warnings)
    if trace.error is not None:
        sums.errors[trace.error.kind] += 1
        sums.first_errors.setdefault(trace.error.kind, trace.error.message)
        return
    latency = request_latency(trace)
    _count_warnings(sums, latency.warnings)
    _add_tokens(sums, trace, latency)
    _add_times(sums, latency)
    if trace.speculation is not None:
        sums.speculation_requests += 1
        before = sums.speculation
        sums.speculation = trace.speculation if before is None else before + trace.speculation


def _count_warnings(sums: _Sums, warnings: Iterable[str]) -> None:
    for warning in warnings:
        if warning in sums.warnings or len(sums.warnings) < MAX_WARNINGS:
            sums.warnings[warning] += 1


def _add_tokens(sums: _Sums, trace: RequestTrace, latency: RequestLatency) -> None:
    sums.truncated_in_reasoning += latency.truncated_in_reasoning
    sums.tokens_sources[latency.tokens_source] += 1
    sums.n_first_sources[latency.n_first_source] += 1
    counts = {
        "prompt": _prompt_tokens(trace),
        "output": latency.output_tokens,
        "reasoning": latency.reasoning_tokens,
        "content": latency.content_tokens,
    }
    for name, tokens in counts.items():
        if tokens is not None:
            sums.tokens[name] += tokens
            sums.known[name] += 1
    if latency.output_tokens:
        (sums.cut if trace.finish_reason == "length" else sums.ended)[latency.output_tokens] += 1


def _prompt_tokens(trace: RequestTrace) -> int | None:
    stated = count((trace.usage or {}).get("prompt_tokens"))
    if stated:
        return stated
    return None if trace.prompt_token_ids is None else len(trace.prompt_token_ids)


def _add_times(sums: _Sums, latency: RequestLatency) -> None:
    for name in _TIMES:
        value = getattr(latency, name)
        if value is not None:
            sums.times[name].append(value)
        else:
            sums.reasons.setdefault(name, Counter())[latency.why_absent(name)] += 1
    if latency.decode_s is None or latency.decode_tokens is None:
        return
    sums.decode_s += latency.decode_s
    sums.decode_tokens += latency.decode_tokens
    if latency.tokens_source != "chunks":
        sums.bundled_tokens += latency.output_tokens or 0
        sums.chunks += latency.chunks


def _summary(sums: _Sums, wall_s: float | None) -> RunSummary:
    output = sums.tokens["output"] if sums.known["output"] else None
    answered = sums.requests - sums.errors.total()
    summary = RunSummary(
        requests=sums.requests,
        errors=sums.errors.total(),
        errors_by_kind=dict(sums.errors.most_common()),
        truncated_in_reasoning=sums.truncated_in_reasoning,
        max_tokens_enough_for_median=enough_for_median(sums.ended, sums.cut),
        tokens=TokenTotals(
            **{name: _known_sum(sums, name) for name in ("prompt", "output", "reasoning", "content")}
        ),
        ttft=_distribution(sums.times["ttft_s"]),
        ttft_content=_distribution(sums.times["ttft_content_s"]),
        tpot=_distribution(sums.times["tpot_s"]),
        e2e=_distribution(sums.times["e2e_s"]),
        decode_tokens_per_s=sums.decode_tokens / sums.decode_s if sums.decode_s else None,
        output_tokens_per_s=output / wall_s if output and wall_s and wall_s > 0 else None,
        tokens_per_chunk=sums.bundled_tokens / sums.chunks if sums.chunks else None,
        speculation=sums.speculation,
        speculation_requests=sums.speculation_requests,
        tokens_sources=dict(sums.tokens_sources),
        n_first_sources=dict(sums.n_first_sources),
        warnings=_warnings(sums, answered),
    )
    return replace(summary, absent=_absent(sums, summary, answered))


def _distribution(values: array[float]) -> Distribution | None:
    if not values:
        return None
    numbers = np.frombuffer(values)
    p50, p90, p99 = (float(value) for value in np.percentile(numbers, (50, 90, 99)))
    return Distribution(
        mean=float(numbers.mean()),
        p50=p50,
        p90=p90,
        p99=p99 if len(values) >= P99_MIN_N else None,
        n=len(values),
    )


def _known_sum(sums: _Sums, name: str) -> int | None:
    return sums.tokens[name] if sums.known[name] else None


def enough_for_median(ended: Mapping[int, int], cut: Mapping[int, int]) -> EnoughTokens | None:
    """The median reply length, where replies that were cut off are known to be at least so long.

    `ended` and `cut` count replies by output tokens. The estimate is the smallest length at which Kaplan and
    Meier's product-limit survival (J. Am. Stat. Assoc. 53, 1958) is at most one half; a reply cut off at a
    length counts as still running when another ends there. None without any reply.
    """
    running = sum(ended.values()) + sum(cut.values())
    survival, length = 1.0, 0
    for length in sorted({*ended, *cut}):
        survival *= 1 - ended.get(length, 0) / running
        if survival <= 0.5 + 1e-12:
            return EnoughTokens(length, more_than=False)
        running -= ended.get(length, 0) + cut.get(length, 0)
    return EnoughTokens(length, more_than=True) if length else None


def _warnings(sums: _Sums, answered: int) -> tuple[str, ...]:
    of = f"of {sums.requests} requests"
    lines = [
        f"{times} {of} failed with {kind}, the first of them because: {sums.first_errors[kind]}"
        for kind, times in sums.errors.most_common()
    ]
    lines += [f"{times} {of}: {warning}" for warning, times in sums.warnings.most_common()]
    for name in ("prompt", "output", "reasoning"):
        unknown = answered - sums.known[name]
        if unknown and sums.known[name]:
            lines.append(f"{unknown} {of} do not say their {name} tokens: the sum is over the others")
    if len(sums.warnings) >= MAX_WARNINGS:
        lines.append(f"only the first {MAX_WARNINGS} distinct warnings are shown")
    return tuple(lines)


def _absent(sums: _Sums, summary: RunSummary, answered: int) -> dict[str, str]:
    nothing = "no request succeeded" if sums.requests else "no request was made"
    reasons = {name.removesuffix("_s"): _main_reason(sums, name, nothing) for name in _TIMES}
    reasons["decode_tokens_per_s"] = reasons["tokens_per_chunk"] = reasons["tpot"]
    reasons["output_tokens_per_s"] = "the run's wall time or its tokens are unknown" if answered else nothing
    reasons["max_tokens_enough_for_median"] = "no reply says its length" if answered else nothing
    reasons["speculation"] = "no reply carried speculation counts" if answered else nothing
    absent = {name: reason for name, reason in reasons.items() if getattr(summary, name) is None}
    for name in ("prompt", "output", "reasoning", "content"):
        if getattr(summary.tokens, name) is None:
            absent[f"tokens.{name}"] = "no reply says it" if answered else nothing
    for name in ("ttft", "ttft_content", "tpot", "e2e"):
        figure: Distribution | None = getattr(summary, name)
        if figure is not None and figure.p99 is None:
            absent[f"{name}.p99"] = f"{figure.n} values: the 99th percentile needs {P99_MIN_N}"
    return absent


def _main_reason(sums: _Sums, name: str, otherwise: str) -> str:
    common = sums.reasons.get(name, Counter()).most_common(1)
    return common[0][0] if common else otherwise
