"""`breakeven forecast`: would it pay, at which window, and what must a trained head reach?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.cost_options import MOST_MS, ChosenCost, choose_cost, cost_options
from breakeven.cli.costed_record import open_costed
from breakeven.cli.drafting_options import acceptance_given, drafting_options
from breakeven.cli.forecast_grid import (
    MOST_SETTINGS,
    check_levels,
    engine_unknown,
    grid_of,
    grid_options,
)
from breakeven.cli.output import stdout
from breakeven.cli.record import (
    check_page,
    first_token_option,
    jobs_option,
    refuse,
    say_how_fast,
    shown,
    tokenizer_option,
    written,
)

if TYPE_CHECKING:
    from breakeven.forecast.next_steps import Known
    from breakeven.forecast.prefill import Prefill
    from breakeven.forecast.records import Forecast
    from breakeven.forecast.terms import Terms
    from breakeven.replay.sources import Source
    from breakeven.trace.run import Run

PAGE = "forecast.html"
"""In the folder that was forecast."""
CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
MOST_CONCURRENCY = 1024
"""The work grows with it, and no engine takes more by default."""
OF_A_RECORD = ("drafter_names", "n_ranges", "tokenizer", "prefill_ms", "jobs")


@click.command()
@click.argument("record", type=click.Path(path_type=Path), required=False)
@cost_options
@grid_options(
    drafters="those of the record's engine",
    ks="some of 1 to 16; of a trained head 1-8",
    n_ranges=f"three or more, as {MOST_SETTINGS} settings allow",
    concurrency=(
        "Requests in flight; settings are ranked at the record's own, else at the least [default: "
        f"1,2,4,…,{CONCURRENCIES[-1]}; with --calibration up to the last that it measured]."
    ),
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
@options.html_option(PAGE)
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
    from breakeven.forecast.next_steps import next_commands
    from breakeven.forecast.run import forecast_source

    with redirect_stdout(sys.stderr):  # a drafter of the user's own may print
        opened = open_costed(path, values, "forecast")
        source, run, chosen = opened.source, opened.run, opened.chosen
        _name_engine(source, opened.engine)
        grid = grid_of(values, opened.engine)
        terms = _terms(values, chosen, opened.engine)
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
    unsaid = engine_unknown(opened.engine, values)
    warnings = (*unsaid, *chosen.warnings, *_meaning(source, run, made), *made.warnings)
    return replace(made, warnings=warnings, next_commands=next_commands(made, _known(path, run)))


def _known(path: Path, run: Run | None) -> Known:
    """What the record says for commands to be typed as they stand."""
    from breakeven.forecast.next_steps import Known
    from breakeven.trace.disk import PROMPTS

    if run is None:
        return Known()
    prompts = run.path / PROMPTS
    is_trial = run.meta.kind == "trial-side"
    return Known(
        run.meta.model,
        str(prompts) if prompts.is_file() else None,
        None if is_trial else run.meta.url,
        embedded=is_trial and (path / "baseline.log").is_file(),
    )


def _meaning(source: Source, run: Run | None, made: Forecast) -> Iterator[str]:
    """What acceptance on this record means, unless it is exact, and the best of it for other requests."""
    from breakeven.forecast.anchor import SPECULATED, speculated
    from breakeven.report.replay_words import chosen_sentence, learning_sentence, sampling_sentence

    if source.origin.temperature != 0 or source.origin.ids != "recorded":
        yield sampling_sentence(source)
    if run is not None and speculated(run):
        yield SPECULATED
    yield from filter(None, (learning_sentence(made), chosen_sentence(made)))


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
        last = CONCURRENCIES[-1] if measured is None else min(measured, MOST_CONCURRENCY)
        return (*(c for c in CONCURRENCIES if c < last), last)
    check_levels(asked, MOST_CONCURRENCY)
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
