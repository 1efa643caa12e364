"""`breakeven guard simulate`: what a guard would have gained, and risked, on recorded outputs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.cost_options import MOST_MS, ChosenCost, cost_options
from breakeven.cli.costed_record import open_costed
from breakeven.cli.forecast_grid import (
    DEFAULT_ENGINE,
    ENGINES,
    check_levels,
    drafters_of,
    engine_unknown,
    grid_of,
    grid_options,
)
from breakeven.cli.guard_options import NO_LEDGER, Epsilons, guard_options, settings_given
from breakeven.cli.output import stdout
from breakeven.cli.record import (
    check_page,
    first_token_option,
    jobs_option,
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
EPSILONS = f"0.5%,1%,2%,5%,10%,{NO_LEDGER}"


@click.command()
@click.argument("record", type=click.Path(path_type=Path))
@cost_options
@guard_options
@click.option(
    "--epsilons",
    type=Epsilons(),
    default=EPSILONS,
    show_default=True,
    help=f"Others to show the gain of, `{NO_LEDGER}` for no ledger.",
)
@grid_options(
    drafters="those of the engine",
    ks=f"{KS[0]}-{KS[-1]}, of other engines than {DEFAULT_ENGINE} some of 1 to 16",
    n_ranges="seven, of other engines three or more",
    concurrency="Requests decoded at a time: the guard through its policy, such as 4,8 [default: 1 alone].",
    of=" of the fixed settings",
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
@options.html_option(PAGE)
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
    inputs = [record, values["tokenizer"], values["calibration"], values["routing"]]
    check_page(values["html"], inputs, PAGE)
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
    from breakeven.guard.simulate.next_steps import next_commands
    from breakeven.guard.simulate.run import simulate_source

    with redirect_stdout(sys.stderr):  # a drafter of the user's own may print
        opened = open_costed(path, values, "guard simulate")
        source, chosen = opened.source, opened.chosen
        terms = _terms(values, chosen, opened.engine or DEFAULT_ENGINE)
        say_how_fast([name for name, _ in terms.grid], simulates=True)
        made = simulate_source(
            source, terms, first_token=values["first_token"], jobs=values["jobs"], phase=shown
        )
    unsaid = engine_unknown(opened.engine, values)
    warnings = (*unsaid, *chosen.warnings, *_meaning(source), *made.warnings)
    commands = next_commands(made, _calibration(values, chosen, made.engine))
    return replace(made, warnings=warnings, next_commands=commands)


def _calibration(values: Mapping[str, Any], chosen: ChosenCost, engine: str) -> str | None:
    """Where it lies, if it is of that engine, or does not say of which."""
    path: Path | None = values["calibration"]
    return None if path is None or chosen.engine not in (None, engine) else str(path)


def _meaning(source: Source) -> tuple[str, ...]:
    """What acceptance on this record means, unless it is exact."""
    from breakeven.report.replay_words import sampling_sentence

    exact = source.origin.temperature == 0 and source.origin.ids == "recorded"
    return () if exact else (sampling_sentence(source),)


def _terms(values: Mapping[str, Any], chosen: ChosenCost, engine: str) -> Terms:
    from breakeven.guard.simulate.terms import Terms

    return Terms(
        chosen.cost,
        chosen.words,
        _drafting(engine, values["drafted_ms"]),
        engine,
        _grid(values, engine),
        settings_given(values),
        values["epsilons"],
        _concurrencies(values["concurrencies"]),
    )


def _concurrencies(asked: tuple[int, ...] | None) -> tuple[int, ...]:
    levels = asked or (1,)
    check_levels(levels, MOST_CONCURRENCY)
    return levels


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

    _check_fixed(values["drafter_names"], engine)
    if engine == DEFAULT_ENGINE and not values["drafter_names"]:
        ranges = values["n_ranges"] or (*N_RANGES, (4, 4))
        return default_grid((VllmNgram.name,), values["ks"] or KS, ranges)
    return grid_of(values, engine)


def _check_fixed(names: Sequence[str], engine: str) -> None:
    """Raises UsageError for a drafter that is no setting of that engine: the oracle, or another engine's."""
    from breakeven.drafters.registry import BUILT_IN, drafter_class

    mine = drafters_of(engine)[0]
    for name in names:
        of = drafter_class(name).engine
        if name in BUILT_IN and of != drafter_class(mine).engine:
            instead = f"--engine {of}  or  --drafter {mine}" if of in ENGINES else f"--drafter {mine}"
            raise UsageError(f"--drafter {name} is no fixed setting of {engine[:40]}: type  {instead}")
