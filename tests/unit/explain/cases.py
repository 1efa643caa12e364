"""Cases to explain: the published experiment on Kimi-K2.5, and smaller ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakeven.cost.curve import Curve, CurvePoint
from breakeven.cost.hardware import hardware
from breakeven.cost.measured import Measured
from breakeven.cost.presets import preset
from breakeven.explain.case import Case
from breakeven.explain.explain import explain
from breakeven.explain.observed import from_speeds
from breakeven.explain.records import Explanation, Finding, Observation

SPEEDS = {
    "coding": (62.6, 46.4),
    "math": (78.0, 64.8),
    "structured": (76.1, 65.5),
    "explanatory": (79.5, 72.5),
}
"""Baseline and candidate, tokens per second."""
ACCEPTANCE = (0.17, 0.31)


def kimi(**changes: Any) -> Case:
    """Kimi-K2.5 on 8 devices over PCIe; 17 to 31 % accepted, how often it drafted is not known."""
    observations = tuple(from_speeds(name, *speeds, ACCEPTANCE) for name, speeds in SPEEDS.items())
    values: dict[str, Any] = {
        "model": "kimi-k2.5",
        "geometry": preset("kimi-k2.5"),
        "hardware": hardware("rtx-pro-6000-ws"),
        "k": 5,
        "method": "ngram",
        "observations": observations,
        "engine": "vllm",
        "engine_version": "0.16",
        "tp": 8,
        "settings": {"prompt_lookup_max": 4},
    }
    return Case(**{**values, **changes})


CURVE_MS = {1: 13.0, 2: 13.5, 4: 14.2, 6: 16.0, 8: 18.0}
"""A step of a server by the sequences in it."""


def calibrated(moe: bool = True, steps_ms: Mapping[int, float] = CURVE_MS) -> Measured:
    """A concurrency curve of a server such as that of `kimi`."""
    points = (CurvePoint(c, ms / 1e3, ms * 0.99e-3, ms * 1.01e-3, 20) for c, ms in steps_ms.items())
    return Measured(Curve(tuple(points)), moe)


def llama(observation: Observation, **changes: Any) -> Case:
    """A dense model on one device."""
    values: dict[str, Any] = {
        "model": "llama-3.1-8b",
        "geometry": preset("llama-3.1-8b"),
        "hardware": hardware("h100-sxm"),
        "k": 4,
        "method": "eagle3",
        "observations": (observation,),
    }
    return Case(**{**values, **changes})


def finding(made: Explanation, name: str) -> Finding | None:
    return next((one for one in made.findings if one.id == name), None)


def explained_kimi(**changes: Any) -> Explanation:
    return explain(kimi(**changes))
