"""Options that say where a log is, and the place that they come to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.log_sources import DockerLog, FileLog, JournalLog, Log, PodLog
from breakeven.errors import UsageError
from breakeven.servers.systemd.unit_name import UnitName

MOST_AGE = timedelta(days=3650)
UNITS_S = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_AGE = re.compile(r"(\d{1,9})\s*(s|min|m|h|d)")


class Since(click.ParamType):  # type: ignore[type-arg]
    """An age, such as 30m or 2h, or a time, such as 2026-01-31T12:00; of this machine's zone where it names
    none. Raises UsageError for what is neither."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        age = _AGE.fullmatch(value.strip())
        if age is not None:
            return datetime.now(UTC) - min(timedelta(seconds=int(age[1]) * UNITS_S[age[2]]), MOST_AGE)
        try:
            return datetime.fromisoformat(value.strip()).astimezone(UTC)
        except (ValueError, OverflowError):
            raise UsageError(
                f"--since {value[:40]!r} is no time: type such as --since 30m, 2h, 1d or 2026-01-31T12:00"
            ) from None


def log_of(values: Mapping[str, Any]) -> Log | None:
    """The one that the options name. Raises UsageError for two, or for what belongs to another place."""
    named = [name for name in ("logs", "unit", "pod", "container") if values[name] is not None]
    if "pod" in named and "container" in named:
        named.remove("container")
    if len(named) > 1:
        raise UsageError(f"--{named[0]} and --{named[1]} name two logs: leave out one of the two")
    place = named[0] if named else None
    _refuse_unfit(values, place)
    if place == "logs":
        return FileLog(values["logs"])
    if place == "unit":
        return JournalLog(UnitName.parse(values["unit"]), values["user"], values["since"])
    if place == "pod":
        return PodLog(values["pod"], values["namespace"], values["container"], values["since"])
    return None if place is None else DockerLog(values["container"], values["since"])


def _refuse_unfit(values: Mapping[str, Any], place: str | None) -> None:
    if values["user"] and place != "unit":
        raise UsageError("--user is of a unit: type --unit NAME too, or leave it out")
    if values["namespace"] is not None and place != "pod":
        raise UsageError("--namespace is of a pod: type --pod NAME too, or leave it out")
    if values["since"] is not None and place in (None, "logs"):
        raise UsageError("--since is of --unit, --container and --pod: leave it out, a file is read whole")


log_options = options.stack(
    click.option(
        "--logs", type=click.Path(path_type=Path), metavar="FILE", help="The server's log; - is a pipe."
    ),
    click.option(
        "--baseline-logs",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The log of the server without speculation.",
    ),
    click.option("--unit", metavar="NAME", help="The log that the journal has of this systemd service."),
    click.option("--user", is_flag=True, help="It is a service of the user's own systemd."),
    click.option("--container", metavar="NAME", help="The log of this container; with --pod, which of it."),
    click.option("--pod", metavar="NAME", help="The log of this pod, or of TYPE/NAME."),
    click.option("--namespace", metavar="NAME", help="Of the pod [default: kubectl's]."),
    click.option("--since", type=Since(), help="Of a journal, container or pod: 30m, 2h, 1d, or a time."),
)
