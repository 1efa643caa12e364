"""How exact and how fast the client is, beside aiohttp and httpx in the same run.

    python benchmarks/client.py [--quick]

The fake server has one core and each client in turn the other. Prints a table and writes results/client.json.
Tokens per second are counted until the client is done with them all, and until its last read. Done means for
breakeven a trace with a record of each token; the peers keep three numbers of each request.
The truth is what the server was told to do (`schedule`) and what it did (`received`, `written`: its own
stamps, by the same clock, since perf_counter_ns is one clock for all processes of a machine). TTFT over
schedule holds three waits: `sent → received`, the client's way out and then the server's own queue, since
it takes up requests that start together one by one; the server's lateness; and `TTFT over written`, from its
write to the client's stamp.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from client_peers import CLIENTS, Row, body
from rich.console import Console
from rich.table import Table

from breakeven.client import loop
from breakeven.servers.fake.plan import plan
from breakeven.servers.fake.presets import vllm_script
from breakeven.servers.fake.reply import resolve
from breakeven.servers.fake.script import Script
from breakeven.servers.fake.server import FakeServer
from breakeven.servers.fake.timeline import timeline

BUSY = 0.9
"""Share of its core above which a side is taken for the bottleneck."""
OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY
RESULTS = Path(__file__).parent / "results" / "client.json"


@dataclass(frozen=True)
class Scene:
    """A load. tpot_ms of 0 is as fast as both sides can."""

    name: str
    streams: int
    requests: int
    tokens: int
    ttft_ms: float
    tpot_ms: float

    @property
    def offered_per_s(self) -> float | None:
        """Tokens per second if neither side loses any time."""
        wave_s = (self.ttft_ms + (self.tokens - 1) * self.tpot_ms) / 1e3
        return self.streams * self.tokens / wave_s if wave_s else None


SCENES = (
    Scene("256 streams × 20 ms", 256, 512, 150, 50, 20),
    Scene("60k tokens/s offered", 256, 256, 1000, 50, 256 / 60),
    Scene("no pace", 256, 256, 500, 0, 0),
)
QUICK = (
    Scene("256 streams × 20 ms", 256, 256, 100, 50, 20),
    Scene("60k tokens/s offered", 256, 256, 400, 50, 256 / 60),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="shorter, and without the unpaced scene")
    parser.add_argument("--clients", nargs="+", default=list(CLIENTS), choices=list(CLIENTS))
    parser.add_argument("--serve", metavar="SCENE", help=argparse.SUPPRESS)
    parser.add_argument("--ask", nargs=3, metavar=("CLIENT", "URL", "SCENE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(Scene(**orjson.loads(options.serve)))
    elif options.ask:
        client, url, scene = options.ask
        ask(client, url, Scene(**orjson.loads(scene)))
    else:
        compare(QUICK if options.quick else SCENES, options.clients)


def compare(scenes: tuple[Scene, ...], clients: list[str]) -> None:
    console = Console(width=160)
    report: list[dict[str, Any]] = []
    for scene in scenes:
        results = [measure(client, scene) for client in clients]
        console.print(table(scene, results))
        for result in results:
            console.print(bottleneck(result))
        report.append(
            {"scene": asdict(scene), "offered_tokens_per_s": scene.offered_per_s, "clients": results}
        )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_bytes(orjson.dumps({"machine": machine(), "scenes": report}, option=OPTIONS) + b"\n")


def measure(client: str, scene: Scene) -> dict[str, Any]:
    """One client against a fresh server, each on a core of its own if there are two."""
    cores = sorted(os.sched_getaffinity(0))
    text = orjson.dumps(asdict(scene)).decode()
    server = start(["--serve", text], cores[0])
    try:
        url = orjson.loads(server.stdout.readline())["url"]  # type: ignore[union-attr]
        asked, _ = start(["--ask", client, url, text], cores[-1]).communicate(timeout=120)
        server.send_signal(signal.SIGTERM)
        served, _ = server.communicate(timeout=30)
    finally:
        server.kill()
    return figures(client, scene, orjson.loads(asked), orjson.loads(served))


def start(arguments: list[str], core: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )


def serve(scene: Scene) -> None:
    """Prints the URL; after SIGTERM what was served: {user: [received, first written, last written]}."""

    async def until_terminated() -> None:
        over = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
        prepare(scene)
        async with FakeServer(script_of(scene)) as server:
            sys.stdout.write(orjson.dumps({"url": server.url}).decode() + "\n")
            sys.stdout.flush()
            ready_s = time.process_time()
            await over.wait()
            cpu_s = time.process_time() - ready_s
            truth = {
                served.body["user"]: [served.received_ns, served.written_ns[0], served.written_ns[-1]]
                for served in server.log
            }
        answer = {"cpu_s": cpu_s, "truth": truth}
        sys.stdout.write(orjson.dumps(answer).decode())

    loop.run(until_terminated())


def prepare(scene: Scene) -> None:
    """Renders the one reply beforehand, so that the first request does not wait for it."""
    script = script_of(scene)
    reply = resolve(script, orjson.loads(body(0, scene.tokens)), chat=True, index=0, model="fake-model")
    plan(reply, timeline(script, reply.n_tokens, reply.key, 0, 0.0, None), streamed=True)


def script_of(scene: Scene) -> Script:
    return vllm_script(ttft_s=scene.ttft_ms / 1e3, tpot_s=scene.tpot_ms / 1e3, n_tokens=scene.tokens)


def ask(client: str, url: str, scene: Scene) -> None:
    async def timed() -> dict[str, Any]:
        cpu_s, start_ns = time.process_time(), time.perf_counter_ns()
        rows = await CLIENTS[client](url, scene.streams, scene.requests, scene.tokens)
        end_ns = time.perf_counter_ns()
        return {
            "rows": rows,
            "cpu_s": time.process_time() - cpu_s,
            "wall_s": (end_ns - start_ns) / 1e9,
            "end_ns": end_ns,
            "loop": loop.running_loop_name(),
        }

    sys.stdout.write(orjson.dumps(loop.run(timed())).decode())


def figures(client: str, scene: Scene, asked: dict[str, Any], served: dict[str, Any]) -> dict[str, Any]:
    rows: list[Row] = asked["rows"]
    numbers, sent, first, last, tokens = (
        np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)
    )
    truth = np.array([served["truth"][str(number)] for number in numbers], dtype=np.int64)
    tpot_ms = (last - first) / 1e6 / (tokens - 1)
    written_ms = (truth[:, 2] - truth[:, 1]) / 1e6 / (tokens - 1)
    ttft_ms = (first - sent) / 1e6
    total = int(tokens.sum())
    return {
        "client": client,
        "event_loop": asked["loop"],
        "tokens": total,
        "complete": bool((tokens == scene.tokens).all()),
        "ttft_over_schedule_ms": spread(ttft_ms - scene.ttft_ms) if scene.tpot_ms else None,
        "sent_to_received_ms": spread((truth[:, 0] - sent) / 1e6),
        "ttft_over_written_ms": spread((first - truth[:, 1]) / 1e6),
        "tpot_error_to_schedule": relative(tpot_ms, np.full_like(tpot_ms, scene.tpot_ms))
        if scene.tpot_ms
        else None,
        "tpot_error_to_written": relative(tpot_ms, written_ms),
        "tokens_per_s": total / ((asked["end_ns"] - sent.min()) / 1e9),
        "tokens_per_s_to_last_read": total / ((last.max() - sent.min()) / 1e9),
        "client_cpu_us_per_token": asked["cpu_s"] * 1e6 / total,
        "server_cpu_us_per_token": served["cpu_s"] * 1e6 / total,
        "client_busy": asked["cpu_s"] / asked["wall_s"],
        "server_busy": served["cpu_s"] / asked["wall_s"],
        "server_ceiling_tokens_per_s": total / served["cpu_s"],
        "server_wrote_tokens_per_s": total / ((truth[:, 2].max() - truth[:, 0].min()) / 1e9),
    }


def spread(values: np.ndarray[Any, Any]) -> dict[str, float]:
    p50, p99 = np.percentile(values, [50, 99])
    return {"mean": float(values.mean()), "p50": float(p50), "p99": float(p99)}


def relative(measured: np.ndarray[Any, Any], true: np.ndarray[Any, Any]) -> dict[str, float]:
    """Errors as shares: of the mean over requests, and of single requests (p99 of the absolute error)."""
    errors = np.abs(measured / true - 1)
    return {
        "mean": float(measured.mean() / true.mean() - 1),
        "p99_absolute": float(np.percentile(errors, 99)),
    }


COLUMNS = (
    "client",
    "TTFT over schedule, ms\nmean / p50 / p99",
    "sent → received, ms\nmean / p50 / p99",
    "TTFT over written, ms\nmean / p50 / p99",
    "TPOT error\nschedule",
    "TPOT error\nwritten",
    "tokens/s\nto the end / last read",
    "CPU µs\na token",
    "server CPU µs\na token",
)


def table(scene: Scene, results: list[dict[str, Any]]) -> Table:
    offered = f", {scene.offered_per_s:,.0f} tokens/s offered" if scene.offered_per_s else ""
    shown = Table(*COLUMNS, title=f"{scene.name}{offered}")
    for r in results:
        shown.add_row(
            r["client"],
            *(
                three(r[key])
                for key in ("ttft_over_schedule_ms", "sent_to_received_ms", "ttft_over_written_ms")
            ),
            *(percent(r[key]) for key in ("tpot_error_to_schedule", "tpot_error_to_written")),
            f"{r['tokens_per_s']:,.0f} / {r['tokens_per_s_to_last_read']:,.0f}"
            f"{'' if r['complete'] else ' (incomplete)'}",
            f"{r['client_cpu_us_per_token']:.1f}",
            f"{r['server_cpu_us_per_token']:.1f}",
        )
    return shown


def bottleneck(result: dict[str, Any]) -> str:
    """Which side had no time to spare, as a sentence."""
    client, server = result["client_busy"], result["server_busy"]
    shares = f"{result['client']}: client busy {client:.0%}, server busy {server:.0%} of a core"
    if server > BUSY and server > client:
        return f"{shares}; the server is the limit: {result['server_ceiling_tokens_per_s']:,.0f} tokens/s"
    return f"{shares}; the client is the limit" if client > BUSY else shares


def three(value: dict[str, float] | None) -> str:
    return "–" if value is None else f"{value['mean']:.1f} / {value['p50']:.1f} / {value['p99']:.1f}"


def percent(value: dict[str, float] | None) -> str:
    return "–" if value is None else f"{value['mean'] * 100:+.2f} %"


def machine() -> dict[str, Any]:
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg(),
    }


if __name__ == "__main__":
    main()
