"""Golden containers and workloads, and a trial of them that is killed anywhere."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from breakeven.engines.dialects import dialect_of
from breakeven.engines.speculation import SpeculationConfig
from breakeven.servers.fake.host import FakeHost, Killed
from breakeven.servers.lifecycle import Found, Lifecycle
from breakeven.servers.operation_kinds import operation_from_json

GOLDEN = Path(__file__).parents[2] / "golden" / "containers"
NGRAM = SpeculationConfig("ngram", k=5, min_n=2, max_n=4)
NGRAM_OF_ONE_LENGTH = SpeculationConfig("ngram", k=5, min_n=3, max_n=3)


def golden(name: str) -> Any:
    return json.loads((GOLDEN / name).read_text())


def container(name: str) -> dict[str, Any]:
    return golden(name)[0]


def candidate(found: Found) -> tuple[str, ...]:
    """The command line with n-gram speculation."""
    dialect = dialect_of(found.argv)
    config = NGRAM_OF_ONE_LENGTH if dialect.name == "llama.cpp" else NGRAM
    return dialect.with_speculation(found.argv, config)


async def apply(lifecycle: Lifecycle, host: FakeHost, journal: list[str]) -> Found:
    """A trial up to its restart; the journal gets each operation before it is done."""
    found = await lifecycle.inspect()
    for operation in lifecycle.change(found, candidate(found)):
        journal.append(json.dumps(operation.to_json()))
        await operation.do(host)
    await lifecycle.restart()
    return found


async def put_back(host: FakeHost, journal: list[str]) -> None:
    """By the journal alone."""
    for entry in reversed(journal):
        await operation_from_json(json.loads(entry)).undo(host)


def killed_everywhere(start: Callable[[], tuple[Lifecycle, FakeHost]], snapshot: Callable[[Any], Any]) -> int:
    """Kill a trial, and then its recovery, at every touch, before and after it takes effect; what is there
    after a whole recovery must be what was there before. Returns at how many places it was killed.

    `snapshot` gets the fake machine that answers the host's commands.
    """
    _, host = start()
    before, kills = snapshot(host.answer), 0
    for takes_effect in (False, True):
        at, killed = 0, True
        while killed:
            killed = _killed_once(start, at, takes_effect, lambda machine: snapshot(machine) == before)
            at += 1
            kills += killed
    return kills


def _killed_once(
    start: Callable[[], tuple[Lifecycle, FakeHost]],
    at: int,
    takes_effect: bool,
    is_back: Callable[[Any], bool],
) -> bool:
    """Whether the trial came so far."""
    recovery_at, came_so_far = 0, False
    while True:
        lifecycle, host = start()
        journal: list[str] = []
        came_so_far |= _dies(apply(lifecycle, host, journal), host, at, takes_effect)
        again = _dies(put_back(host, journal), host, recovery_at, takes_effect)
        host.fail_at = None
        asyncio.run(put_back(host, journal))
        assert is_back(host.answer), f"killed at {at}, in recovery at {recovery_at}, after: {takes_effect}"
        if not again:
            return came_so_far
        recovery_at += 1


def _dies(work: Any, host: FakeHost, at: int, takes_effect: bool) -> bool:
    host.touches, host.fail_at, host.failure, host.takes_effect = 0, at, Killed(), takes_effect
    try:
        asyncio.run(work)
    except Killed:
        return True
    return False
