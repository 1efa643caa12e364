"""The trial of one live service: the baseline as it runs, the candidate in its place, and the baseline back."""

from __future__ import annotations

from pathlib import Path

from breakeven.engines.speculation import SpeculationConfig
from breakeven.trace.run import Run
from breakeven.trial.live_order import ORDERS, Order
from breakeven.trial.live_records import LivePlan, Service, Watch
from breakeven.trial.result import TrialResult

__all__ = ["ORDERS", "LivePlan", "Order", "Service", "Watch", "dry_run", "measure_baseline", "try_candidate"]


async def measure_baseline(service: Service, plan: LivePlan, out: Path, watch: Watch) -> Run:
    """Ask the service as it runs, without a restart, into out/baseline."""
    raise NotImplementedError


async def try_candidate(
    service: Service,
    plan: LivePlan,
    candidate: SpeculationConfig,
    out: Path,
    watch: Watch,
    baseline: Path | None = None,
) -> TrialResult:
    """Measure one candidate in place of the service, and put the service back; into out."""
    raise NotImplementedError


def dry_run(service: Service, plan: LivePlan) -> str:
    """All that a trial would do, in order. Touches nothing."""
    raise NotImplementedError
