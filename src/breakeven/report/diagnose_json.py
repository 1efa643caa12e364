"""What `breakeven diagnose --json` prints. The keys are stable; `absent` beside a null says why it is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from breakeven.acceptance.logs.summary import LogSummary
from breakeven.acceptance.stated import Stated
from breakeven.diagnose.diagnosis import Diagnosis
from breakeven.diagnose.evidence import Evidence, Setting, Traffic
from breakeven.explain.records import Explanation
from breakeven.report import diagnose_tables as tables
from breakeven.report import diagnose_words as words
from breakeven.report.explain_json import bounds_json, explain_json, finding_json, in_ms, part_json
from breakeven.report.plain import acceptance_json, printable

NO_COUNTS = "nothing that was given counts speculation"
NO_SPEEDS = (
    "two speeds and what verifying costs are not both known: type RUN RUN, and --calibration FOLDER or "
    "--model X --hardware Y"
)
_WHY = {
    "engine": "not said: type --engine",
    "version": "not said: type --engine-version",
    "refused": "the two speeds may be compared, or there are none",
    "waterfall": NO_SPEEDS,
    "unexplained_ms": NO_SPEEDS,
    "explanation": NO_SPEEDS,
    "replay": "no tokens were recorded, or the drafter is none that can be replayed",
    "traffic": "the server was not looked at: type --url URL",
    "baseline_traffic": "the baseline's server was not looked at",
    "log": "no log was given: type --logs FILE, --unit, --container or --pod",
    "baseline_log": "none was given: type --baseline-logs FILE",
}


def diagnose_json(made: Diagnosis) -> dict[str, Any]:
    """The diagnosis in plain types, times in ms."""
    evidence = made.evidence
    values: dict[str, Any] = {
        "engine": evidence.engine,
        "version": evidence.version,
        "refused": evidence.refused,
        "waterfall": None if evidence.explanation is None else _waterfall(evidence.explanation),
        "unexplained_ms": None if evidence.explanation is None else _unexplained(evidence.explanation),
        "explanation": None if evidence.explanation is None else explain_json(evidence.explanation),
        "replay": _replay(evidence),
        "traffic": _traffic(evidence.traffic),
        "baseline_traffic": _traffic(evidence.baseline_traffic),
        "log": _log(evidence.log),
        "baseline_log": _log(evidence.baseline_log),
    }
    body = {
        "answer": words.answer(made),
        "drafting": _with_reasons(asdict(evidence.drafting), "not said"),
        "acceptance": {
            **acceptance_json(evidence.counters, NO_COUNTS),
            "stated": [_stated(one) for one in evidence.stated],
        },
        "other_sources": [acceptance_json(other) for other in evidence.other_sources],
        "by_position": [_position(one) for one in tables.positions(evidence)],
        "resets": evidence.resets,
        "observed": _observed(evidence),
        **values,
        "findings": [finding_json(one) for one in made.findings],
        "unknown": dict(made.unknown),
        "notes": list(words.notes(made)),
        "definitions": words.DEFINITIONS,
        "absent": {key: why for key, why in _WHY.items() if values[key] is None},
    }
    return {key: printable(value) for key, value in body.items()}


def _waterfall(made: Explanation) -> list[dict[str, Any]]:
    return [part_json(part) for part in made.waterfall]


def _unexplained(made: Explanation) -> dict[str, float]:
    """Over all observations: of the one with the least, to that with the most."""
    ends = [one.unexplained_s for one in made.explained]
    return {"low": in_ms(min(low for low, _ in ends)), "high": in_ms(max(high for _, high in ends))}


def _stated(one: Stated) -> dict[str, Any]:
    value = one.value
    bounds = None if value is None else {"low": value.low, "high": value.high}
    return {
        "name": one.name,
        "value": bounds,
        "definition": one.definition,
        "source": one.source,
        "absent": {} if bounds else {"value": one.why},
    }


def _observed(evidence: Evidence) -> list[dict[str, Any]]:
    found = []
    for one in evidence.observations:
        step = tables.step_bounds(evidence, one)
        values = {
            "acceptance_rate": bounds_json(one.acceptance_rate),
            "draft_share": bounds_json(one.draft_share),
            "draft_tokens": one.draft_tokens,
            "step_ms": None if step is None else {"low": in_ms(step[0]), "high": in_ms(step[1])},
        }
        found.append(
            {
                "name": one.name,
                "baseline_tpot_ms": in_ms(one.baseline_tpot_s),
                "candidate_tpot_ms": in_ms(one.candidate_tpot_s),
                "speedup": one.baseline_tpot_s / one.candidate_tpot_s,
                **_with_reasons(values, "not counted and not given"),
            }
        )
    return found


def _replay(evidence: Evidence) -> dict[str, Any] | None:
    if evidence.replayed is None:
        return None
    return {**_setting(evidence.replayed.as_set), "others": _settings(evidence.replayed.others)}


def _settings(settings: Sequence[Setting]) -> list[dict[str, Any]]:
    return [_setting(one) for one in settings]


def _setting(one: Setting) -> dict[str, Any]:
    ratios = {name: tables.replayed_ratio(one.acceptance, name) for name in tables.REPLAYED}
    values = {"k": one.k, "min_n": one.min_n, "max_n": one.max_n, "cost_per_token": one.cost_per_token}
    return _with_reasons({**values, **ratios}, "not of this drafter, or not known")


def _traffic(traffic: Traffic | None) -> dict[str, Any] | None:
    if traffic is None:
        return None
    load = asdict(traffic.load)
    values = {
        "seconds": traffic.seconds,
        "requests_asked": traffic.requests,
        "output_tokens_asked": traffic.output_tokens,
        **load,
    }
    return _with_reasons(values, "not said by the server, or nothing was asked of it")


def _log(log: LogSummary | None) -> dict[str, Any] | None:
    if log is None:
        return None
    times = {name: period.at if period else None for name, period in (("from", log.first), ("to", log.last))}
    return {
        **_with_reasons({"engine": log.engine, **times, "death": _death(log)}, "no line says it"),
        "format": log.format,
        "lines": log.lines,
        "periods": log.periods,
        "resets": log.resets,
        "events": {name: {"lines": lines, "first": first} for name, (lines, first) in log.events.items()},
    }


def _death(log: LogSummary) -> dict[str, Any] | None:
    """Without the lines around it."""
    if log.death is None:
        return None
    told = {name: value for name, value in asdict(log.death).items() if name != "lines"}
    return _with_reasons(told, "no line gives a time")


def _with_reasons(values: dict[str, Any], why: str) -> dict[str, Any]:
    return {**values, "absent": {key: why for key, value in values.items() if value is None}}


def _position(one: tables.Position) -> dict[str, Any]:
    bounds = None if one.share is None else {"low": one.share.low, "high": one.share.high}
    values = {"accepted": one.accepted, "share": bounds}
    return {"position": one.number, **_with_reasons(values, "not derivable: the source does not count it")}
