"""What a human should know before a unit is changed and restarted."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.servers.secrets import masked_argv
from breakeven.servers.systemd import shown
from breakeven.servers.systemd.reading import Reading

_RESTARTED_WITH = ("RequiredBy", "BoundBy", "ConsistsOf")
_WAITED_FOR = ("notify", "notify-reload", "forking", "dbus", "oneshot")
"""Types whose start systemd waits for, and ends when it takes too long."""


def warnings(reading: Reading) -> tuple[str, ...]:
    return tuple(_warnings(reading))


def _warnings(reading: Reading) -> Iterator[str]:
    unit, properties = reading.name.full, reading.properties
    if reading.running and not _runs_as_configured(reading.running, reading.as_run):
        yield (
            f"{unit} runs with another command line than its unit has now: restart it before the baseline is "
            f"measured. It runs {shown.running_words(reading.running)}"
        )
    others = sorted({name for key in _RESTARTED_WITH for name in properties.get(key, "").split()})
    if others:
        yield f"these are stopped or restarted with {unit}: {', '.join(others)}"
    limit = properties.get("TimeoutStartUSec", "infinity")
    if properties.get("Type") in _WAITED_FOR and limit != "infinity":
        yield f"systemd ends a start of {unit} after {limit}: raise TimeoutStartSec= if it may take longer"
    if reading.effective.value("StandardOutput") == "null":
        yield f"the output of {unit} goes nowhere (StandardOutput=null): its log cannot be read"
    if masked_argv(reading.command.argv) != reading.command.argv:
        yield (
            f"the command line of {unit} holds a secret, which the drop-in and the journal of changes "
            "repeat: better give it by LoadCredential= or EnvironmentFile="
        )


def _runs_as_configured(running: tuple[str, ...], configured: tuple[str, ...]) -> bool:
    """A script's interpreter stands before it, and a wrapper such as numactl is gone: the last words tell. A
    word with a specifier that is not known here is taken for any."""
    arguments = configured[1:]
    tail = running[-len(arguments) :] if arguments else ()
    if len(tail) == len(arguments) and all(map(_same, tail, arguments)):
        return True
    return len(running) > 1 and any(
        all(map(_same, running[1:], configured[start:]))
        for start in range(1, len(configured))
        if len(configured) - start == len(running) - 1
    )


def _same(runs: str, configured: str) -> bool:
    return "%" in configured or runs == configured
