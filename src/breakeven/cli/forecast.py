"""`breakeven forecast`: would it pay, at which window, and what must a trained head reach?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.cost_options import MOST_MS, ChosenCost, choose_cost, cost_options
from breakeven.cli.drafter_options import Numbers, Ranges
from breakeven.cli.drafting_options import acceptance_given, drafting_options
from breakeven.cli.output import stdout
from breakeven.cli.record import (
    check_page,
    first_token_option,
    jobs_option,
    open_record,
    refuse,
    say_how_fast,
    shown,
    tokenizer_option,
    written,
)
from breakeven.errors import UsageError

if TYPE_CHECKING:
    from breakeven.forecast.prefill import Prefill
    from breakeven.forecast.records import Forecast
    from breakeven.forecast.terms import Terms
    from breakeven.replay.grid import Setting
    from breakeven.replay.sources import Source
    from breakeven.trace.run import Run

PAGE = "forecast.html"
"""In the folder that was forecast."""
CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
KS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16)
N_RANGES = ((1, 3), (2, 4), (3, 5))
MOST_CONCURRENCY = 1024
"""The work grows with it, and no engine takes more by default."""
MOST_SETTINGS = 60
"""Of the default grid, which takes as many of N_RANGES as fit."""
ENGINES = ("vllm", "sglang", "llama.cpp", "tensorrt-llm", "transformers")
DEFAULT_ENGINE = "vllm"
"""Whose drafters are tried where it is not known what served the record."""
OF_A_RECORD = ("drafter_names", "n_ranges", "tokenizer", "prefill_ms", "jobs")


@click.command()
@click.argument("record", type=click.Path(path_type=Path), required=False)
@cost_options
@click.option(
    "--drafter",
    "drafter_names",
    multiple=True,
    metavar="NAME",
    help="Of `breakeven drafters`; may be given again [default: those of the record's engine].",
)
@click.option("--ks", type=Numbers(), help="Draft lengths [default: 1-8,10,12,16; of a trained head 1-8].")
@click.option(
    "--n-ranges",
    type=Ranges(),
    help=f"Shortest and longest n-grams [default: of 1-3,2-4,3-5 as many as {MOST_SETTINGS} settings allow].",
)
@click.option(
    "--concurrency",
    "concurrencies",
    type=Numbers(),
    help=(
        "Requests in flight; settings are ranked at the record's own, else at the least [default: "
        f"1,2,4,…,{CONCURRENCIES[-1]}; with --calibration up to the last that it measured]."
    ),
)
@click.option(
    "--engine", type=click.Choice(ENGINES), help="What serves the model [default: as RECORD or FILE say]."
)
@drafting_options
@click.option(
    "--prefill-ms",
    type=options.FiniteRange(0, MOST_MS),
    metavar="MS",
    help="Of the prefill for each prompt token [default: by the record's times, else by the cost of a step].",
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
def forecast(record: Path | None, **values: Any) -> None:
    """Would speculation pay, at which window, and what must a trained head reach? Nothing is restarted.

    RECORD is a run or trial folder, or a file with token ids, as for `breakeven replay`. Without one, only
    what a trained head must reach is told.

    \b
    breakeven forecast runs/measure-20260101-120000 --calibration runs/calibrate-20260101-121500
    breakeven forecast outputs.jsonl --model qwen3-30b-a3b --hardware h100-sxm --tp 2 --html forecast.html
    breakeven forecast --model kimi-k2.5 --hardware b200 --tp 8 --ks 3 --acceptance-length 2.7 --json
    """
    inputs = [record, values["tokenizer"], values["calibration"], values["routing"]]
    check_page(values["html"], inputs)
    made = _of_heads(values) if record is None else _of_record(record, values)
    report = _written(made, record, values["html"])
    if values["as_json"]:
        from breakeven.report.forecast_json import forecast_json

        options.print_json(forecast_json(made))
    else:
        from breakeven.report.forecast_terminal import print_forecast

        print_forecast(made, stdout(), report)


def _written(made: Forecast, record: Path | None, asked: Path | None) -> str | None:
    from breakeven.report.forecast_html import write_forecast_html

    return written(write_forecast_html, made, asked, record / PAGE if record and record.is_dir() else None)


def _of_heads(values: Mapping[str, Any]) -> Forecast:
    from breakeven.forecast.run import forecast_heads

    refuse(values, OF_A_RECORD, "{} is of a replay: name a RECORD too, such as a run's folder")
    chosen = choose_cost(values)
    engine = values["engine"] or chosen.engine
    made = forecast_heads(_terms(values, chosen, engine))
    return replace(made, warnings=(*chosen.warnings, *made.warnings))


def _of_record(path: Path, values: Mapping[str, Any]) -> Forecast:
    from breakeven.forecast.random_tokens import refuse_random_prompts
    from breakeven.forecast.run import forecast_source
    from breakeven.replay.sources.run import RunSource

    with redirect_stdout(sys.stderr):  # a drafter of the user's own may print
        source = open_record(path, values["tokenizer"])
        run = source.run if isinstance(source, RunSource) else None
        chosen = choose_cost(values, run)
        _name_engine(source, values["engine"] or source.origin.engine or chosen.engine)
        grid = _grid(values, source.origin.engine)
        terms = _terms(values, chosen, source.origin.engine)
        refuse_random_prompts(source)
        say_how_fast([name for name, _ in grid], simulates=True)
        made = forecast_source(
            source,
            terms,
            grid,
            _prefill(values, run, chosen),
            concurrency=_own_concurrency(run, terms),
            first_token=values["first_token"],
            jobs=values["jobs"],
            phase=shown,
        )
    return replace(made, warnings=(*chosen.warnings, *_meaning(source, run), *made.warnings))


def _meaning(source: Source, run: Run | None) -> Iterator[str]:
    """What acceptance on this record means, unless it is exact."""
    from breakeven.forecast.anchor import SPECULATED, speculated
    from breakeven.report.replay_words import sampling_sentence

    if source.origin.temperature != 0:
        yield sampling_sentence(source)
    if run is not None and speculated(run):
        yield SPECULATED


def _name_engine(source: Source, engine: str | None) -> None:
    """A file does not say what served its outputs; the user or the calibration may."""
    source.origin = replace(source.origin, engine=engine)


def _terms(values: Mapping[str, Any], chosen: ChosenCost, engine: str | None) -> Terms:
    from breakeven.forecast.terms import KS as HEAD_KS
    from breakeven.forecast.terms import Terms

    return Terms(
        chosen.cost,
        chosen.words,
        _concurrencies(values["concurrencies"], chosen.most_concurrency),
        chosen.geometry,
        chosen.reuse,
        _seconds(values["flat_ms"]),
        _seconds(values["draft_ms"]),
        values["method"],
        tuple(sorted(values["ks"])) if values["ks"] else HEAD_KS,
        acceptance_given(values),
        engine,
    )


def _concurrencies(asked: tuple[int, ...] | None, measured: int | None) -> tuple[int, ...]:
    """As asked; else the usual ones, as far as a calibration went if there is one, with its last."""
    if asked is None:
        return CONCURRENCIES if measured is None else (*(c for c in CONCURRENCIES if c < measured), measured)
    if max(asked) > MOST_CONCURRENCY:
        raise UsageError(f"--concurrency {max(asked)}: type {MOST_CONCURRENCY} at most")
    return asked


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1e3


def _prefill(values: Mapping[str, Any], run: Run | None, chosen: ChosenCost) -> Prefill:
    from breakeven.forecast.anchor import speculated
    from breakeven.forecast.prefill import prefill_given, prefill_of_cost, prefill_of_run

    if values["prefill_ms"] is not None:
        return prefill_given(values["prefill_ms"])
    is_baseline = run is not None and not speculated(run)
    return (prefill_of_run(run) if run and is_baseline else None) or prefill_of_cost(chosen.cost)


def _own_concurrency(run: Run | None, terms: Terms) -> int | None:
    """The record's own, if it is among those that are asked for."""
    own = run.meta.schedule.concurrency if run else None
    return own if own in terms.concurrencies else None


def _grid(values: Mapping[str, Any], engine: str | None) -> list[Setting]:
    from breakeven.replay.grid import default_grid

    drafters = values["drafter_names"] or drafters_of(engine)
    ks = values["ks"] or KS
    if values["n_ranges"]:
        return default_grid(drafters, ks, values["n_ranges"])
    grids = [default_grid(drafters, ks, N_RANGES[:n]) for n in range(1, len(N_RANGES) + 1)]
    return next((grid for grid in reversed(grids) if len(grid) <= MOST_SETTINGS), grids[0])


def drafters_of(engine: str | None) -> Sequence[str]:
    """Those with a flag in that engine; vLLM's where it is unknown, or has none."""
    from breakeven.drafters.registry import drafter_class
    from breakeven.replay.grid import DRAFTERS

    by_engine = {name: drafter_class(name).engine for name in DRAFTERS}
    mine = [name for name, has in by_engine.items() if has == engine]
    return mine or [name for name, has in by_engine.items() if has == DEFAULT_ENGINE]
