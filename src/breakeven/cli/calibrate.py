"""`breakeven calibrate`: what a decode step costs by the tokens in it, as a running baseline shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.output import stderr, stdout
from breakeven.client.loop import run
from breakeven.cost.calibrate import CalibrationPlan, Visit, Watch, calibrate, concurrencies
from breakeven.cost.calibration import FILE, Calibration, calibration_to_json
from breakeven.errors import BreakevenError, UsageError
from breakeven.report.calibration_terminal import DEFINITION, print_calibration
from breakeven.report.plain import printable
from breakeven.report.progress import Ticker, progress
from breakeven.trace.records import RequestTrace
from breakeven.workload.files import load_prompts

MAX_TOKENS = 128
QUICK_MAX_TOKENS = 64
MAX_CONCURRENCY = 16
QUICK_MAX_CONCURRENCY = 8


@click.command("calibrate")
@click.argument("url")
@click.option("--model", help="Model name; needed only if the server has several.")
@click.option("--prompts", default="default", show_default=True, help="A built-in set, a file, or -.")
@click.option(
    "--max-concurrency",
    type=click.IntRange(min=1),
    help=f"Last point of the curve [default: {MAX_CONCURRENCY}; --quick: {QUICK_MAX_CONCURRENCY}].",
)
@click.option("--quick", is_flag=True, help="Fewer points and visits, half as many and half as long replies.")
@click.option(
    "--moe/--dense", "moe", default=None, help="Whether the model is a mixture of experts [default: unknown]."
)
@options.sampling_options
@options.endpoint_options
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder to write [default: runs/calibrate-DATE-TIME]."
)
@options.json_option
def calibrate_verb(url: str, **values: Any) -> int:
    """What would verifying drafts cost here? The concurrency curve of the baseline at URL, with no restart.

    \b
    breakeven calibrate http://127.0.0.1:8000
    breakeven calibrate http://127.0.0.1:8000 --quick
    breakeven calibrate http://127.0.0.1:8000 --max-concurrency 64 --prompts mine.jsonl --moe --json
    """
    plan = _plan(values)
    endpoint = options.endpoint(values, url)
    out = options.new_run_dir("calibrate", values["out"])
    with (
        _keeping(out / FILE),
        progress("calibrate, decode steps", plan.steps(*plan.visits()), stderr()) as ticker,
    ):
        found = run(
            calibrate(
                endpoint,
                plan,
                out,
                moe=values["moe"],
                timeouts=options.timeouts(values),
                watch=_Progress(ticker, plan),
            )
        )
    _refuse_too_few(found, out / FILE)
    if values["as_json"]:
        shown = {
            "path": str(out / FILE),
            **calibration_to_json(found),
            "definitions": {"step_ms": DEFINITION},
        }
        options.print_json(printable(shown))
    else:
        print_calibration(found, str(out / FILE), stdout())
    return 0


def _plan(values: dict[str, Any]) -> CalibrationPlan:
    quick = values["quick"]
    most = values["max_concurrency"] or (QUICK_MAX_CONCURRENCY if quick else MAX_CONCURRENCY)
    return CalibrationPlan(
        load_prompts(values["prompts"], values["api"]),
        options.sampling(values, QUICK_MAX_TOKENS if quick else MAX_TOKENS),
        concurrencies(most, quick),
        quick,
    )


def _refuse_too_few(found: Calibration, file: Path) -> None:
    """Raises UsageError with what kept points from being measured."""
    if found.fitted() is not None:
        return
    try:
        found.curve()
    except UsageError as error:
        why = "; ".join(found.notes)
        raise UsageError(f"{why or error}; the points that there are: {file}") from error


@contextmanager
def _keeping(file: Path) -> Iterator[None]:
    """Has a failure or Ctrl-C say where the points measured so far are."""
    try:
        yield
    except (BreakevenError, KeyboardInterrupt) as error:
        if not isinstance(error, UsageError) and file.exists():
            error.add_note(f"the points measured so far are in {file}")
        raise


class _Progress(Watch):
    """Counts decode steps: a request among many in flight is over sooner than its tokens say."""

    def __init__(self, ticker: Ticker, plan: CalibrationPlan) -> None:
        self._ticker, self._plan = ticker, plan

    def begins(self, visit: Visit) -> None:
        self._ticker.advance(0, note=str(visit))

    def asked(self, visit: Visit, trace: RequestTrace) -> None:
        self._ticker.advance(self._plan.steps_each(visit.concurrency), note=str(visit))

    def drops(self, visits: Sequence[Visit]) -> None:
        kept = [visit for visit in self._plan.visits() if visit not in visits]
        self._ticker.set_total(self._plan.steps(*kept))
