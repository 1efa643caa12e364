"""`breakeven calibrate`: what a decode step costs by the tokens in it, as a baseline that runs shows."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.embedded import LOG, has_experts, leaving_no_empty, settings_of
from breakeven.cli.models import watching
from breakeven.cli.no_url import refuse_no_url
from breakeven.cli.output import stderr
from breakeven.cli.record import refuse
from breakeven.cli.show import show_calibration
from breakeven.client.endpoint import Endpoint
from breakeven.client.loop import session
from breakeven.cost.calibrate import CalibrationPlan, Visit, Watch, calibrate, concurrencies
from breakeven.cost.calibration import FILE, Calibration
from breakeven.errors import BreakevenError, UsageError
from breakeven.models.resolve import resolve
from breakeven.report.progress import Ticker, progress
from breakeven.servers.embedded import EmbeddedServer
from breakeven.trace.records import RequestTrace
from breakeven.units import count
from breakeven.workload.files import load_prompts

OF_EMBEDDED = ("slots", "flags")
MAX_TOKENS = 128
QUICK_MAX_TOKENS = 64
MAX_CONCURRENCY = 16
QUICK_MAX_CONCURRENCY = 8
MOST_CONCURRENCY = 1024
"""As many sequences as engines decode at once, with room; far more are connections that no client opens."""


@click.command("calibrate")
@click.argument("url", required=False)
@click.option(
    "--model",
    help="Without URL, weights for an embedded engine that is started for it: a name of `breakeven models "
    "list`, hf:org/repo/file.gguf, or a path. With URL: the model's name there, if the server has several.",
)
@click.option(
    "--slots",
    type=click.IntRange(min=1),
    help="Requests that the embedded engine decodes at once [default: the last point of the curve].",
)
@click.option("--flags", help="llama-server flags of the embedded engine, as `trial --baseline` takes them.")
@click.option("--prompts", default="default", show_default=True, help="A built-in set, a file, or -.")
@click.option(
    "--max-concurrency",
    type=click.IntRange(min=1, max=MOST_CONCURRENCY),
    help=f"Last point of the curve [default: {MAX_CONCURRENCY}; of --quick or without URL "
    f"{QUICK_MAX_CONCURRENCY}].",
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
def calibrate_verb(url: str | None, **values: Any) -> int:
    """What would verifying drafts cost here? The concurrency curve of the baseline at URL, with no restart.

    Without URL, that of an embedded engine, which is started for it and stopped.

    \b
    breakeven calibrate http://127.0.0.1:8000
    breakeven calibrate --model smollm2 --quick
    breakeven calibrate http://127.0.0.1:8000 --max-concurrency 64 --prompts mine.jsonl --moe --json
    """
    out = _embedded(values) if url is None else _running(url, values)
    show_calibration(out / FILE, values["as_json"])
    return 0


def _running(url: str, values: Mapping[str, Any]) -> Path:
    """Of a server that someone else runs. The folder that it is in."""
    refuse(values, OF_EMBEDDED, "{} is of an embedded engine: leave out it, or the URL")
    refuse_no_url(url)
    plan, endpoint = calibration_plan(values), options.endpoint(values, url)
    out = options.new_run_dir("calibrate", values["out"])
    with session() as loop:
        measure_curve(loop.run, endpoint, plan, out, values, values["moe"])
    return out


def _embedded(values: Mapping[str, Any]) -> Path:
    """Of an engine that is started here, and stopped whatever happens. The folder that it is in."""
    if values["model"] is None:
        raise UsageError(
            "what is to be calibrated? Type  breakeven calibrate http://HOST:PORT  for a server that runs, "
            "or  breakeven calibrate --model smollm2  for the embedded engine"
        )
    most = values["max_concurrency"] or QUICK_MAX_CONCURRENCY
    plan = calibration_plan({**values, "max_concurrency": most})
    settings = settings_of(values["flags"], values["slots"] or most)
    out = options.new_run_dir("calibrate", values["out"])
    spec = values["model"]
    with watching() as watch:
        model = resolve(spec, watch)
    moe = has_experts(spec, model, values["moe"])
    name = model.stem if Path(spec).expanduser().is_file() else spec
    click.echo(f"{name} on llama.cpp, {settings.describe()}, {count(settings.parallel, 'slot')}", err=True)
    with leaving_no_empty(out), session() as loop:
        server = EmbeddedServer()
        try:
            url = loop.run(server.start(model, settings, name, out / LOG))
            endpoint = options.endpoint({**values, "model": name}, url)
            measure_curve(loop.run, endpoint, plan, out, values, moe, settings.kv_unified)
        except BreakevenError as error:
            if (why := server.failure()) is not None:
                error.add_note(why)
            raise
        finally:
            loop.run(server.stop())
    return out


def measure_curve(
    run: Callable[[Coroutine[Any, Any, Calibration]], Calibration],
    endpoint: Endpoint,
    plan: CalibrationPlan,
    out: Path,
    values: Mapping[str, Any],
    moe: bool | None = None,
    kv_unified: bool | None = None,
) -> Calibration:
    """Measured with a bar on standard error; `run` is that of an event loop.

    Raises what `calibrate` raises; UsageError where what was measured is no curve.
    """
    with (
        _keeping(out / FILE),
        progress("calibrate, decode steps", plan.steps(*plan.visits()), stderr()) as ticker,
    ):
        timeouts = options.timeouts(values)
        watch = _Progress(ticker, plan)
        found = run(
            calibrate(endpoint, plan, out, moe=moe, kv_unified=kv_unified, timeouts=timeouts, watch=watch)
        )
    _refuse_too_few(found, out / FILE)
    return found


def calibration_plan(values: Mapping[str, Any]) -> CalibrationPlan:
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

    def replans(self, visits: Sequence[Visit]) -> None:
        self._ticker.set_total(self._plan.steps(*visits))
