"""What a human should know before a unit is changed and restarted."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.secrets import masked_argv
from breakeven.servers.systemd import dependents, shown
from breakeven.servers.systemd.reading import Reading

_WAITED_FOR = ("notify", "notify-reload", "forking", "dbus", "oneshot")
"""Types whose start systemd waits for, and ends when it takes too long."""


def warnings(reading: Reading) -> tuple[str, ...]:
    return tuple(_warnings(reading))


def _warnings(reading: Reading) -> Iterator[str]:
    unit, properties = reading.name.full, reading.properties
    if reading.running and not reading.runs_as_configured:
        yield (
            f"{unit} may run with another command line than its unit has now: restart it before the baseline "
            f"is measured, if so. It runs {shown.running_words(reading.running)}"
        )
    if reading.changed:
        yield (
            f"{', '.join(reading.changed)} changed since {unit} was started, so that it may come back "
            "otherwise than it is measured now: restart it before the baseline is measured"
        )
    if reading.unread:
        yield f"{', '.join(reading.unread)} cannot be read here: what {unit} has from there is not known"
    if others := dependents.named(properties):
        yield (
            f"these are stopped or restarted with {unit}, and started again afterwards where they run now: "
            f"{', '.join(others)}"
        )
    if called := properties.get("OnFailure", "").split():
        yield f"systemd starts {', '.join(called)} when {unit} fails, as a candidate may"
    limit = properties.get("TimeoutStartUSec", "infinity")
    if properties.get("Type") in _WAITED_FOR and limit != "infinity":
        yield f"systemd ends a start of {unit} after {limit}: raise TimeoutStartSec= if it may take longer"
    if reading.effective.value("StandardOutput") == "null":
        yield f"the output of {unit} goes nowhere (StandardOutput=null): its log cannot be read"
    if masked_argv(reading.command.argv) != reading.command.argv:
        yield (
            f"the command line of {unit} holds a secret, which the drop-in repeats while the trial "
            "lasts: better give it by LoadCredential= or EnvironmentFile="
        )
