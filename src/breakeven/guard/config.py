"""GuardConfig: how a guard is set up inside a server, whose own settings have no place for it.

vLLM refuses keys of its speculative config that it does not know. So this travels by the environment of the
server: BREAKEVEN_GUARD_CONFIG is JSON, or the path of a file that holds it, and BREAKEVEN_GUARD the mode.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from breakeven.errors import UsageError
from breakeven.guard.settings import GuardSettings
from breakeven.trace.typed import fits

CONFIG, MODE = "BREAKEVEN_GUARD_CONFIG", "BREAKEVEN_GUARD"
"""Variables of the server's environment."""
Mode = Literal["on", "off", "shadow"]
MOST_PORT = 65_535
FILES = ("calibration", "kill_file", "state_file")
"""Fields that name one each. A state is written, and a kill file that is written kills."""


@dataclass(frozen=True, slots=True)
class GuardConfig:
    """What is written into BREAKEVEN_GUARD_CONFIG; the fields of `settings` stand beside the others there.

    Raises UsageError for what cannot be.
    """

    settings: GuardSettings = field(default_factory=GuardSettings)
    mode: Mode = "on"
    """`off` never drafts, nor looks anything up; `shadow` does all but draft, and so learns. Both show what
    the engine gives up for having a drafter at all, `shadow` with the guard's own time."""
    calibration: str | None = None
    """A file of `breakeven calibrate`, or its folder; without one all costs are learned."""
    kill_file: str | None = None
    """While this file exists nothing is drafted."""
    state_file: str | None = None
    """Where the shared counts are kept, so that a restart begins with them. Further engines of data
    parallelism have `.1`, `.2`, … behind it."""
    metrics_port: int | None = None
    """Where Prometheus finds the counters; without one they are not served. Further engines take the next
    ports."""
    metrics_host: str = "127.0.0.1"
    any_version: bool = False
    """Whether to start with a vLLM that the guard was not tried with."""

    def __post_init__(self) -> None:
        if self.metrics_port is not None and not 0 < self.metrics_port <= MOST_PORT:
            raise UsageError(f"metrics_port {self.metrics_port}: give 1 to {MOST_PORT}")
        for one, other in combinations(FILES, 2):
            path = getattr(self, one)
            if path is not None and path == getattr(self, other):
                raise UsageError(f"{one} and {other} are both {path}: name another for one of them")

    def of_engine(self, engine: int) -> GuardConfig:
        """For one of several engines, which may share a machine: each has a port and a file of its own."""
        if engine == 0:
            return self
        port = None if self.metrics_port is None else self.metrics_port + engine
        file = None if self.state_file is None else f"{self.state_file}.{engine}"
        return replace(self, metrics_port=port, state_file=file)

    def to_json(self) -> str:
        """In one line, without what is as if it were left out."""
        whole, unset = _flat(self), _flat(GuardConfig())
        return json.dumps({name: value for name, value in whole.items() if value != unset[name]})


def config_of(environment: Mapping[str, str]) -> GuardConfig:
    """What a server's environment sets. Raises UsageError that names the variable and the field."""
    values = _values(environment.get(CONFIG, "").strip())
    mode = environment.get(MODE, "").strip().lower()
    if mode not in ("", *get_args(Mode)):
        raise UsageError(f"{MODE} is {mode[:40]!r}: set it to {', '.join(get_args(Mode))}")
    if mode:
        values["mode"] = mode
    names = {one.name for one in fields(GuardSettings)}
    settings = GuardSettings(**{name: value for name, value in values.items() if name in names})
    return GuardConfig(settings, **{name: value for name, value in values.items() if name not in names})


def _values(text: str) -> dict[str, Any]:
    """The fields that the variable holds, or the file that it names, each of its type."""
    if not text:
        return {}
    value = _object(text)
    types = {**get_type_hints(GuardSettings), **get_type_hints(GuardConfig)}
    del types["settings"]
    for name, item in value.items():
        if name not in types:
            raise UsageError(f"{CONFIG} has {name[:40]!r}, which is none of {', '.join(sorted(types))}")
        if not fits(item, types[name]):
            raise UsageError(
                f"{CONFIG} has {name} {json.dumps(item)[:60]}: type  breakeven guard vllm-config"
            )
    return value


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text if text.startswith("{") else Path(text).read_bytes())
    except OSError as error:
        raise UsageError(f"{CONFIG} names {text[:200]}, which cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise UsageError(f"{CONFIG} is no JSON ({error}): type  breakeven guard vllm-config") from error
    if not isinstance(value, dict):
        raise UsageError(f"{CONFIG} is no JSON object: type  breakeven guard vllm-config")
    return value


def _flat(config: GuardConfig) -> dict[str, Any]:
    values = asdict(config)
    return {**values.pop("settings"), **values}
