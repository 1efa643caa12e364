"""A service's State from its properties."""

from __future__ import annotations

import pytest

from breakeven.servers.lifecycle import State
from breakeven.servers.systemd.state import state

UPTIME = b"1000.50 2000.00\n"


@pytest.mark.parametrize(
    ("properties", "condition", "detail"),
    [
        ("ActiveState=active SubState=running", "running", "active (running)"),
        ("ActiveState=activating SubState=start Result=success", "starting", "activating (start)"),
        ("ActiveState=active SubState=running Job=12", "starting", "active (running)"),
        ("ActiveState=deactivating SubState=stop-sigterm Job=12", "starting", "deactivating (stop-sigterm)"),
        ("ActiveState=inactive SubState=dead", "stopped", "inactive (dead)"),
        ("ActiveState=reloading SubState=reload", "running", "reloading (reload)"),
        (
            "ActiveState=failed SubState=failed Result=exit-code ExecMainCode=1 ExecMainStatus=3",
            "failed",
            "failed (failed): exit code 3",
        ),
        (
            "ActiveState=failed SubState=failed Result=oom-kill ExecMainCode=2 ExecMainStatus=9",
            "failed",
            "failed (failed): killed by the kernel for memory, killed by SIGKILL",
        ),
        (
            "ActiveState=failed SubState=failed Result=core-dump ExecMainCode=3 ExecMainStatus=11",
            "failed",
            "failed (failed): killed by SIGSEGV (core dumped)",
        ),
        (
            "ActiveState=failed SubState=failed Result=start-limit-hit NRestarts=5",
            "failed",
            "failed (failed): restarted too often for systemd's StartLimitBurst=, "
            "restarted 5 times by systemd",
        ),
        (
            "ActiveState=activating SubState=auto-restart Result=exit-code ExecMainCode=1 ExecMainStatus=1 "
            "Job=9",
            "failed",
            "activating (auto-restart): exit code 1",
        ),
        (
            "ActiveState=deactivating SubState=stop-post Result=timeout",
            "failed",
            "deactivating (stop-post): not started or stopped within systemd's time limit",
        ),
        ("ExecMainCode=2 ExecMainStatus=99", "stopped", "unknown (unknown): killed by signal 99"),
    ],
)
def test_conditions(properties: str, condition: str, detail: str):
    found = dict(one.split("=") for one in properties.split())
    assert state(found, UPTIME, ours=False) == State(condition, detail)


def test_a_restart_by_systemd_after_ours_is_a_failure():
    properties = {"ActiveState": "active", "SubState": "running", "NRestarts": "1"}
    assert state(properties, UPTIME, ours=False).condition == "running"
    found = state(properties, UPTIME, ours=True)
    assert (found.condition, found.detail) == ("failed", "active (running): restarted 1 time by systemd")


@pytest.mark.parametrize(
    ("stamp", "uptime", "since_s"),
    [
        ("900500000", UPTIME, 100.0),
        ("0", UPTIME, None),
        ("900500000", None, None),
        ("2000000000", UPTIME, 0.0),
    ],
)
def test_seconds_in_a_state(stamp: str, uptime: bytes | None, since_s: float | None):
    assert state({"StateChangeTimestampMonotonic": stamp}, uptime, ours=False).since_s == since_s
