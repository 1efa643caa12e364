"""Peak memory of writing, finishing and summarising long runs: it must not grow with the run.

Run `python benchmarks/memory.py [--events 256]`: one JSON object per run length, each in its own process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from breakeven.latency import summarize
from breakeven.trace.journal import RunWriter
from breakeven.trace.meta import Schedule, ServerInfo, new_meta
from breakeven.trace.records import Event, Kind, RequestTrace
from breakeven.trace.run import load_run
from breakeven.workload.prompts import Prompt, Sampling, Workload

REQUESTS = (10_000, 50_000, 100_000)
STEP_NS = 20_000_000
PROMPT = Prompt("p", "prose", messages=({"role": "user", "content": "Say something."},))


def traces(requests: int, events: int) -> Iterator[RequestTrace]:
    for number in range(requests):
        start = number * STEP_NS
        times = range(start, start + events * STEP_NS, STEP_NS)
        yield RequestTrace(
            id=f"p#{number}",
            prompt_id="p",
            category="prose",
            repeat=number,
            block=0,
            max_tokens=events,
            scheduled_ns=None,
            connect_ns=None,
            sent_ns=start,
            end_ns=start + events * STEP_NS,
            events=tuple(
                Event(read_ns, number * events + i, Kind.CONTENT, None) for i, read_ns in enumerate(times)
            ),
            text="word " * events,
            reasoning="",
            tool_calls="",
            finish_reason="length",
            usage={"prompt_tokens": 8, "completion_tokens": events},
        )


def measure(requests: int, events: int) -> dict[str, float]:
    """Peak resident memory in MB after each phase, and how long the phases took in seconds."""
    figures: dict[str, float] = {"requests": requests, "events": events, "mb_at_start": _peak_mb()}
    with tempfile.TemporaryDirectory() as folder:
        meta = new_meta(
            kind="measure",
            url="http://127.0.0.1:1/v1",
            api="chat",
            model="m",
            server=ServerInfo(),
            schedule=Schedule("closed", concurrency=256),
            sampling=Sampling(),
            workload=Workload("one", (PROMPT,)),
            repeats=requests,
            warmup_requests=0,
            event_loop="asyncio",
        )
        lap = _Laps()
        writer = RunWriter.create(Path(folder) / "run", meta, (PROMPT,))
        for trace in traces(requests, events):
            writer.append(trace)
        figures |= {"append_s": lap(), "mb_after_append": _peak_mb()}
        writer.finish(meta)
        figures |= {"finish_s": lap(), "mb_after_finish": _peak_mb()}
        run = load_run(writer.path)
        summary = summarize(run.traces(), 1.0)
        assert summary.tpot is not None and summary.tpot.n == requests
        figures |= {"summary_s": lap(), "mb_after_summary": _peak_mb()}
        figures["parquet_mb"] = (writer.path / "requests.parquet").stat().st_size / 1e6
    return {name: round(value, 2) for name, value in figures.items()}


class _Laps:
    """Seconds since the last call."""

    def __init__(self) -> None:
        self._last_s = time.perf_counter()

    def __call__(self) -> float:
        before_s, self._last_s = self._last_s, time.perf_counter()
        return self._last_s - before_s


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description="Peak memory of runs of 10k, 50k and 100k requests.")
    parser.add_argument("--events", type=int, default=256, help="chunks per reply")
    parser.add_argument("--requests", type=int, help="one run of this length, in this process")
    options = parser.parse_args()
    if options.requests:
        print(json.dumps(measure(options.requests, options.events)), flush=True)
        return
    for requests in REQUESTS:
        arguments = [f"--events={options.events}", f"--requests={requests}"]
        subprocess.run([sys.executable, __file__, *arguments], check=True)


if __name__ == "__main__":
    main()
