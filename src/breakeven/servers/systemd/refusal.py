"""Why a unit cannot be changed safely, and what to do instead."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from breakeven.engines.argv import SHELLS
from breakeven.errors import UsageError
from breakeven.servers.systemd import dropin
from breakeven.servers.systemd.command import Command
from breakeven.servers.systemd.effective import EffectiveUnit
from breakeven.servers.systemd.manager import paths

PROPERTIES = (
    "Id", "LoadState", "LoadError", "FragmentPath", "DropInPaths", "NeedDaemonReload", "RefuseManualStart",
    "RefuseManualStop", "Type", "UnitFileState", "SourcePath", "FailureAction", "SuccessAction",
    "StartLimitAction", "JobTimeoutAction",
)  # fmt: skip
ACTIONS = ("FailureAction", "SuccessAction", "StartLimitAction", "JobTimeoutAction")
"""What systemd does to the whole machine when a unit fails, ends, or is slow to start (systemd.unit(5))."""
_CONTAINERS = {"docker": "docker", "podman": "docker", "nerdctl": "docker", "docker-compose": "compose"}
_TAKES_TEXT = re.compile(r"-[a-z]*c[a-z]*")
_DETACHERS = frozenset({"screen", "tmux", "nohup", "start-stop-daemon", "daemonize"})


def check_loaded(properties: Mapping[str, str], systemctl: str) -> None:
    """Raises UsageError for a unit that systemd does not have, or that somebody is changing."""
    unit, state = properties.get("Id", "the unit"), properties.get("LoadState", "not-found")
    if state == "masked":
        raise UsageError(f"{unit} is masked: type  {systemctl} unmask {unit}  if it is to run at all")
    if state == "not-found":
        raise UsageError(f"{unit} is not there: look for its name with  {systemctl} list-units --all")
    if state != "loaded":
        raise UsageError(
            f"systemd cannot load {unit} ({state}): {properties.get('LoadError', '')}".rstrip(": ")
            + f"; put it right first, see  {systemctl} status {unit}"
        )
    _check_left(unit, properties)
    if properties.get("NeedDaemonReload") == "yes":
        raise UsageError(
            f"files of {unit} were changed since systemd read them: look at them with  {systemctl} cat {unit}"
            f"  and, if they are right, type  {systemctl} daemon-reload"
        )
    if properties.get("FragmentPath", "").startswith("/run/systemd/transient/"):
        raise UsageError(
            f"{unit} was made by systemd-run and is gone once it stops: give it a unit file first"
        )
    for setting in ("RefuseManualStart", "RefuseManualStop"):
        if properties.get(setting) == "yes":
            raise UsageError(f"{unit} has {setting}=yes, so that it cannot be restarted by hand")
    _check_machine_stays(unit, properties, systemctl)


def _check_machine_stays(unit: str, properties: Mapping[str, str], systemctl: str) -> None:
    """Raises UsageError where a candidate that does not start would reboot the machine, or end systemd."""
    for setting in ACTIONS:
        action = properties.get(setting, "")
        if action not in ("", "none"):
            raise UsageError(
                f"{unit} has {setting}={action}, so that systemd may do that to this machine when a start "
                f"fails: write {setting}=none by  {systemctl} edit {unit}  for the time of the trial"
            )


def check_runs_so(unit: str, runs_otherwise: bool, running: str, systemctl: str) -> None:
    """Raises UsageError where the process is older than the unit's command line: it would not come back as it
    was measured."""
    if runs_otherwise:
        raise UsageError(
            f"{unit} runs with another command line than its unit has now, with which it would come back: "
            f"type  {systemctl} restart {unit}  first. It runs {running}"
        )


def check_all_read(unit: str, unread: Sequence[str], systemctl: str) -> None:
    """Raises UsageError where systemd would read files of somebody else's together with ours."""
    if unread:
        raise UsageError(
            f"systemd has not read {' and '.join(unread)} yet: if it is right, type  {systemctl} "
            f"daemon-reload  and restart {unit}, so that the baseline has it too"
        )


def _check_left(unit: str, properties: Mapping[str, str]) -> None:
    left = [path for path in paths(properties.get("DropInPaths", "")) if dropin.is_trial(path)]
    if left:
        raise UsageError(
            f"{unit} has {left[0]} from a trial that is not over: type  breakeven recover  as the user who "
            f"began it; where that finds nothing to put back, remove {left[0]}, type  systemctl "
            f"daemon-reload , and restart {unit}"
        )


def the_command(unit: str, effective: EffectiveUnit) -> Command:
    """The one command that starts the server. Raises UsageError where there is none to be changed."""
    found = effective.exec_start
    if not found:
        raise UsageError(f"{unit} has no ExecStart=, so that there is no command line to change")
    if len(found) > 1:
        raise UsageError(
            f"{unit} runs {len(found)} commands (Type=oneshot): give the server a unit of its own, with one "
            "ExecStart="
        )
    _check_command(unit, found[0])
    return found[0]


def _check_command(unit: str, command: Command) -> None:
    argv = command.argv
    names = [PurePosixPath(word).name for word in argv]
    if "|" in command.prefix or _runs_shell_text(names):
        raise UsageError(
            f"{unit} starts its server through a shell, where a flag cannot be changed safely: write the "
            "command itself as ExecStart=, and what the shell sets as Environment=, by  systemctl edit"
        )
    if names[0] in SHELLS or names[0].endswith((".sh", ".bash")) or argv[0].startswith("/etc/init.d/"):
        raise UsageError(
            f"{unit} starts its server by a script ({' '.join(argv[:2])}), which may do anything with its "
            "arguments: write the server's own command as ExecStart=, by  systemctl edit"
        )
    if kind := _CONTAINERS.get(names[0]):
        raise UsageError(f"{unit} starts a container: name that instead, {_container(kind, argv)}")
    if names[0] in _DETACHERS:
        raise UsageError(
            f"{unit} starts its server through {names[0]}, so that systemd does not see how it fares: write "
            "the server's own command as ExecStart=, by  systemctl edit"
        )


def _runs_shell_text(names: Sequence[str]) -> bool:
    """Whether `sh -c TEXT` is anywhere, as after `env` or `conda run`."""
    pairs = itertools.pairwise(names)
    return any(name in SHELLS and _TAKES_TEXT.fullmatch(flag) for name, flag in pairs)


def _container(kind: str, argv: Sequence[str]) -> str:
    """How its target is spelled, as far as the command line tells."""
    if "compose" in argv[1:3] or kind == "compose":
        return "--server compose:FILE#SERVICE"
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        if word == "--name":
            return f"--server docker:{following}"
        if word.startswith("--name="):
            return f"--server docker:{word.removeprefix('--name=')}"
    return f"--server docker:{argv[-1]}" if argv[1:2] == ("start",) else "--server docker:NAME"
