"""Know whether speculative decoding pays, prove it when it does, and find the cause when it does not."""

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
