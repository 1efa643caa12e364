"""How often two equal sides are called different, and how many repeats a true difference needs.

    python benchmarks/aa.py [--trials 200] [--embedded 5]

Each trial is a whole one, through the conductor and the client, against two fake servers in processes of
their own. Their step times have jitter, a factor per request and stalls, and both feel one machine that
drifts and wanders. With --embedded the sides are two llama.cpp engines with the same settings. Prints a
table and writes results/aa.json (results/aa-embedded.json).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from breakeven.client import loop
from breakeven.client.endpoint import Endpoint
from breakeven.engines.llamacpp import baseline_settings
from breakeven.models.resolve import resolve
from breakeven.servers.embedded import EmbeddedServer
from breakeven.trial.conductor import LiveSide, conduct
from breakeven.trial.plan import SIDES, TrialPlan
from breakeven.workload.builtin import load_set
from breakeven.workload.prompts import Sampling

RESULTS = Path(__file__).parent / "results"
TPOT_MS = 3.0
TOKENS = 24
NOISE = {
    "--jitter": 0.05,
    "--request-jitter": 0.02,
    "--drift": 0.02,
    "--drift-per-s": 0.0002,
    "--stall-prob": 0.001,
    "--stall-ms": 30,
}
"""Each decode step ±5 %, each request ±2 %, a wandering machine of 2 % that slows by 1.2 % a minute, and a
stall of ten steps in one request of forty."""
POWER_TRIALS = 20
AT_ONCE = 10
"""Trials that run side by side: they wait most of their time, …"""
POWER_AT_ONCE = 2
"""… but disturb each other's client, which leaves repeats out: that costs power."""


@dataclass(frozen=True)
class Outcome:
    """How one trial ended."""

    verdict: str
    repeats: int
    estimate: float | None


@asynccontextmanager
async def fake_server(tpot_ms: float, noise_seed: int, drift_seed: int) -> AsyncIterator[str]:
    """The URL of a fake server in a process of its own."""
    flags: dict[str, float] = {**NOISE, "--tpot-ms": tpot_ms, "--ttft-ms": 5, "--tokens": TOKENS}
    words = [word for name, value in flags.items() for word in (name, str(value))]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "breakeven.servers.fake", "--exit-with-stdin"),
        *("--noise-seed", str(noise_seed), "--drift-seed", str(drift_seed), *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None and process.stdin is not None
    try:
        yield orjson.loads(await process.stdout.readline())["url"]
    finally:
        process.stdin.close()
        await process.wait()


async def trial(sides: dict[str, LiveSide], plan: TrialPlan) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        result = await conduct(plan, sides, Path(folder) / "trial", lambda note: None)
    speedup = result.comparison.speedup
    return Outcome(result.verdict.outcome, result.stopped_after, speedup.estimate if speedup else None)


async def fake_trials(effect: float, trials: int, seed: int, at_once: int) -> list[Outcome]:
    """Trials whose candidate is truly `effect` faster, `at_once` at a time, each on a pair that lives on."""
    plan = TrialPlan(load_set("default"), Sampling(max_tokens=TOKENS))

    async def worker(number: int) -> list[Outcome]:
        async with AsyncExitStack() as stack:
            urls = [
                await stack.enter_async_context(fake_server(tpot_ms, seed + 2 * number + side, seed + number))
                for side, tpot_ms in enumerate((TPOT_MS, TPOT_MS / (1 + effect)))
            ]
            sides = {name: LiveSide(url, Endpoint(url)) for name, url in zip(SIDES, urls, strict=True)}
            return [await trial(sides, plan) for _ in range(number, trials, at_once)]

    return [outcome for done in await asyncio.gather(*map(worker, range(at_once))) for outcome in done]


async def embedded_trials(trials: int) -> list[Outcome]:
    """A/A on two engines with the same settings."""
    model, settings = resolve("smollm2"), baseline_settings()
    plan = TrialPlan(load_set("brief"), Sampling(max_tokens=48))
    async with AsyncExitStack() as stack:
        sides = {}
        for name in SIDES:
            server = await stack.enter_async_context(EmbeddedServer())
            log = Path(tempfile.gettempdir()) / f"breakeven-aa-{name}.log"
            url = await server.start(model, settings, "smollm2", log)
            sides[name] = LiveSide(settings.describe(), Endpoint(url, model="smollm2"), server.reload_s)
        return [await trial(sides, plan) for _ in range(trials)]


def row(name: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    counts = Counter(outcome.verdict for outcome in outcomes)
    decided = [o.repeats for o in outcomes if o.verdict in ("faster", "slower", "same")]
    return {
        "true difference": name,
        "trials": len(outcomes),
        **{verdict: counts[verdict] for verdict in ("faster", "slower", "same", "undecided", "refused")},
        "median repeats": median(decided) if decided else None,
        "p90 repeats": sorted(decided)[int(0.9 * (len(decided) - 1))] if decided else None,
        "estimates": [outcome.estimate for outcome in outcomes],
    }


def show(rows: Sequence[dict[str, Any]], title: str) -> None:
    table = Table(title=title)
    names = [name for name in rows[0] if name != "estimates"]
    for name in names:
        table.add_column(name, justify="right")
    for values in rows:
        table.add_row(*("–" if values[name] is None else str(values[name]) for name in names))
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=200, help="A/A trials; 0 keeps the last ones")
    parser.add_argument("--embedded", type=int, default=0, help="A/A trials between embedded engines instead")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    if options.embedded:
        file, title = RESULTS / "aa-embedded.json", "A/A between embedded engines"
        save(file, title, [row("none", loop.run(embedded_trials(options.embedded)))])
        return
    file, title = RESULTS / "aa.json", "Trials against fake servers with noise, drift and stalls"
    if options.trials:
        rows = [row("none", loop.run(fake_trials(0.0, options.trials, 100, AT_ONCE)))]
    else:
        rows = orjson.loads(file.read_bytes())["rows"][:1]
    for seed, effect in ((1000, 0.05), (2000, 0.10)):
        save(file, title, rows)
        rows.append(row(f"{effect:.0%}", loop.run(fake_trials(effect, POWER_TRIALS, seed, POWER_AT_ONCE))))
    save(file, title, rows)


def save(file: Path, title: str, rows: Sequence[dict[str, Any]]) -> None:
    show(rows, title)
    file.write_bytes(orjson.dumps({"noise": NOISE, "rows": rows}, option=orjson.OPT_INDENT_2))


if __name__ == "__main__":
    main()
