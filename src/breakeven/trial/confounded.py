"""What could explain a difference in speed beside the wanted one: what the logs of a service's starts tell,
and what each start was made of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress

from breakeven.engines.dialect import Dialect
from breakeven.servers.lifecycle import Lifecycle, MadeOf

QUIET_S = 1.0
"""A log that says nothing for so long has told all of the start."""
MOST_S = 15.0
MOST_LINES = 50_000
"""Of a server that has logged its requests for weeks; its start stands at the beginning."""
NAMES: Mapping[str, str] = {
    "version": "engine version",
    "model_runner": "model runner",
    "async_scheduling": "asynchronous scheduling",
    "cuda_graphs": "CUDA graphs",
    "attention_backend": "attention backend",
    "kv_cache_tokens": "tokens in the KV cache",
}
UNSAID = "not said"


async def log_facts(lifecycle: Lifecycle, dialect: Dialect) -> dict[str, str]:
    """What the log of the latest start tells (Dialect.facts); nothing where it cannot be read."""
    lines: list[str] = []
    with suppress(Exception):
        async with asyncio.timeout(MOST_S):
            await _read(lifecycle.logs(), lines)
    return dialect.facts(lines)


async def made_of(lifecycle: Lifecycle) -> dict[str, str | None]:
    """What the process that runs was started from (Lifecycle.made_of); nothing where that cannot be asked."""
    with suppress(Exception):
        async with asyncio.timeout(MOST_S):
            return dict(await lifecycle.made_of())
    return {}


async def _read(log: AsyncIterator[str], lines: list[str]) -> None:
    """Until it is quiet. A reader of its own keeps what waits for a line from being cancelled half way."""
    reader = asyncio.create_task(_follow(log, lines))
    try:
        read = -1
        while read < len(lines) < MOST_LINES and not reader.done():
            read = len(lines)
            await asyncio.wait({reader}, timeout=QUIET_S)
    finally:
        reader.cancel()
        await asyncio.wait({reader})
    if not reader.cancelled():
        reader.result()


async def _follow(log: AsyncIterator[str], lines: list[str]) -> None:
    async for line in log:
        lines.append(line)


def between_sides(baseline: Mapping[str, str], candidate: Mapping[str, str]) -> tuple[str, ...]:
    """Sentences, each with the values as `baseline → candidate`."""
    silent = [name for name, told in (("baseline", baseline), ("candidate", candidate)) if not told]
    if len(silent) == 1:
        return (f"the {silent[0]}'s log tells nothing of its start: what else differs is not known",)
    return _listed("the sides' logs differ in", baseline, candidate)


def between_starts(first: Mapping[str, str], again: Mapping[str, str]) -> tuple[str, ...]:
    """What is not as it was once the baseline is back, as `before → after`."""
    return _listed("the baseline came back with other", first, again) if first and again else ()


def made_otherwise(what: str, first: MadeOf, second: MadeOf) -> tuple[str, ...]:
    """Sentences about what two starts were not made of alike, and what is not known of one of them."""
    if not first or not second:
        return ()
    names = dict.fromkeys((*first, *second))
    unknown = [name for name in names if None in (first.get(name, UNSAID), second.get(name, UNSAID))]
    known = [{name: value for name, value in made.items() if name not in unknown} for made in (first, second)]
    return (
        *_listed(what, *known),
        *(f"whether {what} {name} is not known" for name in unknown),
    )


def _listed(what: str, first: MadeOf, second: MadeOf) -> tuple[str, ...]:
    return tuple(
        f"{what} {NAMES.get(name, name)}: {first.get(name, UNSAID)} → {second.get(name, UNSAID)}"
        for name in dict.fromkeys((*first, *second))
        if first.get(name) != second.get(name)
    )
