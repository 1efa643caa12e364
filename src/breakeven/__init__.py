"""Know whether speculative decoding pays, prove it when it does, and find the cause when it does not.

A public name is imported when it is first asked for: most bring numpy and pyarrow with them.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
"""As in `typing`, which takes long to import: until that is done a Ctrl-C is told of by Python itself."""
if TYPE_CHECKING:
    from typing import Any

    from breakeven.acceptance.record import Acceptance
    from breakeven.client.endpoint import ApiKey, Endpoint
    from breakeven.client.schedule import ClosedLoop, OpenLoop
    from breakeven.client.timeouts import Timeouts
    from breakeven.compare.comparison import compare_traces
    from breakeven.compare.records import Comparison, Verdict
    from breakeven.cost.anchored import Anchored
    from breakeven.cost.calibration import Calibration, load_calibration
    from breakeven.cost.hardware import hardware
    from breakeven.cost.measured import Measured
    from breakeven.cost.modelled import Modelled
    from breakeven.cost.presets import preset
    from breakeven.drafters.base import Drafter
    from breakeven.errors import BreakevenError
    from breakeven.forecast.prefill import Prefill
    from breakeven.forecast.records import Forecast
    from breakeven.forecast.run import forecast_heads, forecast_source
    from breakeven.forecast.terms import Terms
    from breakeven.interval import Interval
    from breakeven.latency import RequestLatency, RunSummary, request_latency, summarize
    from breakeven.measure import MeasurePlan, measure_endpoint
    from breakeven.replay.records import Replay, Sweep
    from breakeven.replay.run import replay_source
    from breakeven.replay.sources import open_source
    from breakeven.replay.sweep import sweep_source
    from breakeven.trace.records import Event, Kind, RequestTrace
    from breakeven.trace.run import Run, load_run
    from breakeven.trial.conductor import LiveSide, conduct
    from breakeven.trial.plan import TrialPlan
    from breakeven.trial.result import TrialResult
    from breakeven.trial.store import compare_runs, load_trial
    from breakeven.verdict import judge
    from breakeven.workload.files import load_prompts
    from breakeven.workload.prompts import Prompt, Sampling, Workload

__all__ = [
    "Acceptance",
    "Anchored",
    "ApiKey",
    "BreakevenError",
    "Calibration",
    "ClosedLoop",
    "Comparison",
    "Drafter",
    "Endpoint",
    "Event",
    "Forecast",
    "Interval",
    "Kind",
    "LiveSide",
    "MeasurePlan",
    "Measured",
    "Modelled",
    "OpenLoop",
    "Prefill",
    "Prompt",
    "Replay",
    "RequestLatency",
    "RequestTrace",
    "Run",
    "RunSummary",
    "Sampling",
    "Sweep",
    "Terms",
    "Timeouts",
    "TrialPlan",
    "TrialResult",
    "Verdict",
    "Workload",
    "compare_runs",
    "compare_traces",
    "conduct",
    "forecast_heads",
    "forecast_source",
    "hardware",
    "judge",
    "load_calibration",
    "load_prompts",
    "load_run",
    "load_trial",
    "measure_endpoint",
    "open_source",
    "preset",
    "replay_source",
    "request_latency",
    "summarize",
    "sweep_source",
]

_NAMES = {
    "acceptance.record": "Acceptance",
    "client.endpoint": "ApiKey Endpoint",
    "client.schedule": "ClosedLoop OpenLoop",
    "client.timeouts": "Timeouts",
    "compare.comparison": "compare_traces",
    "compare.records": "Comparison Verdict",
    "cost.anchored": "Anchored",
    "cost.calibration": "Calibration load_calibration",
    "cost.hardware": "hardware",
    "cost.measured": "Measured",
    "cost.modelled": "Modelled",
    "cost.presets": "preset",
    "drafters.base": "Drafter",
    "errors": "BreakevenError",
    "forecast.prefill": "Prefill",
    "forecast.records": "Forecast",
    "forecast.run": "forecast_heads forecast_source",
    "forecast.terms": "Terms",
    "interval": "Interval",
    "latency": "RequestLatency RunSummary request_latency summarize",
    "measure": "MeasurePlan measure_endpoint",
    "replay.records": "Replay Sweep",
    "replay.run": "replay_source",
    "replay.sources": "open_source",
    "replay.sweep": "sweep_source",
    "trace.records": "Event Kind RequestTrace",
    "trace.run": "Run load_run",
    "trial.conductor": "LiveSide conduct",
    "trial.plan": "TrialPlan",
    "trial.result": "TrialResult",
    "trial.store": "compare_runs load_trial",
    "verdict": "judge",
    "workload.files": "load_prompts",
    "workload.prompts": "Prompt Sampling Workload",
}
"""Where each of them is, as a type checker is told above."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
