"""`breakeven guard vllm-config`: the flag and the environment with which a vLLM runs the guard."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.output import stdout
from breakeven.errors import UsageError

if TYPE_CHECKING:
    from breakeven.guard.config import GuardConfig


class Share(click.ParamType):  # type: ignore[type-arg]
    """A share, as 0.02 or 2%. Raises UsageError for another."""

    name = "SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        try:
            found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            found = -1.0
        if not 0 < found < 1:
            raise UsageError(f"{text[:40]!r} is no share: type  --epsilon 2%")
        return found


@click.command("vllm-config")
@click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What `breakeven calibrate` measured of this server, plain [default: costs are learned].",
)
@click.option(
    "--epsilon",
    type=Share(),
    help="Share of a request's plain decode time that its drafts may cost it [default: 2%].",
)
@click.option("--most-tokens", type=click.IntRange(1, 64), help="Longest draft [default: 10].")
@click.option(
    "--kill-file",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="While this file exists nothing is drafted.",
)
@click.option(
    "--state-file",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Keep what is learned of all requests here, for the next start.",
)
@click.option("--metrics-port", type=click.IntRange(1, 65_535), help="Serve Prometheus metrics there.")
@options.json_option
def vllm_config(**values: Any) -> None:
    """What to start a vLLM with, 0.30 to 0.33, so that it speculates under the guard.

    breakeven has to be installed in the server's own Python:  pip install 'breakeven[replay]'.

    \b
    breakeven guard vllm-config
    breakeven guard vllm-config --calibration runs/calibrate-20260101-121500 --epsilon 1%
    breakeven guard vllm-config --kill-file /run/guard-off --metrics-port 9400 --json
    """
    from rich.text import Text

    from breakeven.engines.speculation import SpeculationConfig
    from breakeven.engines.vllm import Vllm
    from breakeven.guard.config import CONFIG

    config = _config(values)
    flags = Vllm().flags(SpeculationConfig("guard", config.settings.most_tokens))
    environment = {CONFIG: config.to_json()}
    if values["as_json"]:
        options.print_json({"environment": environment, "flags": list(flags)})
        return
    lines = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    stdout().print(Text("\n".join((*lines, shlex.join(flags)))), soft_wrap=True)


def _config(values: dict[str, Any]) -> GuardConfig:
    from breakeven.guard.config import GuardConfig
    from breakeven.guard.settings import GuardSettings

    given = {name: values[name] for name in ("epsilon", "most_tokens") if values[name] is not None}
    return GuardConfig(
        GuardSettings(**given),
        calibration=_calibration(values["calibration"]),
        kill_file=_whole(values["kill_file"]),
        state_file=_whole(values["state_file"]),
        metrics_port=values["metrics_port"],
    )


def _calibration(path: Path | None) -> str | None:
    """Its whole path, once it is known to be one that a vLLM can use."""
    from breakeven.cost.calibration import load_calibration

    if path is None:
        return None
    calibration = load_calibration(path)
    calibration.curve()
    if calibration.server.engine not in (None, "vllm"):
        raise UsageError(
            f"{path} is of {calibration.server.engine}: give a calibration of the vLLM that the guard is for"
        )
    return _whole(path)


def _whole(path: Path | None) -> str | None:
    """A server runs elsewhere than this shell."""
    return None if path is None else str(path.absolute())
