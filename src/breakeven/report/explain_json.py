"""What `breakeven explain --json` prints. The keys are stable; `absent` beside a null says why it is one."""

from __future__ import annotations

from typing import Any

from breakeven.explain.records import Explained, Explanation, Finding, Part, Prediction
from breakeven.interval import Interval
from breakeven.report.explain_words import DEFINITIONS, answer
from breakeven.report.plain import printable

_DIGITS = 6
"""Of milliseconds and ratios: nanoseconds, as no model knows more."""


_WHY = {
    "model": "not said: type --model",
    "hardware": "not said: type --hardware",
    "engine": "not said: type --engine",
    "refused": "the two speeds may be compared",
}


def explain_json(made: Explanation) -> dict[str, Any]:
    """The explanation in plain types, times in ms. The waterfall is of the mean plain step."""
    body = {
        "model": made.model,
        "hardware": made.hardware,
        "engine": made.engine,
        "method": made.method,
        "k": made.k,
        "refused": made.refused,
        "answer": answer(made),
        "waterfall": [part_json(part) for part in made.waterfall],
        "explained": [_explained(one) for one in made.explained],
        "findings": [finding_json(one) for one in made.findings],
        "ruled_out": [finding_json(one) for one in made.ruled_out],
        "unknown": dict(made.unknown),
        "warnings": list(made.warnings),
        "definitions": DEFINITIONS,
        "absent": {key: why for key, why in _WHY.items() if getattr(made, key) is None},
    }
    return {key: printable(value) for key, value in body.items()}


def part_json(part: Part) -> dict[str, Any]:
    """A part of the plain step, and what verifying adds to it."""
    return {
        "part": part.name,
        "ms": in_ms(part.baseline_s),
        "added_ms": interval_ms(part.added_s),
        "source": part.source,
    }


def _explained(one: Explained) -> dict[str, Any]:
    seen = one.observation
    observed = {
        "baseline_tpot_ms": in_ms(seen.baseline_tpot_s),
        "candidate_tpot_ms": in_ms(seen.candidate_tpot_s),
        "speedup": round(one.observed_speedup, _DIGITS),
        "acceptance_rate": bounds_json(seen.acceptance_rate),
        "draft_share": bounds_json(seen.draft_share),
        "draft_tokens": seen.draft_tokens,
    }
    why = {
        "acceptance_rate": "not counted and not given: taken as 0 to 1",
        "draft_share": "not counted and not given: taken as 0 to 1",
        "draft_tokens": "not counted: taken as k",
    }
    least, most = one.unexplained_s
    return {
        "name": seen.name,
        "observed": {**observed, "absent": {key: why[key] for key in why if observed[key] is None}},
        "outcome_predicted": one.outcome,
        "against_model": one.against_model,
        "predicted": [_prediction(each) for each in one.predictions],
        "verify_ms": interval_ms(one.verify_s),
        "break_even_verify": bounds_json(one.break_even_verify),
        "unexplained_ms": {"low": in_ms(least), "high": in_ms(most)},
        "unexplained_at_least_when": one.unexplained_at_least_when,
        "absent": {} if one.break_even_verify else {"break_even_verify": "the acceptance rate is not known"},
    }


def _prediction(each: Prediction) -> dict[str, Any]:
    speedup = each.speedup
    return {
        "draft_share": each.draft_share,
        "estimate": round(speedup.estimate, _DIGITS),
        "low": round(speedup.low, _DIGITS),
        "high": round(speedup.high, _DIGITS),
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """With a reason beside each null."""
    span = finding.step_s
    ms = None if span is None else {"low": in_ms(span[0]), "high": in_ms(span[1])}
    command = finding.next_command or None
    why = {"next_command": "nothing need be typed", "ms": "no model tells how long it takes"}
    values = {
        "id": finding.id,
        "title": finding.title,
        "evidence": finding.evidence,
        "confidence": finding.confidence,
        "next_command": command,
        "check": finding.check,
        "ms": ms,
    }
    return {**values, "absent": {key: said for key, said in why.items() if values[key] is None}}


def interval_ms(interval: Interval) -> dict[str, float]:
    """Of seconds."""
    return {"estimate": in_ms(interval.estimate), "low": in_ms(interval.low), "high": in_ms(interval.high)}


def bounds_json(bounds: tuple[float, float] | None) -> dict[str, float] | None:
    """A range of a share; None stays None."""
    return None if bounds is None else {"low": round(bounds[0], _DIGITS), "high": round(bounds[1], _DIGITS)}


def in_ms(seconds: float) -> float:
    """Of seconds, to nanoseconds."""
    return round(seconds * 1e3, _DIGITS)
