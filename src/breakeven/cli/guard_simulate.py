"""`breakeven guard simulate`: what a guard would have gained, and risked, on recorded outputs."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.cost_options import MOST_MS, ChosenCost, choose_cost, cost_options
from breakeven.cli.drafter_options import Numbers, Ranges
from breakeven.cli.forecast import ENGINES
from breakeven.cli.forecast_grid import DEFAULT_ENGINE, Levels, check_drafters, grid_of
from breakeven.cli.output import stdout
from breakeven.cli.record import (
    check_page,
    first_token_option,
    jobs_option,
    open_record,
    say_how_fast,
    shown,
    tokenizer_option,
    written,
)
from breakeven.errors import UsageError

if TYPE_CHECKING:
    from breakeven.cost.drafting import DraftingCost
    from breakeven.guard.simulate.records import Simulation
    from breakeven.guard.simulate.terms import Terms
    from breakeven.replay.grid import Setting
    from breakeven.replay.sources import Source

PAGE = "guard.html"
"""In the folder that was simulated."""
KS = tuple(range(1, 11))
"""Of the fixed settings of vLLM: as far as a guard drafts by default."""
MOST_CONCURRENCY = 256
EPSILONS = (0.005, 0.01, 0.02, 0.05, 0.1, math.inf)
NO_LEDGER = "none"


class Epsilons(click.ParamType):  # type: ignore[type-arg]
    """Shares parted by commas, and `none` for a guard without a ledger. Raises UsageError for another."""

    name = "LIST"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        return tuple(dict.fromkeys(_epsilon(word.strip()) for word in str(value).split(",")))


def _epsilon(word: str) -> float:
    try:
        found = math.inf if word == NO_LEDGER else float(word)
        if word == NO_LEDGER or 0 <= found < 1:
            return found
    except ValueError:
        pass
    raise UsageError(
        f"{word[:40]!r} is no share of the plain decode speed: type --epsilons 0.01,0.02,0.05,{NO_LEDGER}"
    )


@click.command()
@click.argument("record", type=click.Path(path_type=Path))
@cost_options
@click.option(
    "--epsilon",
    type=options.FiniteRange(0, 1, max_open=True),
    help="Share of its plain decode speed that a request may lose [default: 0.02].",
)
@click.option(
    "--epsilons",
    type=Epsilons(),
    help="Others to show the gain of, `none` for no ledger [default: 0.005,0.01,0.02,0.05,0.1,none].",
)
@click.option("--most-tokens", type=click.IntRange(1, 64), help="Longest draft of the guard [default: 10].")
@click.option(
    "--drafter",
    "drafter_names",
    multiple=True,
    metavar="NAME",
    help="Of the fixed settings: of `breakeven drafters`; may be given again [default: those of the engine].",
)
@click.option("--ks", type=Numbers(), help="Draft lengths of the fixed settings [default: 1-10].")
@click.option("--n-ranges", type=Ranges(), help="Their shortest and longest n-grams [default: seven].")
@click.option(
    "--concurrency",
    "concurrencies",
    type=Levels(),
    help="Requests decoded at a time: the guard through its policy, such as 4,8 [default: 1 alone].",
)
@click.option(
    "--engine", type=click.Choice(ENGINES), help="What serves the model [default: as RECORD or FILE say]."
)
@click.option(
    "--drafted-ms",
    type=options.FiniteRange(0, MOST_MS),
    metavar="MS",
    help="That a step with drafts takes beside their verification [default: what is known of the engine].",
)
@tokenizer_option
@first_token_option
@jobs_option
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Write the report as one HTML file [default of a folder: {PAGE} in it].",
)
@options.json_option
def simulate(record: Path, **values: Any) -> None:
    """What would a guard have gained on recorded outputs, and what did it risk? Nothing is restarted.

    RECORD is a run or trial folder, or a file with token ids, as for `breakeven replay`. The guard stands
    beside every fixed window and n-gram range, a test-and-set policy, and perfect windows.

    \b
    breakeven guard simulate runs/measure-20260101-120000 --calibration runs/calibrate-20260101-121500
    breakeven guard simulate outputs.jsonl --model qwen3-30b-a3b --hardware h100-sxm --html guard.html
    breakeven guard simulate runs/trial-20260101-120000 --calibration curve --concurrency 4,8 --json
    """
    check_page(values["html"], [record, values["tokenizer"], values["calibration"], values["routing"]])
    made = _simulated(record, values)
    report = _written(made, record, values["html"])
    if values["as_json"]:
        from breakeven.report.guard_json import guard_json

        options.print_json(guard_json(made))
    else:
        from breakeven.report.guard_terminal import print_simulation

        print_simulation(made, stdout(), report)


def _written(made: Simulation, record: Path, asked: Path | None) -> str | None:
    from breakeven.report.guard_html import write_guard_html

    return written(write_guard_html, made, asked, record / PAGE if record.is_dir() else None)


def _simulated(path: Path, values: Mapping[str, Any]) -> Simulation:
    from breakeven.forecast.random_tokens import refuse_random_prompts
    from breakeven.guard.simulate.run import simulate_source
    from breakeven.replay.sources.run import RunSource

    with redirect_stdout(sys.stderr):  # a drafter of the user's own may print
        source = open_record(path, values["tokenizer"])
        run = source.run if isinstance(source, RunSource) else None
        chosen = choose_cost(values, run)
        engine = values["engine"] or source.origin.engine or chosen.engine
        check_drafters(values["drafter_names"], engine)
        terms = _terms(values, chosen, engine or DEFAULT_ENGINE)
        refuse_random_prompts(source)
        say_how_fast([name for name, _ in terms.grid], simulates=True)
        made = simulate_source(
            source, terms, first_token=values["first_token"], jobs=values["jobs"], phase=shown
        )
    warnings = (*_engine_unknown(engine, values), *chosen.warnings, *_meaning(source), *made.warnings)
    return replace(made, warnings=warnings)


def _engine_unknown(engine: str | None, values: Mapping[str, Any]) -> tuple[str, ...]:
    if engine is not None or values["drafter_names"]:
        return ()
    return (
        f"the record does not say which engine served it: fixed settings of {DEFAULT_ENGINE} are tried; of "
        f"another type --engine ({', '.join(name for name in ENGINES if name != DEFAULT_ENGINE)})",
    )


def _meaning(source: Source) -> tuple[str, ...]:
    """What acceptance on this record means, unless it is exact."""
    from breakeven.report.replay_words import sampling_sentence

    exact = source.origin.temperature == 0 and source.origin.ids == "recorded"
    return () if exact else (sampling_sentence(source),)


def _terms(values: Mapping[str, Any], chosen: ChosenCost, engine: str) -> Terms:
    from breakeven.guard.settings import GuardSettings
    from breakeven.guard.simulate.terms import Terms

    given = {name: values[name] for name in ("epsilon", "most_tokens") if values[name] is not None}
    return Terms(
        chosen.cost,
        chosen.words,
        _drafting(engine, values["drafted_ms"]),
        engine,
        _grid(values, engine),
        GuardSettings(**given),
        EPSILONS if values["epsilons"] is None else values["epsilons"],
        _concurrencies(values["concurrencies"]),
    )


def _concurrencies(asked: tuple[int, ...] | None) -> tuple[int, ...]:
    if asked is not None and max(asked) > MOST_CONCURRENCY:
        raise UsageError(f"--concurrency {max(asked)}: type {MOST_CONCURRENCY} at most")
    return asked or (1,)


def _drafting(engine: str, drafted_ms: float | None) -> DraftingCost:
    from breakeven.cost.drafting import drafting_cost
    from breakeven.interval import Interval

    known = drafting_cost(engine, "ngram")
    if drafted_ms is None:
        return known
    given_s = drafted_ms / 1e3
    return replace(
        known,
        drafted_step_s=Interval(given_s, given_s, given_s),
        source=f"{drafted_ms:g} ms for every step with drafts, as given; {known.source}",
    )


def _grid(values: Mapping[str, Any], engine: str) -> list[Setting]:
    """Of vLLM every window of the guard with every n range; of others as a forecast has it."""
    from breakeven.drafters.vllm_ngram import VllmNgram
    from breakeven.replay.grid import N_RANGES, default_grid

    if engine == DEFAULT_ENGINE and not values["drafter_names"]:
        ranges = values["n_ranges"] or (*N_RANGES, (4, 4))
        return default_grid((VllmNgram.name,), values["ks"] or KS, ranges)
    return grid_of(values, engine)
