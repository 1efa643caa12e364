"""What `breakeven forecast --json` prints. The keys are stable; `absent` beside a null says why it is one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from breakeven.forecast.learned import learned_sentences
from breakeven.forecast.phrases import at
from breakeven.forecast.records import (
    BreakEven,
    Cell,
    Coverage,
    Forecast,
    ForecastRow,
    Needed,
    StepParts,
)
from breakeven.interval import Interval
from breakeven.report.definitions import texts
from breakeven.report.forecast_words import FORECAST_DEFINITIONS
from breakeven.report.plain import acceptance_json, printable
from breakeven.report.replay_json import origin_json

_NO_ROWS = "no drafter was replayed on a record"
_NO_STEP = "no request has a decode step"
_NOT_SIMULATED = "it was not simulated"
_NO_SETTING = "the drafter has no such setting"
_NO_FLAGS = "it names none that turn it on in an engine"


def forecast_json(forecast: Forecast) -> dict[str, Any]:
    """The forecast in plain types. The first keys are of the best setting at `concurrency`."""
    body = {
        **_best(forecast),
        "by_concurrency": [_concurrency(forecast, level) for level in forecast.concurrencies],
        "recommendation": forecast.recommendation,
        "trained_drafter": " ".join(learned_sentences(forecast)),
        "next_commands": list(forecast.next_commands),
        "source_of_cost": forecast.basis.source,
        "basis": asdict(forecast.basis),
        "concurrency": forecast.concurrency,
        "concurrencies": list(forecast.concurrencies),
        "rows": [_row(row) for row in forecast.rows],
        "oracle": [_row(row) for row in forecast.oracle],
        "given": [_row(row) for row in forecast.given],
        "needed": [_needed(one) for one in forecast.needed],
        "needed_for": forecast.needed_for,
        "published": [asdict(one) for one in forecast.published],
        "steps": [_step(one) for one in forecast.steps],
        "coverage": _coverage(forecast.coverage),
        "origin": None if forecast.origin is None else origin_json(forecast.origin),
        "first_token": forecast.first_token,
        "requests": forecast.requests,
        "output_tokens": forecast.output_tokens,
        "skipped": dict(forecast.skipped),
        "warnings": list(forecast.warnings),
        "definitions": texts(FORECAST_DEFINITIONS),
        "elapsed_s": forecast.elapsed_s,
    }
    why = {
        "coverage": "the model has no experts, or its geometry is not known",
        "origin": "the forecast is of no record",
    }
    absent = {**body["absent"], **_nulls(body, why)}
    return {key: printable(value) for key, value in {**body, "absent": absent}.items()}


def _nulls(values: Mapping[str, Any], reasons: Mapping[str, str]) -> dict[str, str]:
    return {key: why for key, why in reasons.items() if values[key] is None}


def _best(forecast: Forecast) -> dict[str, Any]:
    """The stable keys that stand for one setting: the one that the recommendation is about."""
    row = forecast.best
    if row is None:
        keys = ("speedup", "throughput_speedup", "outcome", "by_category", "best", "break_even")
        return {**dict.fromkeys(keys), "absent": dict.fromkeys(keys, _NO_ROWS)}
    return {**_cell(at(forecast, row)), "best": _named(row)}


def _named(row: ForecastRow) -> dict[str, Any]:
    names = ("k", "min_n", "max_n")
    values: dict[str, Any] = {
        **{name: row.settings.get(name) for name in names},
        "drafter": row.drafter,
        "settings": dict(row.settings),
        "flags": row.flags or None,
        "engine": row.engine,
    }
    why = {**dict.fromkeys(names, _NO_SETTING), "flags": _NO_FLAGS}
    return {**values, "absent": _nulls(values, why)}


def _concurrency(forecast: Forecast, concurrency: int) -> dict[str, Any]:
    """The same setting at another concurrency, and the one to take there."""
    row, best = forecast.best, forecast.best_at(concurrency)
    if row is None or best is None:
        keys = ("speedup", "throughput_speedup", "outcome", "best")
        return {"concurrency": concurrency, **dict.fromkeys(keys), "absent": dict.fromkeys(keys, _NO_ROWS)}
    return {
        **_cell(at(forecast, row, concurrency)),
        "best": _best_there(best, at(forecast, best, concurrency)),
    }


def _best_there(row: ForecastRow, cell: Cell) -> dict[str, Any]:
    named = _named(row)
    values = {"speedup": _interval(cell.speedup), "outcome": cell.outcome}
    return {**named, **values, "absent": {**named["absent"], **_nulls(values, {"speedup": _NO_STEP})}}


def _cell(cell: Cell) -> dict[str, Any]:
    values: dict[str, Any] = {
        "concurrency": cell.concurrency,
        "speedup": _interval(cell.speedup),
        "throughput_speedup": _interval(cell.throughput_speedup),
        "outcome": cell.outcome,
        "by_category": {name: _interval(one) for name, one in cell.by_category.items()},
        "step_ratio": _interval(cell.step_ratio),
        "break_even": _break_even(cell.break_even),
    }
    throughput = _NOT_SIMULATED if cell.throughput_speedup is None else _NO_STEP
    why = {"speedup": _NO_STEP, "throughput_speedup": throughput, "step_ratio": _NO_STEP}
    return {**values, "absent": _nulls(values, why)}


def _interval(value: Interval | None) -> dict[str, float] | None:
    """None also for one of no requests, which is not a number."""
    if value is None or not math.isfinite(value.estimate):
        return None
    return asdict(value)


def _break_even(needs: BreakEven) -> dict[str, Any]:
    values = asdict(needs)
    why = {
        "acceptance_rate": "it never drafts",
        "draft_share": "no share would do at its acceptance, or it never drafts",
    }
    return {**values, "absent": _nulls(values, why)}


def _row(row: ForecastRow) -> dict[str, Any]:
    counts = acceptance_json(row.counters)
    named = _named(row)
    counted = {**counts, "tokens_per_step": row.tokens_per_step}
    absent = {**_nulls(named, {"flags": _NO_FLAGS}), **_nulls(counted, counts["absent"])}
    return {
        **{key: named[key] for key in ("drafter", "settings", "flags", "engine")},
        "learns": row.learns,
        **counted,
        "warnings": list(row.warnings),
        "cells": [_cell(cell) for cell in row.cells],
        "absent": absent,
    }


def _needed(one: Needed) -> dict[str, Any]:
    return {
        "k": one.k,
        "concurrency": one.concurrency,
        "targets": [
            {
                "speedup": target,
                "acceptance_length": asdict(length),
                "possible": length.estimate <= one.k + 1,
            }
            for target, length in one.acceptance_length.items()
        ],
    }


def _step(one: StepParts) -> dict[str, Any]:
    return {"k": one.k, "parts_s": dict(one.parts), "total_s": asdict(one.total)}


def _coverage(coverage: Coverage | None) -> dict[str, Any] | None:
    if coverage is None:
        return None
    return {
        "experts": coverage.experts,
        "top_k": coverage.top_k,
        "points": list(_points(coverage.points)),
    }


def _points(points: Iterable[tuple[int, Interval]]) -> Iterable[dict[str, Any]]:
    return ({"tokens": tokens, "distinct_experts": asdict(distinct)} for tokens, distinct in points)
