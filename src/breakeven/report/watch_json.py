"""What `breakeven watch --once --json` prints. The keys are stable; `absent` says why a value is null."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from breakeven.acceptance.counters import COUNTS, SpecCounters
from breakeven.acceptance.stated import Stated
from breakeven.interval import Interval
from breakeven.report.plain import printable
from breakeven.watch.pays import Speculation
from breakeven.watch.state import DEFINITIONS, INTERVAL, Now, ServerState

_NOT_COUNTED = "the page does not count it"
_NOT_READ = "the server could not be read"


def watch_json(states: Sequence[ServerState], interval_s: float, calibration: str | None) -> dict[str, Any]:
    body = {
        "interval_s": interval_s,
        "calibration": calibration,
        "servers": [_server(state) for state in states],
        "definitions": {**DEFINITIONS, "interval": INTERVAL},
        "absent": {} if calibration else {"calibration": "none was given: type --calibration FILE"},
    }
    return {key: printable(value) for key, value in body.items()}


def _server(state: ServerState) -> dict[str, Any]:
    found = state.now
    read_at = None if state.read_at is None else datetime.fromtimestamp(state.read_at, UTC).isoformat()
    values: dict[str, Any] = {
        "url": state.url,
        "model": state.model,
        "engine": found.engine if found else None,
        "problem": state.problem or None,
        "read_at": read_at,
        "resets": state.resets,
        "now": _now(found) if found else None,
    }
    whys = {
        "model": "the server does not list one",
        "engine": _NOT_READ,
        "problem": "there is none",
        "read_at": _NOT_READ,
        "now": state.problem,
    }
    return {**values, "absent": {key: why for key, why in whys.items() if values[key] is None}}


def _now(found: Now) -> dict[str, Any]:
    values: dict[str, Any] = {
        "window_s": found.seconds,
        "speculation": _speculation(found.speculation),
        "counters": _counters(found.counters),
        "ratios": {one.name: _ratio(one) for one in found.ratios},
        "accepted_per_position": None if found.per_position is None else list(found.per_position),
        "requests_running": found.running,
        "requests_waiting": found.waiting,
        "kv_cache_usage": found.kv_usage,
        "output_tokens_per_second": found.output_tokens_per_s,
        "notes": list(found.notes),
    }
    return {**values, "absent": {key: _NOT_COUNTED for key, value in values.items() if value is None}}


def _speculation(found: Speculation) -> dict[str, Any]:
    values: dict[str, Any] = {
        "answer": found.answer,
        "speedup": _interval(found.speedup),
        "step_ratio": _interval(found.step_ratio),
        "drafted_tokens_per_draft": found.drafted_per_draft,
        "accepted_tokens_per_draft": found.accepted_per_draft,
        "sequences": found.sequences,
        "notes": list(found.notes),
    }
    return {**values, "absent": {key: found.why for key, value in values.items() if value is None}}


def _counters(found: SpecCounters | None) -> dict[str, Any] | None:
    if found is None:
        return None
    values: dict[str, Any] = {name: getattr(found, name) for name in COUNTS}
    positions = found.accepted_per_position
    values |= {
        "accepted_per_position": None if positions is None else list(positions),
        "source": found.source,
    }
    return {**values, "absent": {key: _NOT_COUNTED for key, value in values.items() if value is None}}


def _ratio(one: Stated) -> dict[str, Any]:
    absent = {"value": one.why} if one.value is None else {}
    return {"value": _interval(one.value), "source": one.source, "absent": absent}


def _interval(found: Interval | None) -> dict[str, float] | None:
    return None if found is None else {"estimate": found.estimate, "low": found.low, "high": found.high}
