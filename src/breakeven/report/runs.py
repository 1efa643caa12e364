"""What is said of one run: its figures as words, and its replies by category."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median

from breakeven.acceptance.counters import SpecCounters
from breakeven.latency import Distribution, RunSummary, request_latency
from breakeven.report.jsonout import why
from breakeven.report.plain import acceptance_json
from breakeven.trace.meta import RunMeta
from breakeven.trace.records import RequestTrace
from breakeven.units import ABSENT, count, milliseconds, rate, share

_LATENCIES = {"TTFT": "ttft", "TTFT to content": "ttft_content", "TPOT": "tpot", "end to end": "e2e"}
_KINDS = ("prompt", "output", "reasoning", "content")


def asked(meta: RunMeta) -> str:
    """What was asked of whom: `smollm2 at http://…, default × 2, at most 96 tokens, 1 in flight`."""
    schedule = meta.schedule
    closed = schedule.mode == "closed"
    load = f"{schedule.concurrency} in flight" if closed else f"{schedule.rate_per_s:g} per second"
    engine = f" ({meta.server.engine})" if meta.server.engine else ""
    prompts = f"{meta.workload.name} × {meta.repeats}"
    return f"{meta.model} at {meta.url}{engine}, {prompts}, at most {meta.sampling.max_tokens} tokens, {load}"


def latencies(summary: RunSummary) -> dict[str, tuple[str, ...]]:
    """Mean, p50, p90 and p99 in ms, and n, by name."""
    return {name: _cells(getattr(summary, key)) for name, key in _LATENCIES.items()}


def _cells(values: Distribution | None) -> tuple[str, ...]:
    if values is None:
        return (ABSENT,) * 4 + ("0",)
    shown = (values.mean, values.p50, values.p90, values.p99)
    return (*(milliseconds(value) for value in shown), f"{values.n:,}")


def absences(summary: RunSummary) -> list[str]:
    """Why cells of the table of latencies are empty; one reason does for every p99."""
    missing = [
        f"{name}: {why(summary, key)}" for name, key in _LATENCIES.items() if getattr(summary, key) is None
    ]
    few = [reason for key in _LATENCIES.values() if (reason := summary.absent.get(f"{key}.p99"))]
    return missing + [f"p99: {reason}" for reason in few[:1]]


def sentences(summary: RunSummary, counters: SpecCounters | None = None) -> Iterator[str]:
    """Tokens by kind, speeds, bundling, speculation.

    `counters` are those of the server's /metrics page: they stand in where no reply carried counts.
    """
    yield "Tokens: " + ", ".join(f"{kind} {_tokens(summary, kind)}" for kind in _KINDS)
    yield f"Decode speed: {_speed(summary, 'decode_tokens_per_s')}"
    yield f"Output speed of the run: {_speed(summary, 'output_tokens_per_s')}"
    bundling = summary.tokens_per_chunk
    if bundling is None:
        yield f"Tokens per chunk: {ABSENT} ({why(summary, 'tokens_per_chunk')})"
    else:
        yield f"Tokens per chunk: {bundling:.2f}"
    if summary.speculation is not None:
        yield f"Speculation: {_speculation(summary.speculation)}"
    elif counters is not None:
        yield f"Speculation, with all other traffic of the server: {_speculation(counters)}"


def _tokens(summary: RunSummary, kind: str) -> str:
    n = getattr(summary.tokens, kind)
    return f"{ABSENT} ({why(summary, f'tokens.{kind}')})" if n is None else f"{n:,}"


def _speed(summary: RunSummary, name: str) -> str:
    value = getattr(summary, name)
    return f"{ABSENT} ({why(summary, name)})" if value is None else f"{rate(value)} tok/s"


def _speculation(counters: SpecCounters) -> str:
    counts = acceptance_json(counters)
    ratios = (("acceptance", "acceptance_rate"), ("draft share", "draft_share"))
    said = [
        f"{name} {share(counts[key])}"
        if counts[key] is not None
        else f"{name} unknown ({counts['absent'][key]})"
        for name, key in ratios
    ]
    if counts["tokens_per_step"] is not None:
        said.append(f"tokens per step {counts['tokens_per_step']:.2f}")
    return ", ".join(said)


def warnings(summary: RunSummary) -> Iterator[str]:
    """The summary's own, and what to do about replies that were cut off inside reasoning."""
    if summary.truncated_in_reasoning:
        cut = f"{summary.truncated_in_reasoning} of {count(summary.requests, 'request')}"
        yield f"{cut} ended inside reasoning, at max_tokens, with no content{_enough(summary)}"
    yield from summary.warnings


def _enough(summary: RunSummary) -> str:
    enough = summary.max_tokens_enough_for_median
    if enough is None:
        return ""
    if enough.more_than:
        return f": the median reply needs more than {enough.tokens:,}: raise --max-tokens"
    return f": --max-tokens {enough.tokens} would let the median reply end by itself"


@dataclass(slots=True)
class Category:
    """Sums over one category's requests; failed ones are counted and not timed."""

    requests: int = 0
    decode_tokens: int = 0
    decode_s: float = 0.0
    tpots_s: list[float] = field(default_factory=list)

    @property
    def tpot_s(self) -> float | None:
        """The median."""
        return median(self.tpots_s) if self.tpots_s else None

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens after the first read / time after it, summed."""
        return self.decode_tokens / self.decode_s if self.decode_s else None


def by_category(traces: Iterable[RequestTrace]) -> dict[str, Category]:
    """In order of first appearance."""
    found: dict[str, Category] = {}
    for trace in traces:
        category = found.setdefault(trace.category, Category())
        category.requests += 1
        latency = request_latency(trace)
        if trace.error is None and latency.tpot_s and latency.decode_tokens and latency.decode_s:
            category.tpots_s.append(latency.tpot_s)
            category.decode_tokens += latency.decode_tokens
            category.decode_s += latency.decode_s
    return found
