"""TrialResult: what a trial found; what the report shows and `--json` prints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from breakeven.acceptance.counters import SpecCounters
from breakeven.compare.records import Comparison, Verdict

RUNNING = "was running already"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a trial. The traces themselves are in the run folder at `run_dir`."""

    name: str
    """`baseline` or `candidate`."""
    description: str
    """What it runs, in one line, such as `ngram-simple n=3 m=3, 1 thread`."""
    url: str
    run_dir: Path
    reload_s: float | None
    """From the start of the process to the first real completion; None where `reload_absent` says why."""
    acceptance: SpecCounters | None
    """Over the measured requests only; None where speculation was off or the server says nothing."""
    acceptance_by_prompt: dict[str, SpecCounters]
    reload_absent: str = RUNNING


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Everything the report needs."""

    model: str
    workload: str
    baseline: Side
    candidate: Side
    comparison: Comparison
    verdict: Verdict
    stopped_after: int
    """Repeats of every prompt on each side when the trial ended."""
    stop_reason: str
    confounders: tuple[str, ...]
    """What differs between the sides beside speculation, and what disturbed the measurement."""
    run_dir: Path
    started: str
    """ISO 8601, UTC."""
    elapsed_s: float | None
    """None for a trial that was cut off without a chance to say."""
    left_out: int = 0
    """Repeats that were asked, and are not compared."""
