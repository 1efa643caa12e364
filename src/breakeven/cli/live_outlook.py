"""What is expected of each candidate, from the baseline that was just measured, before any restart."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakeven.cli.cost_options import ChosenCost, choose_cost
from breakeven.cli.record import open_record, say_how_fast, shown
from breakeven.engines.speculation import LEARNED_METHODS, SpeculationConfig
from breakeven.errors import UsageError
from breakeven.units import share

if TYPE_CHECKING:
    from breakeven.acceptance.counters import SpecCounters
    from breakeven.forecast.records import ForecastRow
    from breakeven.forecast.terms import Terms
    from breakeven.replay.grid import Setting
    from breakeven.replay.sources import Source
    from breakeven.trace.run import Run
    from breakeven.trial.live import LivePlan, Service
    from breakeven.trial.outlook import Outlook

OF_COST = ("calibration", "geometry", "hardware", "tp", "ep")
NO_COST = (
    "what a step costs here is not known, so that no speedup is forecast: type  --calibrate, or "
    "--geometry X --hardware Y, where one is wanted"
)
Expected = tuple[list["Outlook"], str, tuple[str, ...]]
"""The outlooks, as the candidates were given; where the cost of a step is from; what must be said beside."""


def cost_values(values: Mapping[str, Any], calibration: Path | None = None) -> dict[str, Any] | None:
    """As choose_cost takes them; None where no option says anything of the cost."""
    asked = {name: values[name] for name in OF_COST}
    asked["calibration"] = calibration or asked["calibration"]
    if not any(asked.values()):
        return None
    if asked["geometry"] is None and asked["hardware"] is not None:
        raise UsageError(f"--hardware {asked['hardware']} says not of which model: type --geometry X too")
    return {**asked, "model": asked["geometry"], "step_ms": None, "reuse": None, "routing": None}


def outlooks(
    service: Service, plan: LivePlan, baseline: Run, values: Mapping[str, Any], calibration: Path | None
) -> Expected:
    """Raises UsageError for options of the cost that do not fit the service."""
    from breakeven.forecast.anchor import speculated
    from breakeven.trial.outlook import Outlook

    if service.speculation is not None or speculated(baseline):
        words = "no forecast: the service speculates already, and a forecast is against none"
        return [Outlook(one, None, words) for one in plan.candidates], "", ()
    given = cost_values(values, calibration)
    cost = None if given is None else _cost(given, baseline)
    settings = [_setting(service, one) for one in plan.candidates]
    wanted = [one for one in settings if one is not None]
    replayed: Replayed = {}
    doubts: tuple[str, ...] = ()
    if wanted:
        replayed, doubts = _replayed(plan, baseline, cost, wanted, service.dialect.name)
    found = [
        _looked_up(one, replayed, setting)
        if setting is not None
        else Outlook(one, None, _learned(one, plan, cost, service.dialect.name))
        for one, setting in zip(plan.candidates, settings, strict=True)
    ]
    return found, NO_COST if cost is None else cost.words, (*(cost.warnings if cost else ()), *doubts)


def _cost(given: Mapping[str, Any], baseline: Run) -> ChosenCost:
    try:
        return choose_cost(given, baseline)
    except UsageError as error:
        error.add_note(f"nothing was restarted; the baseline is kept in {baseline.path}")
        raise


def _setting(service: Service, candidate: SpeculationConfig) -> Setting | None:
    from breakeven.replay.drafter_of import drafter_of

    return drafter_of(service.dialect.name, candidate)


def _key(setting: Setting) -> tuple[str, str]:
    """By which the settings as used are known again."""
    from breakeven.drafters.registry import make_drafter
    from breakeven.replay.run import as_used

    name, settings = setting
    return name, repr(as_used(make_drafter(name, settings)))


Replayed = dict[tuple[str, str], "tuple[ForecastRow | None, SpecCounters] | str"]
"""What came out of a setting, or why nothing did."""


def _replayed(
    plan: LivePlan, baseline: Run, cost: ChosenCost | None, settings: Sequence[Setting], engine: str
) -> tuple[Replayed, tuple[str, ...]]:
    """Each setting on the baseline's replies; with a cost, its speedup too."""
    with redirect_stdout(sys.stderr):
        try:
            source = open_record(baseline.path, None)
            say_how_fast([name for name, _ in settings], simulates=cost is not None)
            if cost is None:
                return _counted(source, settings), ()
            return _forecast(plan, baseline, source, cost, settings, engine)
        except UsageError as error:
            return {_key(one): f"no forecast: {error}" for one in settings}, ()


def _counted(source: Source, settings: Sequence[Setting]) -> Replayed:
    from breakeven.replay.run import replay_source

    found: Replayed = {}
    for name, chosen in settings:
        with shown(f"{name}, requests replayed", source.expected) as advance:
            done = replay_source(source, name, chosen, progress=advance)
        found[_key((name, chosen))] = None, done.total.counters
    return found


def _forecast(
    plan: LivePlan,
    baseline: Run,
    source: Source,
    cost: ChosenCost,
    settings: Sequence[Setting],
    engine: str,
) -> tuple[Replayed, tuple[str, ...]]:
    from breakeven.forecast.prefill import prefill_of_cost, prefill_of_run
    from breakeven.forecast.run import forecast_source

    prefill = prefill_of_run(baseline) or prefill_of_cost(cost.cost)
    made = forecast_source(source, _terms(plan, cost, engine), settings, prefill, phase=shown)
    by_key = {(row.drafter, repr(dict(row.settings))): row for row in made.rows}
    rows: Replayed = {key: (by_key[key], by_key[key].counters) for key in map(_key, settings)}
    return rows, made.warnings


def _terms(
    plan: LivePlan, cost: ChosenCost, engine: str, method: str = "eagle3", k: int | None = None
) -> Terms:
    from breakeven.forecast.terms import KS, Terms

    return Terms(
        cost.cost,
        cost.words,
        (plan.trial.concurrency,),
        cost.geometry,
        cost.reuse,
        method=method,
        ks=(k,) if k else KS,
        engine=engine,
    )


def _looked_up(candidate: SpeculationConfig, replayed: Replayed, setting: Setting) -> Outlook:
    from breakeven.trial.outlook import Outlook

    found = replayed[_key(setting)]
    if isinstance(found, str):
        return Outlook(candidate, None, found)
    row, counters = found
    return Outlook(candidate, None if row is None else row.cells[0].speedup, _acceptance(counters))


def _acceptance(counters: SpecCounters) -> str:
    if not counters.drafts:
        return "on the baseline's replies it never drafts"
    per_step = "" if counters.tokens_per_step is None else f": {counters.tokens_per_step:.2f} tokens per step"
    return (
        f"on the baseline's replies {share(counters.draft_share)} of the steps draft, and "
        f"{share(counters.acceptance_rate)} of what they draft is accepted{per_step}"
    )


def _learned(candidate: SpeculationConfig, plan: LivePlan, cost: ChosenCost | None, engine: str) -> str:
    """What a learned drafter would have to reach: its own drafts cannot be replayed."""
    if candidate.method not in LEARNED_METHODS:
        return f"no forecast: {candidate.method} of {engine} cannot be replayed here"
    if cost is None:
        return f"no forecast: {candidate.method} drafts by its weights, which cannot be replayed"
    from breakeven.forecast.learned import needed_sentences
    from breakeven.forecast.run import forecast_heads

    made = forecast_heads(_terms(plan, cost, engine, candidate.method, candidate.k))
    return " ".join(needed_sentences(made))
