"""What a llama.cpp step takes by which slots decode in it: neighbours or not, one KV cache or one each.

    python benchmarks/llamacpp_slots.py [--repeats N]

Two servers of one model, one with --kv-unified, decode one long reply in each of the slots named, at once.
The time per token is the server's own (`timings.predicted_per_token_ms`). All cases are asked in turn. Prints
the medians and writes results/llamacpp_slots.json.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import orjson

from breakeven.client import loop
from breakeven.engines.llamacpp import baseline_settings
from breakeven.models.resolve import resolve
from breakeven.servers.embedded import EmbeddedServer
from breakeven.trace.provenance import collect_client

RESULT = Path(__file__).parent / "results" / "llamacpp_slots.json"
SLOTS = 8
CASES = ((0,), (0, 1), (0, 4), (0, 1, 2, 3), (0, 2, 4, 6))
REQUEST = {
    "prompt": "Write a long story about a fox and a river.",
    "n_predict": 64,
    "temperature": 0,
    "ignore_eos": True,
}
Times = dict[tuple[bool, tuple[int, ...]], list[float]]
"""ms per token, by whether the KV cache is unified and by slots."""


async def step_ms(client: httpx.AsyncClient, url: str, slots: tuple[int, ...]) -> float:
    """Mean over the slots, which decode at once."""
    asked = (client.post(f"{url}/completion", json={**REQUEST, "id_slot": slot}) for slot in slots)
    replies = [reply.raise_for_status().json() for reply in await asyncio.gather(*asked)]
    if sorted(reply["id_slot"] for reply in replies) != list(slots):
        raise SystemExit("the server took other slots than it was told")
    return fmean(reply["timings"]["predicted_per_token_ms"] for reply in replies)


async def measured(repeats: int, folder: Path) -> Times:
    times: Times = defaultdict(list)
    one = baseline_settings()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(httpx.AsyncClient(timeout=300, trust_env=False))
        urls = {}
        for unified in (False, True):
            settings = replace(one, parallel=SLOTS, ctx_size=one.ctx_size * SLOTS, kv_unified=unified)
            server = await stack.enter_async_context(EmbeddedServer())
            url = await server.start(resolve("smollm2"), settings, "m", folder / f"{unified}.log")
            urls[unified] = url.removesuffix("/v1")
        for _ in range(repeats):
            for slots in CASES:
                for unified, url in urls.items():
                    times[unified, slots].append(await step_ms(client, url, slots))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    with TemporaryDirectory() as folder:
        times = loop.run(measured(repeats, Path(folder)))
    rows: list[dict[str, Any]] = [
        {"slots": slots, **{name: median(times[unified, slots]) for name, unified in names.items()}}
        for slots in CASES
        for names in ({"apart_ms": False, "unified_ms": True},)
    ]
    print(f"{'slots':<14}{'one cache each':>16}{'--kv-unified':>16}   (ms a step, median of {repeats})")
    for row in rows:
        print(f"{row['slots']!s:<14}{row['apart_ms']:>16.1f}{row['unified_ms']:>16.1f}")
    about = {"xllamacpp": version("xllamacpp"), "client": asdict(collect_client("")), "repeats": repeats}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_bytes(
        orjson.dumps({**about, "rows": rows}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    )


if __name__ == "__main__":
    main()
