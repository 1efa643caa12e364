"""`breakeven compare`: two runs of the same prompts, paired."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.output import stdout
from breakeven.report.html import write_trial_html
from breakeven.report.jsonout import trial_json
from breakeven.report.terminal import print_trial
from breakeven.trial.store import compare_runs


@click.command()
@click.argument("baseline", type=click.Path(path_type=Path))
@click.argument("candidate", type=click.Path(path_type=Path))
@options.decision_options
@options.fail_if_option
@options.html_option()
@options.json_option
def compare(baseline: Path, candidate: Path, **values: Any) -> int:
    """Is the second run faster than the first? Both measured the same prompts, one after the other.

    \b
    breakeven compare runs/before runs/after
    breakeven compare runs/before runs/after --html report.html
    breakeven compare runs/before runs/after --json --fail-if slower
    """
    result = compare_runs(baseline, candidate, values["floor"], values["confidence"])
    if values["html"]:
        write_trial_html(result, values["html"])
    if values["as_json"]:
        options.print_json(trial_json(result))
    else:
        print_trial(result, stdout(), values["html"] and str(values["html"]))
    return options.gate(result.verdict.outcome, values["fail_if"])
