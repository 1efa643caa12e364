"""What `--json` prints. The keys are stable; an absent value is null, and `absent` beside it says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from breakeven.acceptance.counters import SpecCounters
from breakeven.compare.records import Drift, Lossless, PromptSpeedup, SideQuality
from breakeven.interval import Interval
from breakeven.latency import Distribution, RunSummary
from breakeven.report.definitions import texts
from breakeven.report.plain import NO_COUNTS, acceptance_json, printable
from breakeven.trace.provenance import without_credentials
from breakeven.trial.result import Side, TrialResult
from breakeven.units import count

_DISTRIBUTIONS = ("ttft", "ttft_content", "tpot", "e2e")
_RATES = ("decode_tokens_per_s", "output_tokens_per_s", "tokens_per_chunk")
UNSAID = "no request gave it"


def trial_json(result: TrialResult) -> dict[str, Any]:
    """The result in plain types. Times in ms or s, as the keys say; ratios are baseline / candidate."""
    comparison = result.comparison
    body = {
        "verdict": result.verdict.outcome,
        "reason": result.verdict.reason,
        "next_command": result.verdict.next_command,
        "speedup": _interval(comparison.speedup),
        "confidence": comparison.confidence,
        "floor": comparison.floor,
        "prompts": [_prompt(prompt, result.candidate) for prompt in comparison.prompts],
        "by_category": {name: _interval(value) for name, value in comparison.by_category.items()},
        "acceptance": acceptance_json(result.candidate.acceptance),
        "lossless": _lossless(comparison.lossless),
        "drift": _drift(comparison.drift),
        "quality": {"baseline": _quality(comparison.baseline), "candidate": _quality(comparison.candidate)},
        "stopped_after": result.stopped_after,
        "stop_reason": result.stop_reason,
        "reload_s": _reload(result),
        "confounders": list(result.confounders),
        "warnings": list(comparison.warnings),
        "model": result.model,
        "workload": result.workload,
        "sides": {side.name: _side(side) for side in (result.baseline, result.candidate)},
        "started": result.started,
        "elapsed_s": result.elapsed_s,
        "run_dir": str(result.run_dir),
        "definitions": texts(),
        "absent": _absent(result),
    }
    return {key: printable(value) for key, value in body.items()}


def _interval(value: Interval | None) -> dict[str, float] | None:
    return None if value is None else {"estimate": value.estimate, "low": value.low, "high": value.high}


def _prompt(prompt: PromptSpeedup, candidate: Side) -> dict[str, Any]:
    acceptance = acceptance_json(candidate.acceptance_by_prompt.get(prompt.id))
    return {
        "id": prompt.id,
        "category": prompt.category,
        "baseline_tpot_ms": prompt.baseline_tpot_s * 1e3,
        "candidate_tpot_ms": prompt.candidate_tpot_s * 1e3,
        "speedup": prompt.speedup.estimate,
        "low": prompt.speedup.low,
        "high": prompt.speedup.high,
        "pairs": prompt.pairs,
        "acceptance": acceptance,
    }


def _lossless(lossless: Lossless) -> dict[str, Any]:
    first = lossless.first_divergence
    return {
        "identical": lossless.identical if lossless.compared else None,
        "compared": lossless.compared,
        "first_divergence": None if first is None else asdict(first),
        "absent": _lossless_absent(lossless),
    }


def _lossless_absent(lossless: Lossless) -> dict[str, str]:
    if not lossless.compared:
        why = lossless.reason or "no two replies could be compared"
        return {"identical": why, "first_divergence": why}
    if lossless.first_divergence is None:
        return {"first_divergence": "every compared pair is identical"}
    return {}


def _quality(side: SideQuality) -> dict[str, Any]:
    return {
        **asdict(side),
        "without_tpot": side.without_tpot,
        "absent": {"max_tokens": "nothing was asked"} if side.max_tokens is None else {},
    }


def _drift(drift: Drift) -> dict[str, Any]:
    absent = {} if drift.ratio else {"ratio": "fewer than two baseline blocks, or too few prompts in them"}
    return {"ratio": _interval(drift.ratio), "significant": drift.significant, "absent": absent}


def _reload(result: TrialResult) -> dict[str, Any]:
    sides = (result.baseline, result.candidate)
    values = {side.name: side.reload_s for side in sides}
    absent = {side.name: f"it {side.reload_absent}" for side in sides if side.reload_s is None}
    return {**values, "absent": absent}


def _side(side: Side) -> dict[str, Any]:
    return {
        "description": side.description,
        "url": without_credentials(side.url),
        "run_dir": str(side.run_dir),
        "acceptance": acceptance_json(side.acceptance),
    }


def _absent(result: TrialResult) -> dict[str, str]:
    absent = {}
    if result.comparison.speedup is None:
        absent["speedup"] = f"nothing could be paired: {unpaired(result)}"
    if result.verdict.next_command is None:
        absent["next_command"] = "none is known that would say more"
    return absent


def unpaired(result: TrialResult) -> str:
    """Why replies could not be paired: what was left out, and by side what is wrong with the rest."""
    sides = {"baseline": result.comparison.baseline, "candidate": result.comparison.candidate}
    left_out = [f"{count(result.left_out, 'repeat')} left out"] if result.left_out else []
    rest = [
        f"{name} had {side.errors} errors and {side.without_tpot} replies without a TPOT of {side.requests}"
        for name, side in sides.items()
        if side.requests or not left_out
    ]
    return "; ".join([*left_out, *rest])


def measure_json(
    run_dir: Path,
    summary: RunSummary,
    self_check: Mapping[str, Any] | None,
    counters: SpecCounters | None = None,
) -> dict[str, Any]:
    """The run with plain types: times in ms, counts raw, and `absent` beside every null with its reason.

    `self_check` is the client's, as run.json keeps it; None where the run did not come to its end. `counters`
    are those of the server's /metrics page: they stand in where no reply carried counts.
    """
    values: dict[str, Any] = {f"{name}_ms": _distribution(summary, name) for name in _DISTRIBUTIONS}
    values |= {name: getattr(summary, name) for name in _RATES}
    values["max_tokens_enough_for_median"] = _enough(summary)
    body = {
        "run_dir": str(run_dir),
        "requests": summary.requests,
        "errors": summary.errors,
        "errors_by_kind": dict(summary.errors_by_kind),
        "truncated_in_reasoning": summary.truncated_in_reasoning,
        "tokens": _tokens(summary),
        **values,
        "speculation": acceptance_json(
            summary.speculation or counters, summary.absent.get("speculation", NO_COUNTS)
        ),
        "speculation_requests": summary.speculation_requests,
        "tokens_sources": dict(summary.tokens_sources),
        "n_first_sources": dict(summary.n_first_sources),
        "self_check": _self_check(self_check),
        "warnings": list(summary.warnings),
        "definitions": texts(),
        "absent": {
            key: why(summary, key.removesuffix("_ms")) for key, value in values.items() if value is None
        },
    }
    return {key: printable(value) for key, value in body.items()}


def why(summary: RunSummary, field: str) -> str:
    """Why a field of the summary is None."""
    return summary.absent.get(field, UNSAID)


def _distribution(summary: RunSummary, name: str) -> dict[str, Any] | None:
    values: Distribution | None = getattr(summary, name)
    if values is None:
        return None
    in_ms = {name: _ms(getattr(values, name)) for name in ("mean", "p50", "p90", "p99")}
    absent = {"p99": why(summary, f"{name}.p99")} if values.p99 is None else {}
    return {**in_ms, "n": values.n, "absent": absent}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _tokens(summary: RunSummary) -> dict[str, Any]:
    counts = asdict(summary.tokens)
    absent = {kind: why(summary, f"tokens.{kind}") for kind, value in counts.items() if value is None}
    return {**counts, "absent": absent}


def _enough(summary: RunSummary) -> dict[str, Any] | None:
    enough = summary.max_tokens_enough_for_median
    return None if enough is None else asdict(enough)


def _self_check(check: Mapping[str, Any] | None) -> dict[str, Any]:
    if check is None:
        return {"ok": None, "reasons": [], "absent": {"ok": "the run did not come to its end"}}
    return _explained(check)


def _explained(values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with an `absent` beside the nulls of each mapping."""
    filled = {k: _explained(v) if isinstance(v, Mapping) else v for k, v in values.items()}
    absent = {k: "not asked for, or too few requests to tell" for k, v in filled.items() if v is None}
    return {**filled, "absent": absent}
