"""LocalHost on each event loop that a command may run on."""

import asyncio
import os
from collections.abc import Callable

import pytest

from breakeven.errors import ServerError
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
