"""What `breakeven eagle plan --json` prints. The keys are stable; `absent` beside a null says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from breakeven.cost.geometry_json import geometry_to_json
from breakeven.eagle.plan.memory import TrainingMemory
from breakeven.eagle.plan.records import Plan
from breakeven.eagle.plan.runs import TrainingRun
from breakeven.forecast.records import Needed
from breakeven.report.plain import printable

_NOT_STATED = "not stated"


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan in plain types: bytes, hours, tokens; intervals as estimate, low and high."""
    body = {
        "outcome": plan.outcome,
        "goal": plan.asked.goal,
        "concurrency": plan.concurrency,
        "reasons": [asdict(one) for one in plan.reasons],
        "not_judged": list(plan.not_judged),
        "model": plan.asked.model,
        "machine": _machine(plan),
        "budget": _budget(plan),
        "reached": None if plan.reached is None else asdict(plan.reached),
        "needed": [_needed(one) for one in plan.needed],
        "published": [asdict(one) for one in plan.published],
        "published_runs": [_run(run) for run in plan.runs],
        "published_heads": list(plan.heads),
        "data": asdict(plan.asked.data),
        "storage": _storage(plan),
        "gpu_hours": _hours(plan),
        "head": _head(plan),
        "memory": [_memory(one) for one in plan.memory],
        "target_devices": plan.target_devices,
        "routes": [asdict(one) for one in plan.routes],
        "layers": {tool: list(ids) for tool, ids in plan.layers.items()},
        "geometry": geometry_to_json(plan.asked.geometry),
        "basis": asdict(plan.basis),
        "assumed": [asdict(one) for one in plan.assumed],
        "next_commands": list(plan.next_commands),
        "warnings": list(plan.warnings),
    }
    absent = {} if plan.reached else {"reached": "no length is published at any of these windows"}
    return {key: printable(value) for key, value in {**body, "absent": absent}.items()}


def _with_absent(values: Mapping[str, Any], why: str) -> dict[str, Any]:
    return {**values, "absent": {key: why for key, value in values.items() if value is None}}


def _machine(plan: Plan) -> dict[str, Any]:
    machine = plan.asked.machine
    return {
        "gpu": machine.gpu.name,
        "gpus": machine.gpus,
        "server_gpus": machine.server_gpus,
        "generation_concurrency": machine.generation_concurrency,
        "sources": dict(machine.gpu.sources),
    }


def _budget(plan: Plan) -> dict[str, Any]:
    return _with_absent(asdict(plan.asked.budget), "not said")


def _needed(one: Needed) -> dict[str, Any]:
    return {
        "k": one.k,
        "concurrency": one.concurrency,
        "targets": [
            {"speedup": target, "acceptance_length": asdict(length), "possible": length.estimate <= one.k + 1}
            for target, length in one.acceptance_length.items()
        ],
    }


def _run(run: TrainingRun) -> dict[str, Any]:
    return _with_absent(asdict(run), _NOT_STATED)


def _storage(plan: Plan) -> dict[str, Any]:
    return _with_absent(asdict(plan.storage), "the size of the disk was not said")


def _hours(plan: Plan) -> dict[str, Any]:
    values = asdict(plan.hours)
    return {**values, "offline": asdict(plan.hours.offline), "online": asdict(plan.hours.online)}


def _head(plan: Plan) -> dict[str, Any]:
    head, steps = plan.head, plan.asked.data.steps
    return {
        **asdict(head),
        "trained_parameters": head.trained(),
        "frozen_parameters": head.frozen(),
        "flops_per_token": head.flops_per_token(steps),
    }


def _memory(one: TrainingMemory) -> dict[str, Any]:
    return {**asdict(one), "total": asdict(one.total)}
