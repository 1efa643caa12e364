"""`breakeven measure`: how fast an endpoint is now, on your prompts."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from breakeven.cli import options
from breakeven.cli.output import stderr, stdout
from breakeven.client.load import ClosedLoop, OpenLoop
from breakeven.client.loop import run
from breakeven.client.openai import AskFor
from breakeven.errors import EndpointError, UsageError
from breakeven.measure import MeasurePlan, measure_endpoint, plan_of, resume_run
from breakeven.report.jsonout import measure_json
from breakeven.report.progress import progress
from breakeven.report.terminal import print_run
from breakeven.trace.disk import META
from breakeven.trace.run import Run, load_run
from breakeven.workload.files import load_prompts

MAX_TOKENS = 256
SET_BY_THE_RUN = (
    "model",
    "prompts",
    "repeats",
    "concurrency",
    "rate",
    "constant_rate",
    "warmup",
    "max_tokens",
    "temperature",
    "top_p",
    "seed",
    "extra",
    "api",
    "out",
)
"""Options that --resume takes from the run folder."""


@click.command()
@click.option("--url", help="The endpoint, such as http://127.0.0.1:8000.")
@click.option("--model", help="Model name; needed only if the server has several.")
@click.option("--prompts", default="default", show_default=True, help="A built-in set, a file, or -.")
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="Of every prompt.")
@click.option("--concurrency", type=click.IntRange(min=1), help="Requests in flight [default: 1].")
@click.option(
    "--rate",
    type=options.FiniteRange(min=0, min_open=True),
    help="Requests per second, sent whether or not earlier ones have ended.",
)
@click.option("--constant-rate", is_flag=True, help="Equal gaps with --rate; otherwise they are Poisson.")
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Requests asked first and not kept.",
)
@click.option("--token-ids", is_flag=True, help="Ask for token ids (vLLM) and keep them.")
@options.sampling_options
@options.endpoint_options
@click.option("--out", type=click.Path(path_type=Path), help="Run folder [default: runs/measure-DATE-TIME].")
@click.option(
    "--resume", type=click.Path(path_type=Path), metavar="RUN", help="Go on with an interrupted run folder."
)
@options.json_option
def measure(**values: Any) -> int:
    """How fast is it now, on my prompts? TTFT, TPOT and acceptance of a running endpoint.

    \b
    breakeven measure --url http://127.0.0.1:8000
    breakeven measure --url http://127.0.0.1:8000 --prompts mine.jsonl --repeats 5 --max-tokens 1024
    breakeven measure --url http://127.0.0.1:8000 --concurrency 8 --json
    """
    measured = _resume(values) if values["resume"] else _measure(values)
    summary = options.summary_of(measured)
    if values["as_json"]:
        meta = measured.meta
        options.print_json(measure_json(measured.path, summary, meta.self_check, meta.counters))
    else:
        print_run(measured, summary, stdout())
    if summary.errors == summary.requests:
        click.echo(f"breakeven: {_all_failed(measured)}", err=True)
        return EndpointError.exit_code
    return 0


def _all_failed(measured: Run) -> str:
    last = [trace.error.message for trace in measured.traces() if trace.error][-1]
    return f"every request failed, the last with: {last}; then type  {_again(measured.path)}"


def _again(folder: Path) -> str:
    return f"breakeven measure --resume {folder}"


def _measure(values: dict[str, Any]) -> Run:
    if values["url"] is None:
        raise UsageError("no endpoint: type --url http://HOST:PORT, or --resume RUN")
    plan = MeasurePlan(
        load_prompts(values["prompts"], values["api"]),
        options.sampling(values, MAX_TOKENS),
        _schedule(values),
        values["repeats"],
        values["warmup"],
    )
    out = options.new_run_dir("measure", values["out"])
    endpoint = options.endpoint(values, values["url"])
    with _keeping(out), progress("measure", plan.requests, stderr()) as ticker:
        return run(
            measure_endpoint(
                endpoint,
                plan,
                out,
                timeouts=options.timeouts(values),
                ask_for=AskFor(token_ids=values["token_ids"]),
                on_trace=lambda trace: ticker.advance(note=trace.id),
            )
        )


def _resume(values: dict[str, Any]) -> Run:
    _refuse_what_the_run_has_set()
    begun = load_run(values["resume"])
    if begun.meta.kind != "measure":
        raise UsageError(f"{values['resume']} is one side of a trial: run the trial again")
    answered = sum(trace.error is None for trace in begun.traces())
    left = plan_of(begun).requests - answered
    with _keeping(values["resume"]), progress("resume", left, stderr()) as ticker:
        return run(
            resume_run(
                values["resume"],
                lambda meta: replace(
                    options.endpoint(values, values["url"] or meta.url), api=meta.api, model=meta.model
                ),
                timeouts=options.timeouts(values),
                ask_for=AskFor(token_ids=values["token_ids"]),
                on_trace=lambda trace: ticker.advance(note=trace.id),
            )
        )


def _keeping(folder: Path) -> AbstractContextManager[None]:
    return options.keeping(folder / META, _again(folder))


def _refuse_what_the_run_has_set() -> None:
    context = click.get_current_context()
    for name in SET_BY_THE_RUN:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = name.replace("_", "-")
            raise UsageError(f"--resume goes on as the run began: leave out --{option}")


def _schedule(values: dict[str, Any]) -> ClosedLoop | OpenLoop:
    if values["rate"] is None:
        if values["constant_rate"]:
            raise UsageError("--constant-rate says how --rate is kept: type both, or neither")
        return ClosedLoop(values["concurrency"] or 1)
    if values["concurrency"] is not None:
        raise UsageError("type either --rate or --concurrency, not both")
    return OpenLoop(values["rate"], poisson=not values["constant_rate"], seed=values["seed"] or 0)
