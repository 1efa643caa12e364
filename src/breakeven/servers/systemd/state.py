"""A service's State, from what `systemctl show` says of it."""

from __future__ import annotations

import signal
from collections.abc import Mapping

from breakeven.servers.lifecycle import Condition, State
from breakeven.servers.systemd.manager import number, seconds_since

PROPERTIES = (
    "LoadState", "ActiveState", "SubState", "Result", "ExecMainCode", "ExecMainStatus", "NRestarts", "Job",
    "StateChangeTimestampMonotonic", "InactiveExitTimestampMonotonic", "MainPID",
)  # fmt: skip
_EXITED, _KILLED, _DUMPED = 1, 2, 3
"""How a process ended: CLD_EXITED, CLD_KILLED, CLD_DUMPED of waitid(2)."""
_RESULTS = {
    "oom-kill": "killed by the kernel for memory",
    "timeout": "not started or stopped within systemd's time limit",
    "watchdog": "no sign of life to systemd's watchdog",
    "start-limit-hit": "restarted too often for systemd's StartLimitBurst=",
    "resources": "systemd could not set it up",
    "protocol": "did not tell systemd what its Type= promises",
    "exec-condition": "its ExecCondition= says no",
}


def state(properties: Mapping[str, str], uptime: bytes | None, most_restarts: int | None = None) -> State:
    """`most_restarts`: so many by systemd itself are known of; None, where the unit was not restarted by us.
    One more is a crash, also when the service is up again: it is `failed`."""
    restarts = number(properties, "NRestarts")
    crashed = most_restarts is not None and restarts > most_restarts
    return _state(properties, uptime, "failed" if crashed else _condition(properties))


def returning(properties: Mapping[str, str], uptime: bytes | None) -> State:
    """Where a crash that systemd repairs by itself does not count."""
    is_repaired = properties.get("SubState", "").startswith("auto-restart")
    return _state(properties, uptime, "starting" if is_repaired else _condition(properties))


def _state(properties: Mapping[str, str], uptime: bytes | None, condition: Condition) -> State:
    restarts = number(properties, "NRestarts")
    since_s = seconds_since(number(properties, "StateChangeTimestampMonotonic"), uptime)
    return State(condition, _detail(properties, restarts), since_s)


def _condition(properties: Mapping[str, str]) -> Condition:
    active, sub = properties.get("ActiveState"), properties.get("SubState", "")
    if active == "failed" or sub.startswith("auto-restart"):
        return "failed"
    if active == "deactivating" and properties.get("Result", "success") != "success":
        return "failed"
    if number(properties, "Job") or active == "activating":
        return "starting"
    if active in ("active", "reloading", "refreshing"):
        return "running"
    return "stopped"


def _detail(properties: Mapping[str, str], restarts: int) -> str:
    """Such as `active (running)` or `failed (failed): exit code 1, restarted 3 times by systemd`."""
    active, sub = properties.get("ActiveState", "unknown"), properties.get("SubState", "unknown")
    why = [_RESULTS.get(properties.get("Result", ""), ""), _ending(properties)]
    if restarts:
        why.append(f"restarted {restarts} time{'' if restarts == 1 else 's'} by systemd")
    said = ", ".join(part for part in why if part)
    return f"{active} ({sub}){': ' if said else ''}{said}"


def _ending(properties: Mapping[str, str]) -> str:
    """How its process ended, unless it lives or ended well."""
    status, code = number(properties, "ExecMainStatus"), number(properties, "ExecMainCode")
    if code == _EXITED and status:
        return f"exit code {status}"
    if code in (_KILLED, _DUMPED):
        return f"killed by {_signal_name(status)}{' (core dumped)' if code == _DUMPED else ''}"
    return ""


def _signal_name(value: int) -> str:
    try:
        return signal.Signals(value).name
    except ValueError:
        return f"signal {value}"
