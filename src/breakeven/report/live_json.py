"""What `trial --server --json` prints: the best candidate's trial as any other, and what became of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from breakeven.interval import Interval
from breakeven.report.jsonout import trial_json, unpaired
from breakeven.report.plain import printable
from breakeven.trial.outlook import Tried
from breakeven.trial.result import TrialResult

NOTHING = "no candidate was tried, so that nothing was restarted"


def live_json(
    tried: Sequence[Tried], best: TrialResult | None, target: str, baseline: Path
) -> dict[str, Any]:
    """`best` is one of the results of `tried`; None where none was tried."""
    untried = {"verdict": None, "reason": NOTHING, "absent": {"verdict": NOTHING}}
    return {
        **(untried if best is None else trial_json(best)),
        "server": printable(target),
        "baseline_run": str(baseline),
        "candidates": [printable(_candidate(one)) for one in tried],
    }


def _candidate(one: Tried) -> dict[str, Any]:
    result, forecast = one.result, one.outlook.speedup
    measured = result.comparison.speedup if result else None
    absent = {} if forecast else {"forecast": one.outlook.words}
    if result is None:
        absent |= dict.fromkeys(("verdict", "speedup", "run_dir"), one.skipped)
    elif measured is None:
        absent |= {"speedup": f"nothing could be paired: {unpaired(result)}"}
    return {
        "candidate": one.outlook.candidate.describe(),
        "forecast": _interval(forecast),
        "words": one.outlook.words,
        "verdict": result.verdict.outcome if result else None,
        "reason": result.verdict.reason if result else one.skipped,
        "speedup": _interval(measured),
        "run_dir": str(result.run_dir) if result else None,
        "absent": absent,
    }


def _interval(value: Interval | None) -> dict[str, float] | None:
    return None if value is None else {"estimate": value.estimate, "low": value.low, "high": value.high}
