"""What `breakeven guard simulate --json` prints. `absent` beside a null says why it is one."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from breakeven.guard.simulate.records import AtConcurrency, Played, Simulation, Speed
from breakeven.report import guard_words as words
from breakeven.report.definitions import texts
from breakeven.report.plain import acceptance_json, printable
from breakeven.report.replay_json import origin_json

_NO_LEDGER = "without a ledger"
_NO_FLAGS = "nothing turns it on in an engine"
_NO_FIXED = "no fixed setting was tried"


def guard_json(made: Simulation) -> dict[str, Any]:
    """The simulation in plain types."""
    body = {
        "guard": _played(made.guard, per_request=True),
        "best_fixed": None if made.best_fixed is None else _played(made.best_fixed),
        "of_best_fixed": words.of_best_fixed(made, made.guard.speed),
        "test_and_set": _played(made.test_and_set),
        "oracle": _played(made.oracle),
        "by_epsilon": [{**_epsilon(one.epsilon), **_played(one.guard)} for one in made.by_epsilon],
        "by_concurrency": [_concurrency(one) for one in made.by_concurrency],
        "best_fixed_by_category": {name: _best_of(made, name) for name in made.guard.by_category},
        "fixed": [_played(one) for one in made.fixed],
        "engine": made.engine,
        "has_seam": made.has_seam,
        "next_commands": list(made.next_commands),
        "sentences": [words.headline(made), *words.sentences(made)],
        "settings": {**_plain(asdict(made.settings)), **_epsilon(made.settings.epsilon)},
        "idle": made.idle,
        "source_of_cost": made.cost_source,
        "basis": {"words": made.cost_words, "drafting": made.drafting_words},
        "origin": origin_json(made.origin),
        "first_token": made.first_token,
        "requests": made.requests,
        "output_tokens": made.output_tokens,
        "skipped": dict(made.skipped),
        "warnings": list(made.warnings),
        "definitions": texts(words.GUARD_DEFINITIONS),
        "elapsed_s": made.elapsed_s,
    }
    absent = {name: _NO_FIXED for name in ("best_fixed", "of_best_fixed") if body[name] is None}
    return {key: printable(value) for key, value in {**body, "absent": absent}.items()}


def _played(one: Played, per_request: bool = False) -> dict[str, Any]:
    counts = acceptance_json(one.counters)
    values: dict[str, Any] = {
        "kind": one.kind,
        "name": one.name,
        "settings": _plain(one.settings),
        "flags": one.flags or None,
        **_speed(one.speed),
        "by_category": {name: _speed(speed) for name, speed in one.by_category.items()},
        "acceptance": counts,
        "absent": {} if one.flags else {"flags": _NO_FLAGS},
    }
    return {**values, "requests": [asdict(row) for row in one.requests]} if per_request else values


def _speed(speed: Speed) -> dict[str, Any]:
    return {"speedup": speed.speedup, "total": speed.total, "worst": asdict(speed.worst)}


def _epsilon(epsilon: float) -> dict[str, Any]:
    if math.isinf(epsilon):
        return {"epsilon": None, "epsilon_absent": _NO_LEDGER}
    return {"epsilon": epsilon}


def _plain(settings: Any) -> dict[str, Any]:
    """JSON carries no infinity."""
    return {
        name: None if isinstance(value, float) and math.isinf(value) else value
        for name, value in dict(settings).items()
    }


def _best_of(made: Simulation, category: str) -> dict[str, Any] | None:
    best = made.best_fixed_of(category)
    if best is None:
        return None
    return {"name": best.name, "settings": dict(best.settings), **_speed(best.by_category[category])}


def _concurrency(one: AtConcurrency) -> dict[str, Any]:
    return {
        "concurrency": one.concurrency,
        "guard": _played(one.guard),
        "reasons": dict(one.reasons),
        "best_fixed": None if one.best_fixed is None else _played(one.best_fixed),
        "absent": {"best_fixed": _NO_FIXED} if one.best_fixed is None else {},
    }
