"""`breakeven show`: print a run or a trial that is on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.output import stdout
from breakeven.report.jsonout import measure_json, trial_json
from breakeven.report.terminal import print_run, print_trial
from breakeven.trace.run import load_run
from breakeven.trial.store import is_trial, load_trial


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@options.json_option
def show(run: Path, **values: Any) -> None:
    """Print a run or a trial that is on disk, finished or not.

    \b
    breakeven show runs/measure-20260101-120000
    breakeven show runs/trial-20260101-120000
    breakeven show runs/trial-20260101-120000/baseline --json
    """
    if is_trial(run):
        result = load_trial(run)
        if values["as_json"]:
            options.print_json(trial_json(result))
        else:
            print_trial(result, stdout())
        return
    loaded = load_run(run)
    summary = options.summary_of(loaded)
    if values["as_json"]:
        options.print_json(measure_json(run, summary, loaded.meta.self_check, loaded.meta.counters))
    else:
        print_run(loaded, summary, stdout())
