"""What `explain` and `diagnose` ask alike: what drafts, on what, what verifying costs; and the case of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.cost_options import choose_cost, geometry_of, model_options, modelled_of
from breakeven.cli.explain_options import Profiled, Share
from breakeven.cli.record import refuse
from breakeven.engines.speculation import MOST_K
from breakeven.errors import UsageError

if TYPE_CHECKING:
    from breakeven.acceptance.counters import SpecCounters
    from breakeven.cost.geometry import Geometry
    from breakeven.cost.hardware import Hardware
    from breakeven.cost.step import StepCost
    from breakeven.diagnose.told import Told
    from breakeven.explain.case import Case
    from breakeven.explain.records import Observation
    from breakeven.trace.run import Run
    from breakeven.trial.result import TrialResult

METHODS = ("ngram", "ngram_gpu", "suffix", "draft_model", "eagle", "eagle3", "mtp", "medusa")
"""As vLLM calls them; others are taken too."""
MOST_CONTEXT = 1e9
MOST_CONCURRENCY = 10**6
"""Tokens of a draft, and of an n-gram that is looked up."""
N_GRAM_SETTINGS = ("prompt_lookup_min", "prompt_lookup_max")
NO_WINDOW = "the window is missing: type  --k N, the tokens of a draft at most"

window_options = options.stack(
    click.option("--k", type=click.IntRange(1, MOST_K), help="Window: tokens of a draft at most."),
    click.option(
        "--method",
        metavar="NAME",
        help=f"Drafting method: {', '.join(METHODS[:-1])}, {METHODS[-1]} or another [default: ngram].",
    ),
    click.option(
        "--speculative-config", metavar="JSON", help="As vLLM was given it; says --k and --method too."
    ),
    click.option("--engine", metavar="NAME", help="Such as vllm [default: as the runs say]."),
    click.option(
        "--engine-version",
        type=options.EngineVersion(),
        metavar="X",
        help="Such as 0.16 [default: as the runs say].",
    ),
)

case_options = options.stack(
    click.option(
        "--acceptance", type=Share(), help="Accepted / drafted tokens [default: as counted, else any]."
    ),
    click.option(
        "--draft-share", type=Share(), help="Steps that draft / steps [default: as counted, else any]."
    ),
    model_options,
    click.option(
        "--calibration",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="What `breakeven calibrate` measured of the baseline [default: verifying is modelled].",
    ),
    click.option(
        "--context", type=options.FiniteRange(0, MOST_CONTEXT), default=0, help="Tokens in the cache, mean."
    ),
    click.option(
        "--concurrency",
        type=click.IntRange(1, MOST_CONCURRENCY),
        help="Requests in flight [default: 1, or the runs'].",
    ),
    click.option("--reuse", type=Share(), help="Of experts among neighbours [default: 0-0.3]."),
    click.option(
        "--profiled", multiple=True, type=Profiled(), help="Of the plain step, such as all_reduce=6.2."
    ),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the speeds or the runs say."""

    observations: tuple[Observation, ...]
    engine: str | None = None
    version: str | None = None
    concurrency: int | None = None
    baseline: Run | None = None
    candidate: Run | None = None
    confounders: tuple[str, ...] = ()
    refused: str | None = None
    acceptance: SpecCounters | None = None
    """Of the candidate's requests that are compared."""
    description: str = ""
    """What the candidate runs, as a trial keeps it."""
    verdict: str = ""
    """What a trial concluded, a sentence; empty where it was refused, or none was run."""


def case_of(seen: Seen, told: Told, values: Mapping[str, Any]) -> Case:
    """Raises UsageError for a window or a cost that is missing, and for what cannot be."""
    from breakeven.explain.case import REUSE, Case

    if told.k is None:
        raise UsageError(NO_WINDOW)
    check_cost(values)
    measured, doubts = _measured(values, seen.baseline)
    geometry, hardware = _parts_of(values)
    return Case(
        model=values["model"] or (seen.baseline.meta.model if seen.baseline else None),
        geometry=geometry,
        hardware=hardware,
        k=told.k,
        method=told.method or "ngram",
        observations=seen.observations,
        engine=values["engine"] or seen.engine,
        engine_version=values["engine_version"] or seen.version,
        tp=values["tp"] or 1,
        ep=values["ep"] or 1,
        context_tokens=values["context"],
        sequences=values["concurrency"] or seen.concurrency or 1,
        reuse=values["reuse"] or REUSE,
        settings=told.settings,
        profiled_s=dict(values["profiled"]),
        measured=measured,
        doubts=doubts,
        confounders=seen.confounders,
        refused=seen.refused,
    )


def check_cost(values: Mapping[str, Any]) -> None:
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


def told_of(values: Mapping[str, Any]) -> Told:
    """How the server drafts, as typed. The options must not contradict the engine's own flag."""
    from breakeven.diagnose.told import Told, told_by_config

    given = config_of(values["speculative_config"])
    k, method = given.get("num_speculative_tokens"), given.get("method")
    for option, mine, its in (("--k", values["k"], k), ("--method", values["method"], method)):
        if mine is not None and its is not None and mine != its:
            raise UsageError(f"{option} {mine} and --speculative-config say {mine} and {its}: leave one out")
    window = k if values["k"] is None else values["k"]
    if window is not None and not _is_length(window):
        raise UsageError(
            f"--speculative-config has a num_speculative_tokens that is no whole number of 1 to {MOST_K}: "
            "type such as 5"
        )
    config = told_by_config({**given, "method": values["method"] or method} if given else {})
    low, high, left_out = values.get("min_n"), values.get("max_n"), False
    for option, length in (("--min-n", low), ("--max-n", high)):
        if length is not None and not _is_length(length):
            raise UsageError(f"{option} {length} is too long: type 1 to {MOST_K}")
    if low is None and high is None:
        low, high, left_out = config.min_n, config.max_n, config.min_left_out
    elif low is not None and high is not None and low > high:
        raise UsageError(f"--min-n {low} is above --max-n {high}: swap them")
    return Told(values["method"] or method, window, low, high, config.settings, left_out)


def config_of(text: str | None) -> dict[str, Any]:
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
        if value.get(name) is not None and not _is_length(value[name]):
            raise UsageError(
                f"--speculative-config has a {name} that is no whole number of 1 to {MOST_K}: type such as 4"
            )
    return value


def _is_length(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_K


def seen_of_runs(record: tuple[Path, ...], values: Mapping[str, Any], need_speeds: bool = True) -> Seen:
    """What two runs, or a trial, say. Raises UsageError for runs that cannot be compared, and, if speeds are
    needed, where no prompt has one on both sides."""
    from breakeven.explain.observed import from_comparison
    from breakeven.trace.run import load_run

    result = _result(record)
    baseline, candidate = (load_run(side.run_dir) for side in (result.baseline, result.candidate))
    models = [run.meta.model for run in (baseline, candidate)]
    if models[0] != models[1]:
        raise UsageError(
            f"the runs are of different models, {models[0]} and {models[1]}: measure the same one twice"
        )
    observations: tuple[Observation, ...] = ()
    if need_speeds or result.comparison.prompts:
        observations = from_comparison(
            result.comparison,
            result.candidate.acceptance_by_prompt,
            result.candidate.acceptance,
            values["acceptance"],
            values["draft_share"],
            result.verdict.reason,
        )
    server, schedule, verdict = candidate.meta.server, candidate.meta.schedule, result.verdict
    return Seen(
        observations,
        server.engine,
        server.version,
        schedule.concurrency,
        baseline,
        candidate,
        tuple(dict.fromkeys((*result.confounders, *result.comparison.warnings))),
        verdict.reason if verdict.outcome == "refused" else None,
        result.candidate.acceptance,
        result.candidate.description,
        verdict.reason if len(record) == 1 and verdict.outcome != "refused" else "",
    )


def _result(record: tuple[Path, ...]) -> TrialResult:
    from breakeven.compare.comparison import CONFIDENCE, FLOOR
    from breakeven.trial.store import compare_runs, is_trial, load_trial

    if len(record) == 2:
        return compare_runs(record[0], record[1], FLOOR, CONFIDENCE)
    if len(record) == 1 and (is_trial(record[0]) or not (record[0] / "run.json").is_file()):
        return load_trial(record[0])
    raise UsageError("name two runs, BASELINE and CANDIDATE, or one trial")
