"""`breakeven watch`: what running servers say of speculation, and whether it pays now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.access_options import access_options
from breakeven.cli.drafting_options import drafting_times
from breakeven.cli.output import stderr, stdout
from breakeven.client.loop import run
from breakeven.engines.speculation import MOST_K
from breakeven.errors import ConnectFailed, UsageError

if TYPE_CHECKING:
    from breakeven.watch.server import Server
    from breakeven.watch.state import ServerState
    from breakeven.watch.yardstick import Yardstick

MOST_S = 86_400.0
DRAW_S = 1.0
"""Between two pictures on a terminal, at most."""
OF_A_CALIBRATION = ("method", "k", "flat_ms", "draft_ms")


@click.command()
@click.argument("urls", nargs=-1, metavar="URL...")
@click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What `breakeven calibrate` measured of the baseline: says whether speculation pays.",
)
@click.option("--method", metavar="NAME", help="How the servers draft: ngram, eagle3, … [default: ngram].")
@click.option(
    "--k",
    type=click.IntRange(1, MOST_K),
    metavar="N",
    help="Tokens of each draft, where the server does not count them (SGLang).",
)
@drafting_times
@click.option(
    "--interval",
    type=options.FiniteRange(0.1, MOST_S),
    default=5.0,
    show_default=True,
    help="Seconds between two readings.",
)
@click.option(
    "--window",
    type=options.FiniteRange(0.1, MOST_S),
    default=60.0,
    show_default=True,
    help="Seconds that the figures are of.",
)
@click.option("--once", is_flag=True, help="Read twice, print, and end.")
@click.option(
    "--for",
    "seconds",
    type=options.FiniteRange(0, MOST_S * 366, min_open=True),
    metavar="SECONDS",
    help="End after so long [default: at Ctrl-C].",
)
@click.option("--prometheus-port", type=click.IntRange(0, 65_535), help="Export the same as gauges there.")
@click.option("--prometheus-host", default="127.0.0.1", show_default=True)
@access_options
@options.json_option
def watch(urls: tuple[str, ...], **values: Any) -> int:
    """Does speculation pay now? Acceptance, load and speed of running servers, read from /metrics.

    With --calibration the acceptance of the last seconds is set against what a step costs. Without a terminal
    it prints a line for each server and interval. Ends at Ctrl-C, with 0; --once with 3 where no server
    could be read.

    \b
    breakeven watch http://127.0.0.1:8000
    breakeven watch http://h1:8000 http://h2:8000 --calibration runs/calibrate-20260101-121500
    breakeven watch http://127.0.0.1:8000 --once --json
    breakeven watch http://127.0.0.1:8000 --prometheus-port 9105
    """
    _check(urls, values)
    servers = _servers(urls, values)

    def states() -> list[ServerState]:
        return [server.state for server in servers]

    if values["once"]:
        return _once(servers, states, values)
    _until_told(servers, states, values)
    return 0


def _check(urls: Sequence[str], values: Mapping[str, Any]) -> None:
    """Raises UsageError for options that exclude each other."""
    if not urls:
        raise UsageError("which server? Type  breakeven watch http://127.0.0.1:8000  or several such URLs")
    if values["as_json"] and not values["once"]:
        raise UsageError("--json prints one object: type --once too, or --prometheus-port for a stream")
    if values["once"] and (values["seconds"] is not None or values["prometheus_port"] is not None):
        raise UsageError("--once reads twice and ends: leave out --for and --prometheus-port")
    if values["window"] < values["interval"] and not values["once"]:
        raise UsageError(
            f"a --window of {values['window']:g} s holds no two readings {values['interval']:g} s apart: "
            f"type --window {values['interval']:g} or more"
        )
    for name in OF_A_CALIBRATION:
        if values[name] is not None and values["calibration"] is None:
            raise UsageError(
                f"--{name.replace('_', '-')} belongs to a calibration: type --calibration FILE too"
            )


def _servers(urls: Sequence[str], values: Mapping[str, Any]) -> list[Server]:
    """Each URL once. Raises UsageError."""
    from breakeven.cli.live_page import endpoint_of
    from breakeven.watch.server import Server

    endpoints = {found.root_url: found for found in (endpoint_of(url, values) for url in urls)}
    yardstick = _yardstick(values)
    return [Server(endpoint, values["window"], yardstick) for endpoint in endpoints.values()]


def _yardstick(values: Mapping[str, Any]) -> Yardstick | None:
    if values["calibration"] is None:
        return None
    from breakeven.cost.calibration import load_calibration
    from breakeven.watch.yardstick import Yardstick

    flat_s, token_s = (None if ms is None else ms / 1e3 for ms in (values["flat_ms"], values["draft_ms"]))
    found = load_calibration(values["calibration"])
    return Yardstick(found, values["method"] or "ngram", flat_s, token_s, values["k"])


def _once(
    servers: Sequence[Server], states: Callable[[], Sequence[ServerState]], values: Mapping[str, Any]
) -> int:
    from breakeven.report.watch_json import watch_json
    from breakeven.report.watch_live import print_view
    from breakeven.watch.run import look_twice

    run(look_twice(servers, values["interval"]))
    if values["as_json"]:
        calibration = values["calibration"]
        shown = watch_json(states(), values["interval"], None if calibration is None else str(calibration))
        options.print_json(shown)
    else:
        print_view(states(), stdout(), _asked(values))
    return 0 if any(state.now for state in states()) else ConnectFailed.exit_code


def _until_told(
    servers: Sequence[Server], states: Callable[[], Sequence[ServerState]], values: Mapping[str, Any]
) -> None:
    from breakeven.report.watch_live import LiveView, print_lines
    from breakeven.watch.run import watch as watching

    console = stdout()
    with ExitStack() as stack, suppress(KeyboardInterrupt):
        if values["prometheus_port"] is not None:
            _export(stack, states, values)
        if console.is_terminal:
            show, every_s = stack.enter_context(LiveView(console, _asked(values), states)).show, DRAW_S
        else:
            show, every_s = (lambda: print_lines(states(), console)), values["interval"]
        run(watching(servers, values["interval"], show, min(every_s, values["interval"]), values["seconds"]))


def _export(stack: ExitStack, states: Callable[[], Sequence[ServerState]], values: Mapping[str, Any]) -> None:
    from breakeven.report.terminal import say
    from breakeven.watch.exporter import exporting

    url = stack.enter_context(exporting(states, values["prometheus_host"], values["prometheus_port"]))
    say(stderr(), f"gauges for Prometheus: {url}", wrap=False)


def _asked(values: Mapping[str, Any]) -> str:
    from breakeven.report.watch_live import asked_words

    span_s = values["interval"] if values["once"] else values["window"]
    calibration = values["calibration"]
    return asked_words(values["interval"], span_s, None if calibration is None else str(calibration))
