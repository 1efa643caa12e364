"""`breakeven explain`: two measured speeds, and what of their difference a model of the step explains."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.case_options import Seen, case_of, case_options, seen_of_runs, told_of, window_options
from breakeven.cli.explain_options import Speeds
from breakeven.cli.output import stdout
from breakeven.cli.places import places_of
from breakeven.cli.record import check_page, written
from breakeven.errors import UsageError


@click.command()
@click.argument("record", nargs=-1, type=click.Path(path_type=Path), metavar="[BASELINE CANDIDATE | TRIAL]")
@click.option("--speeds", multiple=True, type=Speeds(), help="Measured, in tok/s; may be given again.")
@window_options
@case_options
@options.html_option()
@options.json_option
def explain(record: tuple[Path, ...], **values: Any) -> None:
    """Why is it slower (or faster) than it should be? A step in parts, and what is left over.

    Takes speeds, two runs or a trial, and what verifying costs: a calibration of the baseline, or the model
    and hardware. What is not known becomes a range, with the measurement that would settle it.

    \b
    breakeven explain runs/trial-20260101-120000 --k 5 --model kimi-k2.5 --hardware rtx-pro-6000-ws --tp 8
    breakeven explain runs/before runs/after --k 3 --method eagle3 --model qwen3-8b --hardware h100-sxm
    breakeven explain runs/a runs/b --k 3 --calibration runs/calibrate-20260101-121500
    breakeven explain --speeds 62.6,46.4 --acceptance 17-31% --k 5 --model llama-3.1-8b --hardware h100-sxm
    """
    from breakeven.explain.explain import explain as explained
    from breakeven.explain.places import all_filled, of_runs

    check_page(values["html"], [*record, values["calibration"]])
    seen = _seen(record, values)
    known = {**of_runs(seen.baseline, seen.candidate), **places_of(values)}
    made = all_filled(explained(case_of(seen, told_of(values), values)), known)
    report = None
    if values["html"]:
        from breakeven.report.explain_html import write_explain_html

        report = written(write_explain_html, made, values["html"])
    if values["as_json"]:
        from breakeven.report.explain_json import explain_json

        options.print_json(explain_json(made))
    else:
        from breakeven.report.explain_terminal import print_explanation

        print_explanation(made, stdout(), report)


def _seen(record: tuple[Path, ...], values: Mapping[str, Any]) -> Seen:
    if bool(record) == bool(values["speeds"]):
        raise UsageError(
            "name two runs or a trial, or type --speeds NAME=BASELINE,CANDIDATE in tok/s: one of the two"
        )
    return seen_of_runs(record, values) if record else _of_speeds(values)


def _of_speeds(values: Mapping[str, Any]) -> Seen:
    from breakeven.explain.observed import from_speeds

    names = [name for name, _, _ in values["speeds"]]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"--speeds {twice} is given twice: give each its own name, NAME=BASELINE,CANDIDATE")
    rate, share = values["acceptance"], values["draft_share"]
    return Seen(
        tuple(
            from_speeds(name, baseline, candidate, rate, share)
            for name, baseline, candidate in values["speeds"]
        )
    )
