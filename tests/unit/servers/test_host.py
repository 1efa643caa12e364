"""LocalHost on each event loop that a command may run on."""

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from breakeven.errors import ServerError
from breakeven.servers import host as host_module
from breakeven.servers.host import LocalHost

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
try:
    import uvloop

    LOOPS["uvloop"] = uvloop.new_event_loop
except ImportError:
    pass


@pytest.mark.parametrize("name", LOOPS)
def test_a_command_is_in_a_group_of_its_own(name: str):
    """The terminal's Ctrl-C goes to its group, and must not end what puts a service back."""

    async def run() -> None:
        host = LocalHost()
        done = await host.run(("sh", "-c", "echo $$; cut -d ' ' -f 5 /proc/$$/stat; cat"), b"words")
        pid, group, words = done.stdout.split("\n")
        assert pid == group != str(os.getpgrp()) and words == "words"
        assert [line async for line in host.lines(("sh", "-c", "echo a; echo b >&2"))] == ["a", "b"]
        with pytest.raises(ServerError, match="did not come to an end"):
            await host.run(("sleep", "60"), timeout_s=0.2)

    with asyncio.Runner(loop_factory=LOOPS[name]) as runner:
        runner.run(run())


async def test_a_command_that_cannot_be_killed_is_named_with_how_to_end_it(monkeypatch: pytest.MonkeyPatch):
    """As what sudo runs, which is root's."""
    kill = os.killpg

    def forbidden(group: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", forbidden)
    monkeypatch.setattr(host_module, "KILL_S", 0.05)
    with pytest.raises(ServerError, match="did not come to an end") as raised:
        await LocalHost().run(("sh", "-c", "exec sleep 60", "--api-key=hush"), timeout_s=0.2)
    said = str(raised.value)
    assert "could not be killed" in said and "hush" not in said
    pid = int(said.rpartition("sudo kill ")[2])
    assert f"ps -f --pid {pid}" in said
    kill(pid, signal.SIGKILL)


async def test_a_command_that_was_killed_has_nothing_to_be_ended():
    with pytest.raises(ServerError, match=r"^sleep 60 did not come to an end within 0\.2 s$"):
        await LocalHost().run(("sleep", "60"), timeout_s=0.2)
