"""Know whether speculative decoding pays, prove it when it does, and find the cause when it does not.

A public name is imported when it is first asked for: most bring numpy and pyarrow with them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from breakeven.acceptance.record import Acceptance
    from breakeven.client.endpoint import ApiKey, Endpoint
    from breakeven.client.schedule import ClosedLoop, OpenLoop
    from breakeven.client.timeouts import Timeouts
    from breakeven.compare.comparison import compare_traces
    from breakeven.compare.records import Comparison, Verdict
    from breakeven.drafters.base import Drafter
    from breakeven.errors import BreakevenError
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
    "ApiKey",
    "BreakevenError",
    "ClosedLoop",
    "Comparison",
    "Drafter",
    "Endpoint",
    "Event",
    "Interval",
    "Kind",
    "LiveSide",
    "MeasurePlan",
    "OpenLoop",
    "Prompt",
    "Replay",
    "RequestLatency",
    "RequestTrace",
    "Run",
    "RunSummary",
    "Sampling",
    "Sweep",
    "Timeouts",
    "TrialPlan",
    "TrialResult",
    "Verdict",
    "Workload",
    "compare_runs",
    "compare_traces",
    "conduct",
    "judge",
    "load_prompts",
    "load_run",
    "load_trial",
    "measure_endpoint",
    "open_source",
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
    "drafters.base": "Drafter",
    "errors": "BreakevenError",
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
