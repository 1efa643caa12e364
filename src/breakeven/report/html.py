"""The trial as one self-contained page."""

from __future__ import annotations

from pathlib import Path

from breakeven.report.evidence import Evidence, read_evidence
from breakeven.report.jsonout import trial_json
from breakeven.report.page import context
from breakeven.report.standalone import render, write_page
from breakeven.trial.result import TrialResult


def write_trial_html(result: TrialResult, path: Path) -> None:
    """Write the page, whole or not at all. Raises StorageError if the disk does not take it."""
    page = trial_page(result, read_evidence(result.baseline.run_dir), read_evidence(result.candidate.run_dir))
    write_page(page, path)


def trial_page(result: TrialResult, baseline: Evidence, candidate: Evidence) -> str:
    """The page's HTML, with the figures of `trial_json` in it as data."""
    return render("trial.html.j2", context(result, baseline, candidate), trial_json(result))
