"""A plan, out of what is asked and what a forecast says a head must reach."""

from __future__ import annotations

from collections.abc import Sequence

from breakeven.cost.hardware import Hardware
from breakeven.eagle.layers import SHIFT, default_layers, written_as
from breakeven.eagle.plan.asked import Asked
from breakeven.eagle.plan.assumed import MEMORY_SHARE, STATES_UTILISATION, TRAINING_UTILISATION, Assumed
from breakeven.eagle.plan.head import HeadSize, head_of
from breakeven.eagle.plan.hours import hours_of
from breakeven.eagle.plan.memory import TrainingMemory, target_devices, training_memory, usable_bytes
from breakeven.eagle.plan.reasons import (
    acceptance_reason,
    data_reason,
    decided,
    hours_reason,
    reached,
    route_reason,
)
from breakeven.eagle.plan.records import Outcome, Plan, Reason
from breakeven.eagle.plan.routes import Route, routes_of
from breakeven.eagle.plan.runs import heads_of, training_runs
from breakeven.eagle.plan.storage import storage_of
from breakeven.forecast.records import Forecast

_NOT_SAID = {
    "gpu_hours": "the GPU hours that there are: --gpu-hours",
    "disk_bytes": "the disk for hidden states: --disk",
}


def make_plan(asked: Asked, forecast: Forecast, assumed: Sequence[Assumed] = ()) -> Plan:
    """`forecast` tells what a head must reach (forecast_heads); `assumed` what was taken for the data.

    Raises UsageError for a target with too few layers, a draft vocabulary larger than its own, or a device
    without a known rate or memory.
    """
    head = head_of(asked.geometry, asked.data.draft_vocabulary)
    layers = default_layers(asked.geometry.layers)
    storage = storage_of(asked.geometry.hidden, asked.data, asked.budget.disk_bytes)
    hours = hours_of(asked, head)
    routes, memory = routes_of(asked, head, storage, hours), _memory(asked, head)
    closed = _closed(routes[0], memory[0], asked.machine.gpu)
    found = reached(forecast.needed, forecast.published, asked.model, forecast.concurrency)
    grounds = (
        acceptance_reason(found, asked.goal),
        data_reason(asked.data.samples, forecast.needed, forecast.concurrency, found, asked.goal),
        route_reason(routes),
        hours_reason(asked, routes),
    )
    reasons = tuple(one for one in grounds if one is not None)
    outcome, heads = decided(reasons), heads_of(asked.model)
    return Plan(
        asked=asked,
        head=head,
        layers={tool: tuple(written_as(layers, tool)) for tool in SHIFT},
        needed=forecast.needed,
        published=forecast.published,
        reached=found,
        concurrency=forecast.concurrency,
        basis=forecast.basis,
        runs=training_runs(),
        heads=heads,
        storage=storage,
        hours=hours,
        memory=memory,
        target_devices=target_devices(asked.geometry, asked.machine.gpu),
        routes=routes,
        assumed=(*assumed, STATES_UTILISATION, TRAINING_UTILISATION, MEMORY_SHARE),
        outcome=outcome,
        reasons=reasons,
        not_judged=tuple(said for name, said in _NOT_SAID.items() if getattr(asked.budget, name) is None),
        next_commands=_next(outcome, reasons, heads, forecast.basis.source, closed is not None),
        warnings=(*((closed,) if closed and outcome != "no-go" else ()), *forecast.warnings),
    )


def _memory(asked: Asked, head: HeadSize) -> tuple[TrainingMemory, ...]:
    """Replicated, and sharded over half of the devices and over all."""
    data, gpus = asked.data, asked.machine.gpus
    sharded = sorted({max(gpus // 2, 1), gpus} - {1})
    return (
        training_memory(head, "replicated", gpus, data.tokens_per_sample, data.steps),
        *(training_memory(head, "sharded", n, data.tokens_per_sample, data.steps) for n in sharded),
    )


def _next(
    outcome: Outcome, reasons: Sequence[Reason], heads: Sequence[str], source: str, closed: bool
) -> tuple[str, ...]:
    """A published head is tried before one is trained; a model is replaced by a measurement."""
    tried = tuple(f"breakeven trial --server … --method eagle3 --draft {head}" for head in heads[:1])
    open_acceptance = reasons[0].outcome == "undecided" and source != "measured"
    measured = ("breakeven calibrate URL",) if open_acceptance else ()
    if outcome == "no-go" or closed:
        return (*measured, *tried)
    return (*measured, *tried, "breakeven eagle init --out recipe.toml", "breakeven eagle run recipe.toml")


def _closed(offline: Route, whole: TrainingMemory, device: Hardware) -> str | None:
    """Why this tool's own stages are no way to train it, and which is one; None where they are."""
    if offline.possible == "no":
        return (
            "offline, the way of this tool's own stages, is closed: train online with the trainers of "
            "speculators or TorchSpec, which take the states from a running server, or plan fewer samples"
        )
    if whole.total.low > usable_bytes(device):
        return (
            "the head fits only in parts, and this tool's own training keeps a whole one on each device: "
            "train with the command of speculators and its --fsdp-shard, or plan shorter samples"
        )
    return None
