"""`breakeven trial`: the A/B trial, on two embedded engines, two endpoints, or one live service."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from breakeven.cli import options
from breakeven.cli.live import live
from breakeven.cli.live_options import InOrder, live_options, refuse_live
from breakeven.cli.models import watching
from breakeven.cli.output import stderr, stdout
from breakeven.cli.record import refuse
from breakeven.client.loop import run
from breakeven.compare.sequential import MIN_REPEATS
from breakeven.engines.llamacpp import LlamaSettings, baseline_settings, candidate_settings
from breakeven.errors import EndpointError, UsageError
from breakeven.models.resolve import resolve
from breakeven.report.html import write_trial_html
from breakeven.report.jsonout import trial_json
from breakeven.report.progress import Ticker, progress
from breakeven.report.terminal import print_trial
from breakeven.servers.embedded import EmbeddedServer
from breakeven.trial.conductor import LiveSide, conduct
from breakeven.trial.plan import AUTO_CAP, SIDES, TrialPlan
from breakeven.trial.result import TrialResult
from breakeven.trial.store import FILE
from breakeven.workload.files import load_prompts

EMBEDDED_MODEL = "smollm2"
EMBEDDED_MAX_TOKENS = 96
EMBEDDED_TIME_LIMIT_S = 240.0
MAX_TOKENS = 256
OF_TWO_SIDES = ("baseline", "candidate", "baseline_url", "candidate_url")


class Repeats(click.ParamType):  # type: ignore[type-arg]
    """A number of repeats, or `auto` (0)."""

    name = "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if value == "auto":
            return 0
        if not isinstance(value, int) and not (value.isascii() and value.isdecimal() and int(value)):
            advice = "type --repeats auto, or --repeats 5"
            self.fail(f"{value!r} is neither auto nor a number above 0: {advice}", param, ctx)
        return int(value)


@click.command(cls=InOrder)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND]")
@live_options
@click.option(
    "--model",
    help="Weights for the embedded engines: a name of `breakeven models list`, hf:org/repo/file.gguf, or a "
    f"path [default: {EMBEDDED_MODEL}]. With URLs or --server: the model's name there.",
)
@click.option("--baseline", metavar="FLAGS", help="llama-server flags of the baseline.")
@click.option("--candidate", metavar="FLAGS", help="llama-server flags of the candidate.")
@click.option("--baseline-url", metavar="URL", help="A running endpoint, without speculation.")
@click.option("--candidate-url", metavar="URL", help="A running endpoint, with it.")
@click.option("--prompts", default="default", show_default=True, help="A built-in set, a file, or -.")
@click.option(
    "--repeats",
    type=Repeats(),
    default="auto",
    show_default=True,
    help="Of every prompt on each side; auto stops once the verdict is decided.",
)
@click.option(
    "--cap", type=click.IntRange(min=2), default=AUTO_CAP, show_default=True, help="Most repeats of auto."
)
@click.option(
    "--time-limit",
    type=options.FiniteRange(min=0, min_open=True),
    metavar="SECONDS",
    help=f"Begin no repeat that would end later [default: {EMBEDDED_TIME_LIMIT_S:g} on embedded engines].",
)
@click.option("--concurrency", type=click.IntRange(min=1), default=1, show_default=True)
@options.decision_options
@options.sampling_options
@options.endpoint_options
@options.fail_if_option
@click.option("--out", type=click.Path(path_type=Path), help="Run folder [default: runs/trial-DATE-TIME].")
@options.json_option
def trial(**values: Any) -> int:
    """Does speculation pay? Ask two sides in turn, and say how sure the answer is.

    Without options: n-gram speculation against none, on a small model that is fetched and run here.

    \b
    breakeven trial
    breakeven trial --model smollm2-moe --candidate "--spec-type ngram-simple --spec-ngram-simple-size-n 4"
    breakeven trial --baseline-url http://a:8000 --candidate-url http://b:8000 --prompts mine.jsonl
    breakeven trial --server systemd:vllm.service --method ngram --k 5 --min-n 2 --max-n 4 --dry-run
    breakeven trial --plan gate.toml --yes --fail-if slower
    """
    if values["server"] is not None:
        refuse(values, OF_TWO_SIDES, "{} is of two sides, and --server is both: leave out one of the two")
        return live(values, _plan(values, MAX_TOKENS, None))
    refuse_live(values)
    has_urls = _has_urls(values)
    out = options.new_run_dir("trial", values["out"])
    report = out / "report.html"
    with options.keeping(out / FILE, f"breakeven show {out}"):
        result = run(_running(values, out)) if has_urls else _embedded(values, out)
        write_trial_html(result, report)
    if values["as_json"]:
        options.print_json(trial_json(result))
    else:
        print_trial(result, stdout(), str(report))
    silent = _silent_sides(result)
    if silent:
        click.echo(f"breakeven: every request of the {' and the '.join(silent)} failed: see {out}", err=True)
        return EndpointError.exit_code
    return options.gate(result.verdict.outcome, values["fail_if"])


def _silent_sides(result: TrialResult) -> list[str]:
    sides = zip(SIDES, (result.comparison.baseline, result.comparison.candidate), strict=True)
    return [name for name, side in sides if side.requests and side.errors == side.requests]


def _has_urls(values: dict[str, Any]) -> bool:
    urls = values["baseline_url"], values["candidate_url"]
    if any(urls) and not all(urls):
        raise UsageError("one URL is no trial: type both --baseline-url and --candidate-url")
    if any(urls) and (values["baseline"] or values["candidate"]):
        raise UsageError("--baseline and --candidate start embedded engines: leave them out beside URLs")
    return all(urls)


def _plan(values: dict[str, Any], max_tokens: int, time_limit_s: float | None) -> TrialPlan:
    given = click.get_current_context().get_parameter_source("cap")
    if values["repeats"] and given in (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP):
        raise UsageError("--cap limits --repeats auto: leave out --cap, or type --repeats auto")
    return TrialPlan(
        workload=load_prompts(values["prompts"], values["api"]),
        sampling=options.sampling(values, max_tokens),
        repeats=values["repeats"] or None,
        cap=values["cap"],
        concurrency=values["concurrency"],
        floor=values["floor"],
        confidence=values["confidence"],
        time_limit_s=values["time_limit"] or time_limit_s,
    )


async def _running(values: dict[str, Any], out: Path) -> TrialResult:
    """Two endpoints that someone else runs."""
    plan = _plan(values, MAX_TOKENS, None)
    sides = {}
    for name in SIDES:
        endpoint = options.endpoint(values, values[f"{name}_url"])
        sides[name] = LiveSide(endpoint.base_url, endpoint)
    return await _conduct(values, plan, sides, out)


def _embedded(values: dict[str, Any], out: Path) -> TrialResult:
    """Two engines that are started here, and stopped whatever happens."""
    time_limit_s = None if values["repeats"] else EMBEDDED_TIME_LIMIT_S
    plan = _plan(values, EMBEDDED_MAX_TOKENS, time_limit_s)
    baseline = LlamaSettings.parse(values["baseline"]) if values["baseline"] else baseline_settings()
    candidate = (
        LlamaSettings.parse(values["candidate"]) if values["candidate"] else candidate_settings(baseline)
    )
    spec = values["model"] or EMBEDDED_MODEL
    with watching() as watch:
        model = resolve(spec, watch)
    name = model.stem if Path(spec).expanduser().is_file() else spec
    settings = dict(zip(SIDES, (baseline, candidate), strict=True))
    return run(_start_and_conduct(values, plan, model, name, settings, out))


async def _start_and_conduct(
    values: dict[str, Any],
    plan: TrialPlan,
    model: Path,
    name: str,
    settings: dict[str, LlamaSettings],
    out: Path,
) -> TrialResult:
    async with AsyncExitStack() as stack:
        sides = {}
        for side, chosen in settings.items():
            server = await stack.enter_async_context(EmbeddedServer())
            url = await server.start(model, chosen, name, out / f"{side}.log")
            endpoint = options.endpoint({**values, "model": name}, url)
            sides[side] = LiveSide(
                chosen.describe(), endpoint, server.reload_s, chosen.warnings(), server.failure
            )
        return await _conduct(values, plan, sides, out)


async def _conduct(
    values: dict[str, Any], plan: TrialPlan, sides: dict[str, LiveSide], out: Path
) -> TrialResult:
    per_repeat = len(plan.workload.prompts) * len(SIDES)
    title = "trial" if plan.repeats else f"trial, {MIN_REPEATS} to {plan.cap} repeats"
    total = per_repeat * (plan.repeats or MIN_REPEATS)
    with progress(title, total, stderr()) as ticker:
        watch = _Watch(ticker, per_repeat, total)
        return await conduct(plan, sides, out, watch.see, options.timeouts(values))


class _Watch:
    """Shows what was asked. The total grows by a repeat each time that the trial goes on."""

    def __init__(self, ticker: Ticker, per_repeat: int, total: int) -> None:
        self.ticker = ticker
        self.per_repeat = per_repeat
        self.total = total
        self.done = 0

    def see(self, note: str) -> None:
        self.done += 1
        if self.done > self.total:
            self.total += self.per_repeat
            self.ticker.set_total(self.total)
        self.ticker.advance(note=note)
