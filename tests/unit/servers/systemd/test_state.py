"""A service's State from its properties."""

from __future__ import annotations

import pytest

from breakeven.servers.lifecycle import State
from breakeven.servers.systemd.state import returning, state

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
    assert state(found, UPTIME, None) == State(condition, detail)


def test_a_restart_by_systemd_after_ours_is_a_failure():
    properties = {"ActiveState": "active", "SubState": "running", "NRestarts": "1"}
    assert state(properties, UPTIME, None).condition == "running"
    assert state(properties, UPTIME, 1).condition == "running"
    found = state(properties, UPTIME, 0)
    assert (found.condition, found.detail) == ("failed", "active (running): restarted 1 time by systemd")


@pytest.mark.parametrize(
    ("properties", "condition"),
    [
        ("ActiveState=activating SubState=auto-restart Result=exit-code NRestarts=1", "starting"),
        ("ActiveState=activating SubState=auto-restart-queued NRestarts=3", "starting"),
        ("ActiveState=active SubState=running NRestarts=2", "running"),
        ("ActiveState=failed SubState=failed Result=start-limit-hit NRestarts=5", "failed"),
        ("ActiveState=failed SubState=failed Result=exit-code", "failed"),
    ],
)
def test_a_crash_that_systemd_repairs_is_no_failure_of_what_comes_back(properties: str, condition: str):
    found = dict(one.split("=") for one in properties.split())
    assert returning(found, UPTIME).condition == condition


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
    assert state({"StateChangeTimestampMonotonic": stamp}, uptime).since_s == since_s
