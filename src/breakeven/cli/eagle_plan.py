"""`breakeven eagle plan`: what a head must reach, what it would cost to train, and whether it is worth it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.cost_options import ChosenCost, choose_cost, cost_options
from breakeven.cli.drafter_options import Numbers
from breakeven.cli.drafting_options import drafting_times
from breakeven.cli.eagle_plan_data import Size, asked_data, machine_of
from breakeven.cli.forecast import MOST_CONCURRENCY
from breakeven.cli.forecast_grid import ENGINES, Levels, check_levels
from breakeven.cli.output import stdout
from breakeven.errors import UsageError

if TYPE_CHECKING:
    from breakeven.eagle.plan.asked import Asked
    from breakeven.eagle.plan.assumed import Assumed
    from breakeven.eagle.plan.recorded import Lengths
    from breakeven.eagle.plan.records import Plan
    from breakeven.forecast.records import Forecast
    from breakeven.trace.run import Run

KS = (1, 2, 3, 4, 5, 6)
CONCURRENCIES = (1, 4, 16, 64)
GOAL = 1.5
EXAMPLE = "next-steps-eagle.md"

data_options = options.stack(
    click.option("--samples", type=click.IntRange(1, 10**10), help="Of which it learns [default: 500,000]."),
    click.option(
        "--tokens-per-sample",
        type=click.IntRange(1, 1 << 20),
        metavar="N",
        help="Prompt and reply [default: as RECORD has them, else 1,024 to 10,000].",
    ),
    click.option("--keep-replies", is_flag=True, help="Learn from recorded replies: none is generated."),
    click.option("--epochs", type=click.IntRange(1, 10_000), help="Of training [default: 1 to 3]."),
    click.option(
        "--steps",
        type=click.IntRange(1, 16),
        default=7,
        show_default=True,
        help="Of the training-time test.",
    ),
    click.option(
        "--draft-vocabulary",
        type=click.IntRange(min=0),
        default=32_000,
        show_default=True,
        help="Tokens that the head can draft; 0 is all of the target's.",
    ),
)

machine_options = options.stack(
    click.option(
        "--train-hardware", metavar="Y", help="The device to train on [default: that of --hardware]."
    ),
    click.option("--gpus", type=click.IntRange(1, 10**6), help="Of these, in all [default: as --tp]."),
    click.option(
        "--server-gpus",
        type=click.IntRange(1, 10**6),
        metavar="N",
        help="Of the server that generates replies [default: as --tp; of a --calibration 1].",
    ),
    click.option(
        "--generation-concurrency",
        type=click.IntRange(1, 4096),
        default=64,
        show_default=True,
        metavar="N",
        help="Requests in flight at that server; of a --calibration at most as far as it went.",
    ),
    click.option(
        "--gpu-hours",
        type=options.FiniteRange(min=0, min_open=True),
        metavar="H",
        help="The budget: hours × devices.",
    ),
    click.option("--disk", type=Size(), help="Room for hidden states, such as 20TB."),
)


@click.command()
@click.argument("record", type=click.Path(path_type=Path), required=False)
@cost_options
@data_options
@machine_options
@click.option("--ks", type=Numbers(), help=f"Draft lengths [default: 1-{KS[-1]}].")
@click.option(
    "--concurrency",
    "concurrencies",
    type=Levels(),
    help="Requests in flight; it is decided at RECORD's own, else at the least [default: 1,4,16,64].",
)
@click.option(
    "--goal",
    type=options.FiniteRange(1, 17),
    default=GOAL,
    show_default=True,
    metavar="X",
    help="Speedup that is worth the training.",
)
@click.option("--engine", type=click.Choice(ENGINES), help="What serves the model.")
@drafting_times
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help=f"Write it as Markdown: {EXAMPLE}."
)
@options.json_option
def plan(record: Path | None, **values: Any) -> None:
    """What must an EAGLE-3 head reach, what does it cost to train, go or no-go?

    RECORD is the folder of a run or trial: its requests say how long samples are. Nothing is trained.

    \b
    breakeven eagle plan runs/monday --calibration runs/curve --model qwen3-8b --train-hardware h100-sxm
    breakeven eagle plan --model kimi-k2.5 --hardware h200-sxm --tp 8 --gpus 32 --gpu-hours 2000 --disk 50TB
    breakeven eagle plan --model llama-3.1-8b --hardware h100-sxm --samples 100000 --out next-steps-eagle.md
    """
    from breakeven.eagle.plan.make import make_plan

    _check_out(values["out"], [record, values["calibration"], values["routing"]])
    run = None if record is None else _run_of(record)
    lengths = None if run is None else _lengths(run)
    chosen = choose_cost(values, run)
    asked, assumed = _asked(values, chosen, lengths)
    made = make_plan(asked, _needed(values, chosen, run, lengths), assumed)
    _show(replace(made, warnings=(*chosen.warnings, *made.warnings)), values)


def _check_out(out: Path | None, inputs: list[Path | None]) -> None:
    """Before any work is done for it."""
    if out is not None:
        from breakeven.report.replay_target import check_target

        check_target(out, [path for path in inputs if path is not None], EXAMPLE, "--out")


def _run_of(path: Path) -> Run:
    """Of a trial the baseline. Raises RunFormatError for a folder that is no run."""
    from breakeven.replay.sources.run import BASELINE, TRIAL
    from breakeven.trace.run import load_run

    return load_run(path / BASELINE if (path / TRIAL).is_file() else path)


def _lengths(run: Run) -> Lengths:
    from breakeven.eagle.plan.recorded import lengths_of

    return lengths_of(run)


def _asked(
    values: Mapping[str, Any], chosen: ChosenCost, lengths: Lengths | None
) -> tuple[Asked, list[Assumed]]:
    """With what was taken for want of an option."""
    from breakeven.eagle.plan.asked import Asked, Budget

    if chosen.geometry is None:
        raise UsageError(
            "--calibration says nothing of the model's shape, which hours, memory and states depend on: type "
            "--model X  too, such as  --model kimi-k2.5  or its config.json"
        )
    data, of_data = asked_data(values, lengths)
    machine, of_machine = machine_of(values, chosen.most_concurrency)
    budget = Budget(values["gpu_hours"], values["disk"])
    asked = Asked(values["model"], chosen.geometry, chosen.cost, data, machine, budget, values["goal"])
    return asked, [*of_data, *of_machine]


def _needed(
    values: Mapping[str, Any], chosen: ChosenCost, run: Run | None, lengths: Lengths | None
) -> Forecast:
    """What a head must reach, at the concurrency of the record if there is one."""
    from breakeven.forecast.run import forecast_heads
    from breakeven.forecast.terms import Terms

    levels = _levels(values["concurrencies"], chosen.most_concurrency)
    own = None if run is None else run.meta.schedule.concurrency
    if own is not None and values["concurrencies"] is None:
        levels = (*levels, own)
    engine = values["engine"] or (run.meta.server.engine if run is not None else None) or chosen.engine
    terms = Terms(
        chosen.cost,
        chosen.words,
        levels,
        chosen.geometry,
        chosen.reuse,
        _seconds(values["flat_ms"]),
        _seconds(values["draft_ms"]),
        ks=values["ks"] or KS,
        engine=engine,
    )
    context = 0.0 if lengths is None else lengths.prompt + lengths.reply / 2
    made = forecast_heads(terms, context_tokens=context)
    return replace(made, concurrency=own) if own in levels else made


def _levels(asked: tuple[int, ...] | None, measured: int | None) -> tuple[int, ...]:
    """As asked; else the usual ones, as far as a calibration went."""
    if asked is None:
        return tuple(c for c in CONCURRENCIES if measured is None or c <= measured)
    check_levels(asked, MOST_CONCURRENCY)
    return asked


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1e3


def _show(made: Plan, values: Mapping[str, Any]) -> None:
    from breakeven.report.eagle_plan_markdown import write_plan

    if values["out"] is not None:
        write_plan(made, values["out"])
    if values["as_json"]:
        from breakeven.report.eagle_plan_json import plan_json

        options.print_json(plan_json(made))
    else:
        from breakeven.report.eagle_plan_terminal import print_plan

        print_plan(made, stdout(), None if values["out"] is None else str(values["out"]))
