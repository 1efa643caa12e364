"""What `breakeven diagnose` was pointed at, read: runs, a trial or an experiment, logs, a running server."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from breakeven.cli.case_options import NO_WINDOW, Seen, case_of, check_cost, seen_of_runs, told_of
from breakeven.cli.cost_options import choose_cost, modelled_of
from breakeven.cli.diagnose_logs import logs_of
from breakeven.cli.diagnose_sides import agree, check_sides, other_model
from breakeven.cli.experiment import FILE as EXPERIMENT
from breakeven.cli.experiment import Experiment, is_experiment, read_experiment
from breakeven.cli.log_options import log_of
from breakeven.cli.places import places_of
from breakeven.errors import UsageError

if TYPE_CHECKING:
    from breakeven.cost.step import StepCost
    from breakeven.diagnose.evidence import Replayed
    from breakeven.diagnose.readings import Readings
    from breakeven.diagnose.told import Told
    from breakeven.explain.case import Case

OF_COST = ("calibration", "model", "hardware", "tp", "ep")
NGRAM = "ngram"
NO_LENGTHS = (
    "nothing says which n-grams are looked up: replayed with the drafter's defaults; type --min-n and --max-n"
)
NOTHING = (
    "what is to be diagnosed? Type  --url http://HOST:PORT,  --logs FILE,  --unit NAME,  or the folder of a "
    "run, of two, or of a trial"
)


def readings_of(record: tuple[Path, ...], values: Mapping[str, Any]) -> Readings:
    """Raises UsageError for what says nothing or contradicts itself, and what the sources raise."""
    from breakeven.diagnose.readings import Readings

    experiment = _experiment(record)
    if experiment is not None:
        values = _with_experiment(values, experiment)
    place = log_of(values)
    if not record and place is None and values["url"] is None and values["baseline_logs"] is None:
        raise UsageError(NOTHING)
    if values["seconds"] is not None and values["url"] is None:
        raise UsageError("--seconds is the time between two readings of a server: type --url URL too")
    seen = _seen(record, values, experiment)
    logs = logs_of(record, place, values)
    look = None
    if values["url"] is not None:
        from breakeven.cli.live_page import look_at

        look = look_at(values)
    read = Readings(
        engine=values["engine"],
        version=values["engine_version"],
        baseline=seen.baseline,
        candidate=seen.candidate,
        look=look,
        log=logs.candidate,
        baseline_log=logs.baseline,
        counters=seen.acceptance,
        observations=() if seen.refused else seen.observations,
        sequences=values["concurrency"],
        context_tokens=values["context"],
        acceptance_rate=values["acceptance"],
        draft_share=values["draft_share"],
        replies=experiment.replies if experiment is not None else None,
        refused=seen.refused,
        verdict=seen.verdict,
        places={**places_of(values), **logs.places},
        is_cut=bool(logs.notes),
        notes=logs.notes,
    )
    typed, recorded = told_of(values), _recorded(seen, read)
    agree(read, typed.k, recorded.k)
    told = typed.or_else(recorded)
    case = _case(seen, told, values)
    read = replace(
        read,
        told=told,
        case=case,
        cost=_cost(case, seen, values),
        notes=(
            *read.notes,
            *(() if case is not None else seen.confounders),
            *other_model(read, values),
        ),
    )
    replayed, notes = _replayed(read, seen.engine)
    return replace(read, replayed=replayed, notes=(*read.notes, *notes))


def _experiment(record: tuple[Path, ...]) -> Experiment | None:
    return read_experiment(record[0]) if len(record) == 1 and is_experiment(record[0]) else None


def _with_experiment(values: Mapping[str, Any], experiment: Experiment) -> dict[str, Any]:
    """What is typed counts more."""
    said = {**experiment.options, "logs": experiment.logs, "baseline_logs": experiment.baseline_logs}
    places = ("unit", "container", "pod")
    if any(values[name] is not None for name in places):
        said["logs"] = None
    return {
        **values,
        **{
            name: value for name, value in said.items() if values[name] in (None, (), 0) and value is not None
        },
    }


def _seen(record: tuple[Path, ...], values: Mapping[str, Any], experiment: Experiment | None) -> Seen:
    from breakeven.trace.run import load_run
    from breakeven.trial.store import is_trial

    if experiment is not None:
        return Seen(experiment.observations, experiment.options.get("engine"))
    if not record:
        return Seen(())
    if len(record) == 1 and not is_trial(record[0]):
        return _of_run(load_run(_run_folder(record[0])))
    if len(record) > 2:
        raise UsageError("name one run, or two, BASELINE and CANDIDATE, or one trial")
    if len(record) == 2:
        check_sides(*map(load_run, record))
    return seen_of_runs(record, values, need_speeds=False)


def _of_run(run: Any) -> Seen:
    server, schedule = run.meta.server, run.meta.schedule
    return Seen((), server.engine, server.version, schedule.concurrency, None, run, run.meta.warnings)


def _run_folder(path: Path) -> Path:
    if path.is_dir() and not (path / "run.json").is_file() and not any(path.glob("*/run.json")):
        raise UsageError(
            f"{path} is no run, no trial, and holds no {EXPERIMENT}: name a folder of  breakeven measure  "
            "or  breakeven trial"
        )
    return path


def _recorded(seen: Seen, read: Readings) -> Told:
    """What a trial kept counts more than the log, and that more than the counts."""
    from breakeven.diagnose.inferred import inferred
    from breakeven.diagnose.told import told_by_log, told_by_trial

    found = told_by_trial(seen.description).or_else(told_by_trial(_kept(read)))
    logged = found if read.log is None else found.or_else(told_by_log(read.log.facts))
    return logged.or_else(inferred(read))


def _kept(read: Readings) -> str:
    """What a trial keeps of the candidate, where that is named by the folder of its run alone."""
    from breakeven.trial.store import is_trial, load_record

    if read.candidate is None:
        return ""
    folder = read.candidate.path.resolve()
    side = load_record(folder.parent).sides.get(folder.name) if is_trial(folder.parent) else None
    return side.description if side is not None else ""


def _case(seen: Seen, told: Told, values: Mapping[str, Any]) -> Case | None:
    """None where there are no two speeds, or nothing says what verifying costs."""
    if not seen.observations or not _says_cost(values):
        return None
    check_cost(values)
    if told.k is None:
        raise UsageError(NO_WINDOW)
    return case_of(seen, told, values)


def _says_cost(values: Mapping[str, Any]) -> bool:
    return any(values[name] is not None for name in OF_COST) or bool(values["profiled"])


def _cost(case: Case | None, seen: Seen, values: Mapping[str, Any]) -> StepCost | None:
    from breakeven.cost.anchored import Anchored

    if case is not None:
        if case.measured is not None:
            return case.measured
        plain_s = geometric_mean(one.baseline_tpot_s for one in case.observations)
        return Anchored(case.modelled, plain_s, case.plain_step)
    if not _says_cost(values):
        return None
    check_cost(values)
    if values["calibration"] is not None:
        others = dict.fromkeys(("hardware", "tp", "ep", "step_ms", "routing", "reuse"))
        return choose_cost({**values, **others}, seen.baseline or seen.candidate).cost
    return modelled_of(values)


def _replayed(read: Readings, engine: str | None) -> tuple[Replayed | None, tuple[str, ...]]:
    """Of the baseline's tokens, else of the one run's; and why there is none, where one is expected."""
    from breakeven.cli.record import say_how_fast
    from breakeven.diagnose.batch import context_tokens_of, sequences_of
    from breakeven.diagnose.replaying import replayed

    run, told = read.baseline or read.candidate, read.told
    if run is None or told.k is None or told.method is None:
        return None, ()
    assumed = (NO_LENGTHS,) if told.method.startswith(NGRAM) and told.min_n is told.max_n is None else ()
    sequences, context_tokens = sequences_of(read), context_tokens_of(read)
    with redirect_stdout(sys.stderr):
        try:
            say_how_fast(["vllm-ngram"])
            made = replayed(run, told.drafting(engine), read.cost, sequences, context_tokens)
            return made, assumed if made is not None else ()
        except UsageError as error:
            return None, (f"the drafter was not replayed: {error}",)
