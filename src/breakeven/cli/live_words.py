"""What somebody is asked before a service is restarted: what is forecast, and what the restarts cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from breakeven.units import duration

if TYPE_CHECKING:
    from breakeven.trial.live import LivePlan, Service
    from breakeven.trial.outlook import Outlook

RESTARTS = {"AB": (1, 1), "ABA": (1, 1), "ABBA": (2, 1)}
"""Of the candidate and of the baseline, by the order."""


def forecast_words(outlook: Outlook) -> str:
    """`ngram, k 5: forecast 0.96 [0.93, 0.99]`."""
    speedup = outlook.speedup
    if speedup is None:
        return f"{outlook.candidate.describe()}: no speedup was forecast"
    said = f"forecast {speedup.estimate:.2f} [{speedup.low:.2f}, {speedup.high:.2f}]"
    return f"{outlook.candidate.describe()}: {said}"


def restart_words(service: Service, plan: LivePlan) -> str:
    """`restarts cost about 2 h 00 min, as last time (1 h 30 min with it, 30 min back)`."""
    from breakeven.servers.start_times import last_start_s

    with_it, back = RESTARTS[plan.order]
    candidate_s, baseline_s = (last_start_s(service.found.target, changed) for changed in (True, False))
    if candidate_s is None and baseline_s is None:
        limit = duration(plan.start_limit_s)
        return f"{with_it + back} restarts, of which none was timed yet (each may take {limit})"
    if candidate_s is None or baseline_s is None:
        known, which = (baseline_s, "without it") if candidate_s is None else (candidate_s, "with it")
        return f"{with_it + back} restarts: one {which} took {duration(known)} last time"
    sum_s = with_it * candidate_s + back * baseline_s
    return (
        f"restarts cost about {duration(sum_s)}, as last time ({duration(candidate_s)} with it, "
        f"{duration(baseline_s)} back)"
    )
