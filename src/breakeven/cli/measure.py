"""`breakeven measure`: how fast an endpoint is now, on your prompts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.output import stderr, stdout
from breakeven.client.load import ClosedLoop, OpenLoop
from breakeven.client.loop import run
from breakeven.client.openai import AskFor
from breakeven.errors import EndpointError, UsageError
from breakeven.latency import summarize
from breakeven.measure import MeasurePlan, measure_endpoint, plan_of, resume_run
from breakeven.report.jsonout import measure_json
from breakeven.report.progress import progress
from breakeven.report.terminal import print_run
from breakeven.trace.run import Run, load_run
from breakeven.workload.files import load_prompts

MAX_TOKENS = 256


@click.command()
@click.option("--url", help="The endpoint, such as http://127.0.0.1:8000.")
@click.option("--model", help="Model name; needed only if the server has several.")
@click.option("--prompts", default="default", show_default=True, help="A built-in set, or a file.")
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="Of every prompt.")
@click.option("--concurrency", type=click.IntRange(min=1), help="Requests in flight [default: 1].")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
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
@click.option("--token-ids", is_flag=True, help="Ask for token ids (vLLM), which `replay` needs.")
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
    summary = summarize(measured.traces(), measured.meta.elapsed_s)
    if values["as_json"]:
        meta = measured.meta
        options.print_json(measure_json(measured.path, summary, meta.self_check, meta.counters))
    else:
        print_run(measured, summary, stdout())
    if summary.errors == summary.requests:
        raise EndpointError(f"every request failed; their messages are in {measured.path}")
    return 0


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
    with progress("measure", len(plan.workload.prompts) * plan.repeats, stderr()) as ticker:
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
    begun = load_run(values["resume"])
    plan = plan_of(begun)
    with progress("resume", len(plan.workload.prompts) * plan.repeats, stderr()) as ticker:
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


def _schedule(values: dict[str, Any]) -> ClosedLoop | OpenLoop:
    if values["rate"] is None:
        return ClosedLoop(values["concurrency"] or 1)
    if values["concurrency"] is not None:
        raise UsageError("type either --rate or --concurrency, not both")
    return OpenLoop(values["rate"], poisson=not values["constant_rate"], seed=values["seed"] or 0)
