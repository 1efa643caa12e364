"""What a plan is asked for, of a target that is easy to reckon with."""

from __future__ import annotations

from typing import Any

from breakeven.cost.hardware import Hardware, hardware
from breakeven.cost.modelled import Modelled
from breakeven.cost.presets import preset
from breakeven.eagle.plan.asked import Asked, Budget, Data, Machine
from breakeven.eagle.plan.make import make_plan
from breakeven.eagle.plan.ranges import exactly
from breakeven.eagle.plan.records import Plan
from breakeven.forecast.records import Forecast
from breakeven.forecast.run import forecast_heads
from breakeven.forecast.terms import Terms
from breakeven.interval import Interval
from tests.unit.forecast.costs import Line

LLAMA = "llama-3.1-8b"
H100 = hardware("h100-sxm")


def data(samples: int = 500_000, tokens: Interval | float = 2048.0, **changes: Any) -> Data:
    """Half of a sample is its reply; two epochs of seven steps."""
    of_sample = tokens if isinstance(tokens, Interval) else exactly(tokens)
    values: dict[str, Any] = {
        "samples": samples,
        "tokens_per_sample": of_sample,
        "reply_tokens_per_sample": exactly(of_sample.estimate / 2),
        "epochs": exactly(2),
        "steps": 7,
        "draft_vocabulary": 32_000,
    }
    return Data(**{**values, **changes})


def asked(
    model: str = LLAMA,
    of: Data | None = None,
    gpus: int = 8,
    gpu: Hardware = H100,
    tp: int = 1,
    gpu_hours: float | None = None,
    disk_bytes: int | None = None,
    goal: float = 1.5,
    **changes: Any,
) -> Asked:
    """On H100s, the cost modelled, unless changed."""
    values: dict[str, Any] = {
        "model": model,
        "geometry": preset(model),
        "cost": Modelled(preset(model), gpu, tp),
        "data": of or data(),
        "machine": Machine(tp, 64, gpu, gpus),
        "budget": Budget(gpu_hours, disk_bytes),
        "goal": goal,
    }
    return Asked(**{**values, **changes})


def forecast(one: Asked, cost: Any = None, ks: tuple[int, ...] = (2, 3, 4)) -> Forecast:
    """What a head must reach; `cost` other than that of `one` for figures known beforehand."""
    terms = Terms(cost or one.cost, "As made for this test.", (1, 8), ks=ks, flat_s=0.0, token_s=0.0)
    return forecast_heads(terms)


CHEAP = Line(a=0.010, b=0.0001)
"""Verifying is nearly free: published heads pay."""
DEAR = Line(a=0.010, b=0.040)
"""Verifying three tokens makes a step 3.4 times as long: none does."""


def plan(one: Asked | None = None, cost: Any = CHEAP, **changes: Any) -> Plan:
    """Of `asked` with these changes."""
    wanted = one or asked(**changes)
    return make_plan(wanted, forecast(wanted, cost))
