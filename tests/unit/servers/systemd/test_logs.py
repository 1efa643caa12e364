"""Log lines from the journal and from files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from breakeven.servers.fake.systemctl import FakeSystemd, Ran
from breakeven.servers.systemd import SystemdLifecycle, logs

PATH = "/etc/systemd/system/x.service"


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"MESSAGE": "a line"}, "a line"),
        ({"MESSAGE": [104, 105, 13, 255]}, "hi\r\ufffd"),
        ({"MESSAGE": ["first", "second"]}, "second"),
        ({"MESSAGE": None}, None),
        ({"MESSAGE": []}, ""),
        ({}, None),
        ([], None),
        ({"MESSAGE": "old", "__MONOTONIC_TIMESTAMP": "99"}, None),
        ({"MESSAGE": "new", "__MONOTONIC_TIMESTAMP": "100"}, "new"),
    ],
)
def test_entries(entry: object, text: str | None):
    assert logs.message(json.dumps(entry), since_us=100) == text


def test_what_is_no_entry_is_skipped():
    assert logs.message("Hint: You are currently not seeing messages from other users", 0) is None


def test_commands_name_unit_and_time_and_no_shell():
    assert logs.journal_argv("x.service", 9.2, user=True) == (
        *("journalctl", "--user-unit=x.service", "--output=json", "--all", "--no-tail"),
        *("--follow", "--since=-12s"),
    )
    assert logs.journal_argv("x.service", None, user=False)[-1] == "--boot"
    assert logs.file_argv("/var/log/x", 5)[3:] == ("--bytes", "+6", "--", "/var/log/x")
    assert logs.file_argv("/var/log/x", None)[3:] == ("--lines", "10000", "--", "/var/log/x")
    assert [logs.file_of(kind) for kind in ("journal", "append:/a", "truncate:/b", "")] == [
        None,
        "/a",
        "/b",
        None,
    ]


async def test_lines_of_the_latest_start_until_it_fails():
    says = {"1": Ran(("one",)), "2": Ran(("two", "three"), exit_code=1)}
    systemd = FakeSystemd({PATH: b"[Service]\nExecStart=/bin/x 1\n"}, lambda argv, environment: says[argv[1]])
    lifecycle = SystemdLifecycle(systemd, "x")
    found = await lifecycle.inspect()
    await lifecycle.restart()
    systemd.advance(5)
    for operation in lifecycle.change(found, ("/bin/x", "2")):
        await operation.do(systemd)
    await lifecycle.restart()
    assert [line async for line in lifecycle.logs()] == ["two", "three"]


async def test_why_the_first_start_failed_is_still_there_after_systemd_started_it_again():
    says = {"1": Ran(("one",)), "2": Ran(("why it died",), exit_code=1)}
    unit = b"[Service]\nRestart=on-failure\nExecStart=/bin/x 1\n"
    systemd = FakeSystemd({PATH: unit}, lambda argv, environment: says[argv[1]])
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.restart()
    found = await lifecycle.inspect()
    systemd.advance(5)
    for operation in lifecycle.change(found, ("/bin/x", "2")):
        await operation.do(systemd)
    await lifecycle.restart()
    says["2"] = Ran(("again",), exit_code=1)
    systemd.service("x.service").started_us += 2_000_000
    systemd.advance(2)
    assert [line async for line in lifecycle.logs()] == ["why it died", "again"]


async def test_lines_of_a_log_file_from_our_restart_on():
    unit = b"[Service]\nStandardOutput=append:/var/log/%N.log\nExecStart=/bin/x\n"

    def program(argv: object, environment: object) -> Ran:
        systemd.files["/var/log/x.log"] += b"new\n"
        return Ran(exit_code=1)

    systemd = FakeSystemd({PATH: unit, "/var/log/x.log": b"old\n"}, program)
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.inspect()
    await lifecycle.restart()
    assert [line async for line in lifecycle.logs()] == ["new"]


async def test_the_source_is_closed_with_the_stream():
    closed = []

    async def source() -> AsyncIterator[str]:
        try:
            yield "a"
            await asyncio.sleep(60)
        finally:
            closed.append(True)

    async def is_over() -> bool:
        return False

    following = logs.until_over(source(), is_over, 0.01)
    assert await anext(following) == "a"
    await following.aclose()
    assert closed == [True]


async def test_the_stream_ends_with_its_source():
    async def source() -> AsyncIterator[str]:
        yield "a"

    async def is_over() -> bool:
        return False

    assert [line async for line in logs.until_over(source(), is_over, 0.01)] == ["a"]
