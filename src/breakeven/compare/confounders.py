"""What differs between two runs beside the thing under test, and could explain a difference in speed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from statistics import median

from breakeven.compare.pairs import Reply, replies
from breakeven.trace.records import RequestTrace
from breakeven.units import change, count, duration, share

CACHE_SHARE = 0.05
"""Sides whose shares of cached prompt tokens differ by more than this had different prefill work."""
TTFT_CHANGE = 0.10
"""Time to first token scatters more than TPOT: smaller changes of its median are not worth a line."""
LENGTH_CHANGE = 0.05
"""Output lengths that differ by more put the sides at different context lengths."""


def confounders(baseline: Iterable[RequestTrace], candidate: Iterable[RequestTrace]) -> tuple[str, ...]:
    """Sentences over the requests that both sides answered, each with its figures as `baseline → candidate`.

    Raises UsageError if a side holds a request twice.
    """
    sides = replies(baseline, "baseline"), replies(candidate, "candidate")
    both = [
        (reply, sides[1][key])
        for key, reply in sides[0].items()
        if reply.trace.error is None and key in sides[1] and sides[1][key].trace.error is None
    ]
    checks = (_cache_hits, _ttft, _prompt_tokens, _finish_reasons, _output_lengths)
    return tuple(sentence for check in checks for sentence in check(both)) if both else ()


_Both = list[tuple[Reply, Reply]]


def _cache_hits(both: _Both) -> Iterator[str]:
    before, after = _cached_share(r for r, _ in both), _cached_share(r for _, r in both)
    if before is not None and after is not None and abs(before - after) > CACHE_SHARE:
        yield (
            f"prefix cache: {share(before)} → {share(after)} of prompt tokens were cached: "
            "the sides did not prefill alike, so compare decode speed only"
        )


def _cached_share(side: Iterable[Reply]) -> float | None:
    """Cached / prompt tokens over the replies that give both; None if none does."""
    known = [counts for reply in side if (counts := cached_of_prompt(reply.trace)) is not None]
    total = sum(prompt for _, prompt in known)
    return sum(cached for cached, _ in known) / total if total else None


def cached_of_prompt(trace: RequestTrace) -> tuple[int, int] | None:
    """How many tokens of the prompt were in the prefix cache, and how many it has; None unless both are
    given."""
    cached, prompt = _cached_tokens(trace), _prompt_count(trace)
    return None if cached is None or not prompt else (cached, prompt)


def _cached_tokens(trace: RequestTrace) -> int | None:
    """From usage.prompt_tokens_details.cached_tokens, or llama.cpp's timings.cache_n."""
    details = (trace.usage or {}).get("prompt_tokens_details")
    found = details.get("cached_tokens") if isinstance(details, dict) else None
    if found is None:
        timings = (trace.server_timings or {}).get("timings")
        found = timings.get("cache_n") if isinstance(timings, dict) else None
    return found if isinstance(found, int) else None


def _prompt_count(trace: RequestTrace) -> int | None:
    found = (trace.usage or {}).get("prompt_tokens")
    return found if isinstance(found, int) else None


def _ttft(both: _Both) -> Iterator[str]:
    known = [(a.latency.ttft_s, b.latency.ttft_s) for a, b in both]
    timed = [(before, after) for before, after in known if before and after]
    if not timed:
        return
    ratio = median(before / after for before, after in timed)
    if not 1 / (1 + TTFT_CHANGE) <= ratio <= 1 + TTFT_CHANGE:
        before, after = (median(side) for side in zip(*timed, strict=True))
        yield (
            f"time to first token: median {duration(before)} → {duration(after)}: "
            "it is not part of the speedup, which is of decoding only"
        )


def _prompt_tokens(both: _Both) -> Iterator[str]:
    counts = [(_prompt_count(a.trace), _prompt_count(b.trace)) for a, b in both]
    differ = sum(before is not None and after is not None and before != after for before, after in counts)
    if differ:
        yield (
            f"prompt tokens differ in {differ} of {count(len(both), 'pair')}: "
            "the sides use another tokenizer or chat template"
        )


def _finish_reasons(both: _Both) -> Iterator[str]:
    before = Counter(a.trace.finish_reason or "none given" for a, _ in both)
    after = Counter(b.trace.finish_reason or "none given" for _, b in both)
    if before != after:
        reasons = sorted(before | after)
        shown = ", ".join(f"{reason} {before[reason]} → {after[reason]}" for reason in reasons)
        yield f"finish reasons differ: {shown}"


def _output_lengths(both: _Both) -> Iterator[str]:
    lengths = [(a.latency.output_tokens, b.latency.output_tokens) for a, b in both]
    known = [(before, after) for before, after in lengths if before and after]
    before, after = sum(n for n, _ in known), sum(n for _, n in known)
    if known and not 1 / (1 + LENGTH_CHANGE) <= after / before <= 1 + LENGTH_CHANGE:
        yield (
            f"output length: {before} → {after} tokens ({change(after / before)}): "
            "speeds are compared per token, but at other context lengths"
        )
