"""`breakeven diagnose`: what speculation does on a server, and why it does not pay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.access_options import access_options
from breakeven.cli.case_options import case_options, window_options
from breakeven.cli.interrupt import INTERRUPTED
from breakeven.cli.log_options import log_options
from breakeven.cli.output import stdout

MOST_S = 86_400.0


@click.command()
@click.argument(
    "record", nargs=-1, type=click.Path(path_type=Path), metavar="[RUN | BASELINE CANDIDATE | TRIAL]"
)
@click.option("--url", metavar="URL", help="A running server: its /metrics is read twice, nothing is asked.")
@click.option(
    "--seconds",
    type=options.FiniteRange(0.1, MOST_S),
    help="Between the two readings of --url; Ctrl-C reads at once [default: 30].",
)
@log_options
@window_options
@click.option("--min-n", type=click.IntRange(min=1), help="Shortest n-gram that is looked up.")
@click.option("--max-n", type=click.IntRange(min=1), help="Longest n-gram that is looked up.")
@case_options
@access_options
@options.json_option
def diagnose(record: tuple[Path, ...], **values: Any) -> int:
    """Is acceptance what it seems, and why does it not pay? Findings with evidence, most telling first.

    Reads what there is: a run, two (BASELINE CANDIDATE), a trial, or an experiment.toml; a running server;
    its log, of which Ctrl-C ends the reading. What drafts is taken from these where they say it. What is not
    known is listed, with what to type.

    \b
    breakeven diagnose --url http://127.0.0.1:8000 --unit vllm
    breakeven diagnose runs/before runs/after --logs vllm.log --model qwen3-8b --hardware h100-sxm
    breakeven diagnose runs/trial-20260101-120000 --calibration runs/calibrate-20260101-121500 --json
    """
    from breakeven.cli.diagnose_readings import readings_of
    from breakeven.diagnose.diagnose import diagnose as diagnosed
    from breakeven.diagnose.gather import gather

    read = readings_of(record, values)
    made = diagnosed(gather(read))
    if values["as_json"]:
        from breakeven.report.diagnose_json import diagnose_json

        options.print_json(diagnose_json(made))
    else:
        from breakeven.report.diagnose_terminal import print_diagnosis

        print_diagnosis(made, stdout())
    return INTERRUPTED if read.is_cut else 0
