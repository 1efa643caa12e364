"""Forecasts made by hand from a simple model of acceptance and cost, for what is said and drawn of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from breakeven.acceptance.counters import SpecCounters
from breakeven.forecast.records import (
    TARGETS,
    BreakEven,
    Cell,
    CostBasis,
    Coverage,
    Forecast,
    ForecastRow,
    Needed,
    Published,
    StepParts,
)
from breakeven.interval import Interval
from breakeven.replay.records import Origin

ORIGIN = Origin("runs/measure-1", "run", 0.0, engine="vllm")
KS = (1, 3, 5, 8)
VERIFY = {1: 0.04, 8: 0.08, 32: 0.30, 128: 0.50}
"""By concurrency: what each drafted token adds to a step, in plain steps."""
FLAT = 0.02
"""What speculation adds to every step, in plain steps."""
GAIN = {"coding": 1.4, "chat": 1.0, "math": 0.02}
"""By category: accepted tokens in those of all requests."""
MEASURED = CostBasis(
    "measured",
    "The concurrency curve of this server (calibration.json, 8 points): the cost of a step is known to ±3 %.",
    "N-gram: 0.6 % of a plain step, from the constants of the method.",
    "21.0 µs per prompt token, from the time to first token of the record.",
)
RATES = {"vllm-ngram": (0.4, (0.60, 0.45, 0.34, 0.24)), "vllm-suffix": (0.6, (0.38, 0.27, 0.20, 0.14))}
"""Draft share, and acceptance rate at each of KS."""
PUBLISHED = (
    Published("eagle3", "llama-3.1-8b", 4, 3.08, "MT-Bench", "https://example.org/a"),
    Published("eagle3", "qwen3-8b", 2, 1.97, "HumanEval", "https://example.org/b"),
)


def interval(estimate: float, width: float = 0.04) -> Interval:
    """±`width`, relative."""
    return Interval(estimate, estimate * (1 - width), estimate * (1 + width))


def cell(concurrency: int, k: int, share: float, rate: float, width: float = 0.04) -> Cell:
    """A draft of k tokens at a share of the steps, of which a rate is accepted."""
    verify = VERIFY[concurrency] * k
    ratio = 1 + FLAT + share * verify
    gain = share * k * rate
    speedup = (1 + gain) / ratio
    per_draft = k * rate - verify
    return Cell(
        concurrency,
        interval(speedup, width),
        interval(1 + 0.8 * (speedup - 1), width),
        {name: interval((1 + factor * gain) / ratio, 2 * width) for name, factor in GAIN.items()},
        interval(ratio, 0.01),
        BreakEven(
            ratio,
            (ratio - 1) / (share * k) if share else None,
            FLAT / per_draft if share and per_draft > FLAT else None,
        ),
    )


def row(drafter: str, k: int, share: float, rate: float, width: float = 0.04, **changes: Any) -> ForecastRow:
    steps = 20_000
    drafts = round(steps * share)
    accepted = round(drafts * k * rate)
    ngram = {"min_n": 2, "max_n": 4} if drafter == "vllm-ngram" else {}
    made = ForecastRow(
        drafter,
        {"k": k, **ngram},
        f"--flags-of {drafter} {k}",
        "vllm",
        drafter == "vllm-suffix",
        SpecCounters(steps, drafts, drafts * k, accepted, source="replay"),
        1 + share * k * rate,
        tuple(cell(concurrency, k, share, rate, width) for concurrency in VERIFY),
    )
    return replace(made, **changes)


def rows(width: float = 0.04, factor: float = 1.0) -> tuple[ForecastRow, ...]:
    """Two drafters with four windows each, best first; `factor` scales what is accepted."""
    made = [
        row(name, k, share, rate * factor, width)
        for name, (share, rates) in RATES.items()
        for k, rate in zip(KS, rates, strict=True)
    ]
    return tuple(sorted(made, key=lambda one: -one.cells[0].speedup.estimate))


def oracles() -> tuple[ForecastRow, ...]:
    return tuple(row("oracle", k, 1.0, 1.0, engine="none", flags="") for k in KS)


def given() -> tuple[ForecastRow, ...]:
    """A head that drafts at every step, by window."""
    return tuple(
        row("eagle3", k, 1.0, rate, flags="") for k, rate in zip(KS, (0.7, 0.5, 0.38, 0.26), strict=True)
    )


def needs() -> tuple[Needed, ...]:
    return tuple(
        Needed(k, c, {target: interval(target * (1 + FLAT + k * (cost + 0.03)), 0.03) for target in TARGETS})
        for k in KS
        for c, cost in VERIFY.items()
    )


def step_parts(k: int) -> StepParts:
    parts = {"weights": 3e-3, "experts": 1e-3 * (1 + k), "kv": 4e-4, "all_reduce": 6e-4, "overhead": 1e-3}
    return StepParts(k, parts, interval(sum(parts.values()), 0.03))


def coverage() -> Coverage:
    def distinct(tokens: int, reuse: float) -> float:
        return 128 * (1 - (1 - 8 / 128) ** (1 + (tokens - 1) * (1 - reuse)))

    points = [
        (t, Interval(distinct(t, 0.5), min(distinct(t, 0.7), distinct(t, 0.3)), distinct(t, 0.3)))
        for t in range(1, 10)
    ]
    return Coverage(128, 8, tuple(points))


def forecast(**changes: Any) -> Forecast:
    """Measured cost at concurrency 1: pays up to 32, undecided at 128; coding gains, math loses."""
    made = Forecast(
        origin=ORIGIN,
        first_token="prefill",
        requests=60,
        output_tokens=30_000,
        basis=MEASURED,
        concurrency=1,
        concurrencies=tuple(VERIFY),
        rows=rows(),
        oracle=oracles(),
        given=(),
        needed=needs(),
        needed_for="eagle3",
        published=PUBLISHED,
        steps=(step_parts(0), *(step_parts(k) for k in KS)),
        coverage=coverage(),
        recommendation="vllm-ngram at k=8, n 2–4 would make decoding 1.54× (1.48× to 1.60×) as fast.",
        next_commands=("breakeven trial --baseline-url URL --candidate-url URL",),
        skipped={"no tokens were generated": 2},
        warnings=("the ids of 3 requests were made again",),
        elapsed_s=0.8,
    )
    return replace(made, **changes)


def without_record(**changes: Any) -> Forecast:
    """Only what is needed: no record, rows or commands."""
    none: dict[str, Any] = {"origin": None, "rows": (), "oracle": (), "next_commands": (), "skipped": {}}
    return forecast(**{**none, "requests": 0, "output_tokens": 0, **changes})
