"""`breakeven explain`: two measured speeds, and what of their difference a model of the step explains."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.cost_options import choose_cost, geometry_of, model_options, modelled_of
from breakeven.cli.explain_options import Profiled, Share, Speeds
from breakeven.cli.output import stdout
from breakeven.cli.record import check_page, refuse, written
from breakeven.errors import UsageError

if TYPE_CHECKING:
    from breakeven.cost.geometry import Geometry
    from breakeven.cost.hardware import Hardware
    from breakeven.cost.step import StepCost
    from breakeven.explain.case import Case
    from breakeven.explain.records import Observation
    from breakeven.trace.run import Run
    from breakeven.trial.result import TrialResult

METHODS = ("ngram", "ngram_gpu", "suffix", "draft_model", "eagle", "eagle3", "mtp", "medusa")
"""As vLLM calls them; others are taken too."""
MOST_CONTEXT = 1e9
MOST_CONCURRENCY = 10**6
N_GRAM_SETTINGS = ("prompt_lookup_min", "prompt_lookup_max")


@click.command()
@click.argument("record", nargs=-1, type=click.Path(path_type=Path), metavar="[BASELINE CANDIDATE | TRIAL]")
@click.option("--speeds", multiple=True, type=Speeds(), help="Measured, in tok/s; may be given again.")
@click.option("--k", type=int, help="Window: tokens of a draft at most.")
@click.option(
    "--method",
    metavar="NAME",
    help=f"Drafting method: {', '.join(METHODS[:-1])}, {METHODS[-1]} or another [default: ngram].",
)
@click.option("--speculative-config", metavar="JSON", help="As vLLM was given it; says --k and --method too.")
@click.option("--engine", metavar="NAME", help="Such as vllm [default: as the runs say].")
@click.option("--engine-version", metavar="X", help="Such as 0.16 [default: as the runs say].")
@click.option("--acceptance", type=Share(), help="Accepted / drafted tokens [default: as counted, else any].")
@click.option("--draft-share", type=Share(), help="Steps that draft / steps [default: as counted, else any].")
@model_options
@click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What `breakeven calibrate` measured of the baseline [default: verifying is modelled].",
)
@click.option(
    "--context", type=options.FiniteRange(0, MOST_CONTEXT), default=0, help="Tokens in the cache, mean."
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, MOST_CONCURRENCY),
    help="Requests in flight [default: 1, or the runs'].",
)
@click.option("--reuse", type=Share(), help="Of experts among neighbours [default: 0-0.3].")
@click.option("--profiled", multiple=True, type=Profiled(), help="Of the plain step, such as all_reduce=6.2.")
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="FILE", help="Write the report as one HTML file."
)
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

    check_page(values["html"], [*record, values["calibration"]])
    made = explained(_case(record, values))
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


@dataclass(frozen=True, slots=True)
class _Observed:
    """What the speeds or the runs say."""

    observations: tuple[Observation, ...]
    engine: str | None = None
    version: str | None = None
    concurrency: int | None = None
    baseline: Run | None = None
    confounders: tuple[str, ...] = ()
    refused: str | None = None


def _case(record: tuple[Path, ...], values: Mapping[str, Any]) -> Case:
    from breakeven.explain.case import REUSE, Case

    seen = _observed(record, values)
    k, method, settings = _drafting(values)
    _check_cost(values)
    measured, doubts = _measured(values, seen.baseline)
    geometry, hardware = _parts_of(values)
    return Case(
        model=values["model"] or (seen.baseline.meta.model if seen.baseline else None),
        geometry=geometry,
        hardware=hardware,
        k=k,
        method=method,
        observations=seen.observations,
        engine=values["engine"] or seen.engine,
        engine_version=values["engine_version"] or seen.version,
        tp=values["tp"] or 1,
        ep=values["ep"] or 1,
        context_tokens=values["context"],
        sequences=values["concurrency"] or seen.concurrency or 1,
        reuse=values["reuse"] or REUSE,
        settings=settings,
        profiled_s=dict(values["profiled"]),
        measured=measured,
        doubts=doubts,
        confounders=seen.confounders,
        refused=seen.refused,
    )


def _check_cost(values: Mapping[str, Any]) -> None:
    """Raises UsageError where the cost of a step is not told, and for what says nothing without the rest."""
    lacking = [f"--{name}" for name in ("model", "hardware") if values[name] is None]
    if values["calibration"] is None and lacking:
        raise UsageError(
            f"{' and '.join(lacking)} missing: type  --model X --hardware Y [--tp N]  such as  --model "
            "kimi-k2.5 --hardware rtx-pro-6000-ws --tp 8, or instead  --calibration FOLDER  with what "
            "breakeven calibrate measured of the baseline"
        )
    if values["hardware"] is not None and values["model"] is None:
        raise UsageError(
            "--hardware says nothing without the model on it: type --model X too, or leave it out"
        )
    if lacking:
        message = "{} shares out a model between devices: type --model X --hardware Y too, or leave it out"
        refuse(values, ("tp", "ep"), message)
        refuse(
            values,
            ("profiled",),
            "{} is of a step in parts: type --model X --hardware Y, and leave out --calibration",
        )


def _parts_of(values: Mapping[str, Any]) -> tuple[Geometry | None, Hardware | None]:
    """Those named, checked against each other where both are."""
    if values["hardware"] is not None:
        modelled = modelled_of(values)
        return modelled.geometry, modelled.hardware
    return (None if values["model"] is None else geometry_of(values["model"])), None


def _measured(values: Mapping[str, Any], baseline: Run | None) -> tuple[StepCost | None, tuple[str, ...]]:
    """The cost of a step where it was calibrated, and what qualifies it; the hardware is for the causes."""
    if values["calibration"] is None:
        return None, ()
    others = dict.fromkeys(("hardware", "tp", "ep", "step_ms", "routing"))
    chosen = choose_cost({**values, **others}, baseline)
    return chosen.cost, chosen.warnings


def _drafting(values: Mapping[str, Any]) -> tuple[int, str, Mapping[str, Any]]:
    """Window, method and settings. The options must not contradict the engine's own flag."""
    given = _config(values["speculative_config"])
    k, method = given.pop("num_speculative_tokens", None), given.pop("method", None)
    for option, mine, its in (("--k", values["k"], k), ("--method", values["method"], method)):
        if mine is not None and its is not None and mine != its:
            raise UsageError(f"{option} {mine} and --speculative-config say {mine} and {its}: leave one out")
    window = k if values["k"] is None else values["k"]
    if not _is_whole(window):
        raise UsageError("the window is missing: type  --k N, the tokens of a draft at most")
    return window, values["method"] or method or "ngram", given


def _config(text: str | None) -> dict[str, Any]:
    """Raises UsageError for what is no JSON object, or has another type in a place that is read."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UsageError(
            f"--speculative-config {str(text)[:60]!r} is no JSON object: type such as "
            '\'{"method": "ngram", "num_speculative_tokens": 5}\''
        )
    if not isinstance(value.get("method", ""), str):
        raise UsageError(
            '--speculative-config has a method that is no text: type such as {"method": "ngram"}'
        )
    for name in N_GRAM_SETTINGS:
        if value.get(name) is not None and not _is_whole(value[name]):
            raise UsageError(f"--speculative-config has a {name} that is no whole number: type such as 4")
    return value


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _observed(record: tuple[Path, ...], values: Mapping[str, Any]) -> _Observed:
    if bool(record) == bool(values["speeds"]):
        raise UsageError(
            "name two runs or a trial, or type --speeds NAME=BASELINE,CANDIDATE in tok/s: one of the two"
        )
    return _of_runs(record, values) if record else _of_speeds(values)


def _of_speeds(values: Mapping[str, Any]) -> _Observed:
    from breakeven.explain.observed import from_speeds

    names = [name for name, _, _ in values["speeds"]]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"--speeds {twice} is given twice: give each its own name, NAME=BASELINE,CANDIDATE")
    rate, share = values["acceptance"], values["draft_share"]
    return _Observed(
        tuple(
            from_speeds(name, baseline, candidate, rate, share)
            for name, baseline, candidate in values["speeds"]
        )
    )


def _of_runs(record: tuple[Path, ...], values: Mapping[str, Any]) -> _Observed:
    from breakeven.explain.observed import from_comparison
    from breakeven.trace.run import load_run

    result = _result(record)
    baseline, candidate = (load_run(side.run_dir) for side in (result.baseline, result.candidate))
    models = [run.meta.model for run in (baseline, candidate)]
    if models[0] != models[1]:
        raise UsageError(
            f"the runs are of different models, {models[0]} and {models[1]}: measure the same one twice"
        )
    observations = from_comparison(
        result.comparison,
        result.candidate.acceptance_by_prompt,
        result.candidate.acceptance,
        values["acceptance"],
        values["draft_share"],
        result.verdict.reason,
    )
    server, schedule, verdict = candidate.meta.server, candidate.meta.schedule, result.verdict
    return _Observed(
        observations,
        server.engine,
        server.version,
        schedule.concurrency,
        baseline,
        tuple(dict.fromkeys((*result.confounders, *result.comparison.warnings))),
        verdict.reason if verdict.outcome == "refused" else None,
    )


def _result(record: tuple[Path, ...]) -> TrialResult:
    from breakeven.compare.comparison import CONFIDENCE, FLOOR
    from breakeven.trial.store import compare_runs, is_trial, load_trial

    if len(record) == 2:
        return compare_runs(record[0], record[1], FLOOR, CONFIDENCE)
    if len(record) == 1 and (is_trial(record[0]) or not (record[0] / "run.json").is_file()):
        return load_trial(record[0])
    raise UsageError("name two runs, BASELINE and CANDIDATE, or one trial")
