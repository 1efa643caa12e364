"""`breakeven guard vllm-config`: the flag and the environment with which a vLLM runs the guard."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.guard_options import guard_options, settings_given
from breakeven.cli.output import stderr, stdout
from breakeven.errors import UsageError

if TYPE_CHECKING:
    from breakeven.guard.config import GuardConfig


@click.command("vllm-config")
@click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What `breakeven calibrate` measured of this server, plain [default: costs are learned].",
)
@guard_options
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
    from breakeven.report.terminal import say
    from breakeven.report.text import line

    config = _config(values)
    if config.kill_file is not None and _known(Path(config.kill_file).exists):
        say(
            stderr(),
            f"! {line(config.kill_file, 1000)} exists: nothing is drafted until it is removed",
            "yellow",
        )
    if missing := _missing_folders(config):
        say(stderr(), f"! {line(_to_make(missing), 1000)}", "yellow", wrap=False)
    flags = Vllm().flags(SpeculationConfig("guard", config.settings.most_tokens))
    environment = {CONFIG: config.to_json()}
    if values["as_json"]:
        options.print_json({"environment": environment, "flags": list(flags)})
        return
    lines = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    stdout().print(Text("\n".join((*lines, shlex.join(flags)))), soft_wrap=True)


def _config(values: Mapping[str, Any]) -> GuardConfig:
    from breakeven.guard.config import GuardConfig

    _check_state(values["state_file"])
    return GuardConfig(
        settings_given(values),
        calibration=_calibration(values["calibration"]),
        kill_file=_file(values, "kill_file"),
        state_file=_file(values, "state_file"),
        metrics_port=values["metrics_port"],
    )


def _file(values: Mapping[str, Any], name: str) -> str | None:
    """As the server is told it. Raises UsageError for a folder."""
    path: Path | None = values[name]
    if path is not None and _known(path.is_dir):
        option = f"--{name.replace('_', '-')}"
        raise UsageError(f"{option} {path} is a folder: type  {option} {path / 'guard'}")
    return _whole(path)


def _missing_folders(config: GuardConfig) -> list[str]:
    """Of the kill file and the state file, as far as this user sees."""
    folders = [Path(path).parent for path in (config.kill_file, config.state_file) if path is not None]
    return [str(one) for one in dict.fromkeys(folders) if _is_missing(one)]


def _is_missing(folder: Path) -> bool:
    return _known(lambda: not folder.is_dir())


def _to_make(folders: Sequence[str]) -> str:
    are, them = ("is no folder", "it") if len(folders) == 1 else ("are no folders", "them")
    made = shlex.join(("mkdir", "-p", *folders))
    return f"{' and '.join(folders)} {are} here: unless the server's machine has {them}, type there  {made}"


def _check_state(path: Path | None) -> None:
    """Raises UsageError for a file with something else in it: a guard would write over it."""
    if path is None or not _known(path.is_file):
        return
    from breakeven.guard.survival import Survival

    try:
        Survival.from_json(path.read_bytes())
    except PermissionError:
        return
    except ValueError as error:
        raise UsageError(f"--state-file {path} holds something else ({error}): name another file") from error


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


def _known(look: Callable[[], bool]) -> bool:
    """A server may be another user's, with files where this one may not look."""
    try:
        return look()
    except PermissionError:
        return False
