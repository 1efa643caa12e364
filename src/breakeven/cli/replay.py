"""`breakeven replay`: what a drafter would have drafted on recorded tokens, and how much of it accepted."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.drafter_options import Numbers, Ranges, drafter_settings
from breakeven.cli.output import stdout
from breakeven.cli.record import (
    check_page,
    first_token_option,
    jobs_option,
    listed,
    open_record,
    refuse,
    say_how_fast,
    shown,
    tokenizer_option,
    written,
)
from breakeven.errors import UsageError

if TYPE_CHECKING:
    from breakeven.replay.grid import Setting
    from breakeven.replay.records import Replay, Sweep
    from breakeven.replay.sources import Source

SWEEP_PAGE = "sweep.html"
"""In the folder that was swept."""
OF_A_SWEEP = ("drafters", "ks", "n_ranges")
HAVE_IT: Mapping[str, tuple[str, ...]] = {"ks": ("k",), "n_ranges": ("n", "min_n", "max_n")}
"""Settings of a drafter that an option of a sweep gives."""
OF_ONE_DRAFTER = ("drafter", "k", "n", "min_n", "max_n", "setting", "per_position")


@click.command()
@click.argument("record", type=click.Path(path_type=Path))
@click.option("--drafter", metavar="NAME", help="Of `breakeven drafters`, or your own class as module:Class.")
@click.option("--k", type=int, help="Most tokens of a draft.")
@click.option("--n", type=int, help="Tokens of the n-gram that is looked up.")
@click.option("--min-n", type=int, help="Shortest n-gram that is looked up, …")
@click.option("--max-n", type=int, help="… and the longest.")
@click.option("--set", "setting", multiple=True, metavar="NAME=VALUE", help="Any setting of the drafter.")
@tokenizer_option
@first_token_option
@click.option("--per-position", is_flag=True, help="Also what is accepted from each output token on.")
@click.option("--sweep", is_flag=True, help="Many settings instead of one, ranked.")
@click.option(
    "--drafters", metavar="NAMES", help="Those to sweep, parted by commas [default: all with flags]."
)
@click.option("--ks", type=Numbers(), help="Draft lengths to sweep, such as 1-16.")
@click.option("--n-ranges", type=Ranges(), help="Shortest and longest n-grams to sweep, such as 2-4,3-5.")
@jobs_option
@click.option("--ray", metavar="ADDRESS", help="A Ray cluster to use instead, or local.")
@options.html_option(SWEEP_PAGE, of="a folder's sweep")
@options.json_option
def replay(record: Path, **values: Any) -> None:
    """How often would this drafter be right on my outputs? Exact, from recorded tokens, without a server.

    RECORD is a run or trial folder, or a file of JSON lines or parquet that holds token ids.

    \b
    breakeven replay runs/measure-20260101-120000 --drafter vllm-ngram --k 5 --min-n 2 --max-n 4
    breakeven replay outputs.jsonl --sweep --ks 1-16 --n-ranges 2-4,3-5 --html sweep.html
    breakeven replay texts.parquet --tokenizer tokenizer.json --drafter llamacpp-ngram-simple --json
    """
    check_page(values["html"], [record, values["tokenizer"]])
    if values["sweep"]:
        refuse(values, OF_ONE_DRAFTER, "--sweep takes --drafters, --ks and --n-ranges: leave out {}")
        _sweep(record, values)
    else:
        refuse(values, OF_A_SWEEP, "{} belongs to a sweep: type --sweep too")
        _replay(record, values)


def _replay(path: Path, values: Mapping[str, Any]) -> None:
    from breakeven.replay.run import replay_source
    from breakeven.report.replay_html import write_replay_html
    from breakeven.report.replay_json import replay_json
    from breakeven.report.replay_terminal import print_replay

    if values["drafter"] is None:
        raise UsageError(
            "name a drafter, such as --drafter vllm-ngram (breakeven drafters lists them), or --sweep"
        )
    with redirect_stdout(sys.stderr):  # a drafter of the user's own may print
        settings = drafter_settings(values)
        source = open_record(path, values["tokenizer"])
        say_how_fast([values["drafter"]])
        with shown("requests replayed", source.expected) as advance:
            done: Replay = replay_source(
                source,
                values["drafter"],
                settings,
                first_token=values["first_token"],
                per_position=values["per_position"],
                jobs=values["jobs"],
                ray=values["ray"],
                progress=advance,
            )
    report = written(write_replay_html, done, values["html"])
    if values["as_json"]:
        options.print_json(replay_json(done))
    else:
        print_replay(done, stdout(), report)


def _sweep(path: Path, values: Mapping[str, Any]) -> None:
    from breakeven.replay.grid import default_grid
    from breakeven.replay.sweep import sweep_source
    from breakeven.report.replay_html import write_sweep_html
    from breakeven.report.replay_json import sweep_json
    from breakeven.report.replay_terminal import print_sweep

    asked: dict[str, Any] = {name: values[name] for name in OF_A_SWEEP if values[name] is not None}
    if "drafters" in asked:
        asked["drafters"] = listed(asked["drafters"])
    with redirect_stdout(sys.stderr):  # a drafter of the user's own may print
        named = default_grid(**asked)
        source = open_record(path, values["tokenizer"])
        grid = _with_recorded(named, source, asked)
        say_how_fast([name for name, _ in grid])
        total = source.expected and source.expected * len(grid)
        with shown("requests × settings replayed", total) as advance:
            done: Sweep = sweep_source(
                source,
                grid,
                first_token=values["first_token"],
                jobs=values["jobs"],
                ray=values["ray"],
                progress=advance,
            )
    done = changed(done, warnings=(*done.warnings, *_not_applied(grid, asked)))
    report = written(write_sweep_html, done, values["html"], path / SWEEP_PAGE if path.is_dir() else None)
    if values["as_json"]:
        options.print_json(sweep_json(done))
    else:
        print_sweep(done, stdout(), report)


def _with_recorded(grid: Sequence[Setting], source: Source, asked: Mapping[str, Any]) -> list[Setting]:
    """And acceptance that the record itself holds, unless other drafters are named."""
    from breakeven.drafters.recorded import Recorded
    from breakeven.replay.grid import KS, recorded_grid

    if Recorded.name not in asked.get("drafters", [Recorded.name]):
        return list(grid)
    found = recorded_grid(source, asked.get("ks", KS))
    return [*(one for one in grid if not found or one[0] != Recorded.name), *found]


def _not_applied(grid: Sequence[Setting], asked: Mapping[str, Any]) -> Iterator[str]:
    """Which of the options of a sweep do nothing for which of its drafters."""
    for option, names in HAVE_IT.items():
        without = dict.fromkeys(name for name, has in grid if not has.keys() & set(names))
        if option in asked and without:
            yield f"--{option.replace('_', '-')} does not apply to {', '.join(without)}"
