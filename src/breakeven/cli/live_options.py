"""Options of a trial on a live service, its candidates, and the plan file that may hold all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.engine import setting_given
from breakeven.cli.record import refuse
from breakeven.engines.speculation import METHODS, SpeculationConfig
from breakeven.errors import UsageError
from breakeven.servers.lifecycle import START_LIMIT_S
from breakeven.trial.plan_file import PlanFile, read_plan_file

ORDER = "breakeven.order"
PLAN = "breakeven.plan"
OF_CANDIDATE = ("method", "k", "min_n", "max_n", "draft", "setting")
OF_LIVE = (
    *OF_CANDIDATE,
    *("url", "order", "dry_run", "yes", "if_forecast_above", "keep_if", "start_limit", "sudo", "as_new_unit"),
    *("container", "calibration", "calibrate", "geometry", "hardware", "tp", "ep"),
)
"""Parameters that say nothing without --server."""


def _read_plan(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
    """What the file says stands in for options that are not typed."""
    if path is None:
        return
    params = {name: each for each in ctx.command.params if (name := _key(each)) is not None}
    plan = read_plan_file(path, {name: each.multiple for name, each in params.items()})
    ctx.default_map = {str(params[key].name): value for key, value in plan.options.items()}
    ctx.meta[PLAN] = plan


def _key(param: click.Parameter) -> str | None:
    """As a plan file names it; None for what it does not hold, or holds in [[candidate]]."""
    names = [name.removeprefix("--") for name in param.opts if name.startswith("--")]
    return names[0] if names and param.name not in ("plan", "help", *OF_CANDIDATE) else None


live_options = options.stack(
    click.option(
        "--server",
        metavar="TARGET",
        help="A live service to try it on, such as systemd:vllm.service; it is put back afterwards.",
    ),
    click.option(
        "--plan",
        type=click.Path(path_type=Path),
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=_read_plan,
        help="Options by their names, and [[candidate]] tables, as TOML; what is typed counts more.",
    ),
    click.option(
        "--method",
        multiple=True,
        help=f"{', '.join(METHODS)}, or the engine's own; may be given again.",
    ),
    click.option("--k", type=click.IntRange(min=1), multiple=True, help="Most tokens of a draft."),
    click.option("--min-n", type=click.IntRange(min=1), multiple=True, help="Shortest n-gram looked up."),
    click.option("--max-n", type=click.IntRange(min=1), multiple=True, help="Longest n-gram looked up."),
    click.option("--draft", metavar="PATH", multiple=True, help="Weights of a learned drafter."),
    click.option("--set", "setting", multiple=True, metavar="NAME=VALUE", help="The engine's own settings."),
    click.option(
        "--url", metavar="URL", help="Where the service answers [default: as its command line says]."
    ),
    click.option(
        "--order", type=click.Choice(["AB", "ABA", "ABBA"]), help="Of baseline and candidate [default: ABA]."
    ),
    click.option("--dry-run", is_flag=True, help="Print all that would be done, and do none of it."),
    click.option("--yes", is_flag=True, help="Restart without asking."),
    click.option(
        "--if-forecast-above",
        type=options.FiniteRange(min=0),
        metavar="X",
        help="Restart only where the forecast's high end is above this speedup.",
    ),
    click.option(
        "--keep-if", type=click.Choice(["faster"]), help="Leave a winner on instead of the baseline."
    ),
    click.option(
        "--start-limit",
        type=options.FiniteRange(min=0, min_open=True),
        metavar="SECONDS",
        help=f"That each start may take [default: {START_LIMIT_S:g}].",
    ),
    click.option("--sudo", is_flag=True, help="Change the service through your own sudo."),
    click.option(
        "--as-new-unit", metavar="NAME", help="systemd: a second unit beside it instead of a drop-in."
    ),
    click.option("--container", metavar="NAME", help="kubernetes: which container of the pod."),
    click.option(
        "--calibration",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="What `breakeven calibrate` measured of the baseline, for the forecast.",
    ),
    click.option("--calibrate", is_flag=True, help="Measure it first, in short, on the baseline as it runs."),
    click.option("--geometry", metavar="X", help="The model's, as `forecast --model` takes it."),
    click.option("--hardware", metavar="Y", help="The device that the model runs on, such as h100-sxm."),
    click.option("--tp", type=click.IntRange(min=1), help="Devices of tensor parallelism [default: 1]."),
    click.option("--ep", type=click.IntRange(min=1), help="Of them, groups that share out experts."),
)


class InOrder(click.Command):
    """Remembers in which order its options were typed: those behind a --method belong to it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ORDER] = [param.name for param in self.make_parser(ctx).parse_args(list(args))[2]]
        return super().parse_args(ctx, args)


def refuse_live(values: Mapping[str, Any]) -> None:
    """Raises UsageError for what says nothing without --server."""
    plan = plan_file()
    if values["command"] or (plan and plan.command):
        raise UsageError("a command line belongs to  --server process: … -- COMMAND")
    if plan and plan.candidates:
        raise UsageError('the plan file has candidates and no server: write  server = "systemd:UNIT"')
    refuse(values, OF_LIVE, "{} is of a live service: type --server systemd:UNIT too, or another target")


def plan_file() -> PlanFile | None:
    """That of the command that runs."""
    found: PlanFile | None = click.get_current_context().meta.get(PLAN)
    return found


def candidates(values: Mapping[str, Any]) -> tuple[SpeculationConfig, ...]:
    """Those typed, else those of the plan file. Raises UsageError for none, for both, or for one that cannot
    be."""
    plan = plan_file()
    typed = any(values[name] for name in OF_CANDIDATE)
    if plan is not None and plan.candidates:
        if typed:
            raise UsageError("the plan file has its candidates: leave out --method and what belongs to it")
        return plan.candidates
    found = tuple(_typed(values, click.get_current_context().meta[ORDER]))
    if not found:
        raise UsageError("which way to speculate? type  --method ngram --k 5 --min-n 2 --max-n 4")
    return found


def _typed(values: Mapping[str, Any], order: Sequence[str]) -> Iterator[SpeculationConfig]:
    """A candidate for each --method. What stands before the first of them belongs to all."""
    if not values["method"] and any(values[name] for name in OF_CANDIDATE):
        name = next(name for name in OF_CANDIDATE if values[name])
        option = "--set" if name == "setting" else f"--{name.replace('_', '-')}"
        raise UsageError(f"{option} stands without a method: type --method ngram")
    rest = {name: iter(values[name]) for name in OF_CANDIDATE}
    groups: list[dict[str, list[Any]]] = [{}]
    for name in order:
        if name == "method":
            groups.append({})
        if name in OF_CANDIDATE:
            groups[-1].setdefault(name, []).append(next(rest[name]))
    for group in groups[1:]:
        yield _config({name: [*groups[0].get(name, []), *group.get(name, [])] for name in OF_CANDIDATE})


def _config(given: Mapping[str, list[Any]]) -> SpeculationConfig:
    for name in ("k", "min_n", "max_n", "draft"):
        if len(given[name]) > 1:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{option} is given twice for --method {given['method'][0]}: leave out one of them"
            )
    k, min_n, max_n, draft = (next(iter(given[name]), None) for name in ("k", "min_n", "max_n", "draft"))
    own = dict(map(setting_given, given["setting"]))
    return SpeculationConfig(given["method"][0], k, min_n, max_n, draft, own)
