"""`breakeven show`: print a run, a trial or a calibration that is on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.output import stdout
from breakeven.cost.calibration import FILE, load_calibration
from breakeven.report.calibration_json import calibration_json
from breakeven.report.calibration_terminal import print_calibration
from breakeven.report.jsonout import measure_json, trial_json
from breakeven.report.terminal import print_run, print_trial
from breakeven.trace.run import load_run
from breakeven.trial.store import is_trial, load_trial


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@options.json_option
def show(run: Path, **values: Any) -> None:
    """Print a run, a trial or a calibration that is on disk, finished or not.

    \b
    breakeven show runs/measure-20260101-120000
    breakeven show runs/trial-20260101-120000
    breakeven show runs/trial-20260101-120000/baseline --json
    breakeven show runs/calibrate-20260101-121500
    """
    if is_trial(run):
        _show_trial(run, values["as_json"])
    elif run.name == FILE or (run / FILE).is_file():
        show_calibration(run if run.name == FILE else run / FILE, values["as_json"])
    else:
        _show_run(run, values["as_json"])


def _show_trial(folder: Path, as_json: bool) -> None:
    result = load_trial(folder)
    if as_json:
        options.print_json(trial_json(result))
    else:
        print_trial(result, stdout())


def show_calibration(file: Path, as_json: bool) -> None:
    """As `breakeven calibrate` ends. Raises UsageError for what is no calibration."""
    found = load_calibration(file)
    if as_json:
        options.print_json(calibration_json(found, str(file)))
    else:
        print_calibration(found, str(file), stdout())


def _show_run(folder: Path, as_json: bool) -> None:
    loaded = load_run(folder)
    summary = options.summary_of(loaded)
    if as_json:
        options.print_json(measure_json(folder, summary, loaded.meta.self_check, loaded.meta.counters))
    else:
        print_run(loaded, summary, stdout())
