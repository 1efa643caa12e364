"""Peak memory of replaying a parquet file of 10 M tokens, on one core, on all, and on two workers of Ray.

    python benchmarks/replay_memory.py [--tokens N]

The file holds requests of 512 + 512 tokens of 4,096 kinds, drawn so that passages come again: numbers alone,
as only their volume matters here. Each way is a process of its own; on Ray it sends its batches to a cluster
of two workers, which listens on 127.0.0.1 only, and the larger worker's memory is sampled too. The totals
must be the same. Writes benchmarks/results/replay_memory.json.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RESULT = Path(__file__).parent / "results" / "replay_memory.json"
HALF = 512
KINDS = 4096
PASSAGE = 32
ROWS_AT_ONCE = 256
WORKERS = 2
SAMPLE_S = 0.1
TOTALS = ("requests", "output_tokens", "steps", "drafts", "drafted_tokens", "accepted_tokens")
SETTINGS = ["--drafter", "vllm-ngram", "--k", "5", "--min-n", "2", "--max-n", "4"]


def write_corpus(path: Path, tokens: int) -> int:
    """Write the file; returns how many requests it holds."""
    rng = np.random.default_rng(0)
    passages = rng.integers(0, KINDS, (64, PASSAGE), dtype=np.int32)
    requests = tokens // (2 * HALF)
    schema = pa.schema({name: pa.list_(pa.int32()) for name in ("prompt_token_ids", "output_token_ids")})
    with pq.ParquetWriter(path, schema) as writer:
        for begin in range(0, requests, ROWS_AT_ONCE):
            rows = min(ROWS_AT_ONCE, requests - begin)
            picked = passages[rng.integers(0, len(passages), (rows, 2 * HALF // PASSAGE))]
            ids = picked.reshape(rows, 2, HALF)
            columns = [pa.array(list(ids[:, half]), pa.list_(pa.int32())) for half in (0, 1)]
            writer.write_table(pa.table(columns, schema=schema))
    return requests


@contextmanager
def cluster() -> Iterator[str]:
    """The address of a Ray cluster that this process has started."""
    import ray

    context = ray.init(
        num_cpus=WORKERS,
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
        _node_ip_address="127.0.0.1",
    )
    try:
        yield context.address_info["gcs_address"]
    finally:
        ray.shutdown()


@contextmanager
def worker_peak() -> Iterator[list[float]]:
    """Sample the memory of our cluster's workers; one number is in the list, the largest so far, in MB."""
    peak, done = [0.0], Event()

    def sample() -> None:
        while not done.wait(SAMPLE_S):
            peak[0] = max(peak[0], *workers_mb(), 0.0)

    thread = Thread(target=sample)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def workers_mb() -> list[float]:
    """Resident memory of each worker of our cluster: a grandchild of this process that calls itself ray::…"""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,rss=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 3) for line in listed.stdout.splitlines()]
    ours = {pid for pid, parent, *_ in rows if parent == str(os.getpid())}
    return [int(row[2]) / 1e3 for row in rows if row[1] in ours and row[3:] and row[3].startswith("ray::")]


def replay(path: Path, way: list[str]) -> dict[str, Any]:
    """The totals of one way, the peak memory of its process, and its time."""
    command = [sys.executable, "-m", "breakeven", "replay", str(path), *SETTINGS, *way, "--json"]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    found = json.loads(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, "the replay failed"
    peak_mb = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    totals = {name: found[name] for name in TOTALS}
    return {"peak_mb": round(peak_mb, 1), "seconds": round(time.monotonic() - began, 2), **totals}


def replay_on_ray(path: Path) -> dict[str, Any]:
    """As `replay`, and the peak of the larger worker."""
    with cluster() as address, worker_peak() as peak:
        row = replay(path, ["--ray", address])
    return {"peak_worker_mb": round(peak[0], 1), **row}


WAYS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "1 core": lambda path: replay(path, ["--jobs", "1"]),
    "all cores": lambda path: replay(path, []),
    f"Ray, {WORKERS} workers": replay_on_ray,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Peak memory of a replay of 10 M tokens.")
    parser.add_argument("--tokens", type=int, default=10_240_000)
    tokens = parser.parse_args().tokens
    results: dict[str, Any] = {"machine": platform.machine(), "cores": os.cpu_count(), "tokens": tokens}
    with tempfile.TemporaryDirectory() as folder:
        for size in (tokens // 10, tokens):
            path = Path(folder) / f"{size}.parquet"
            write_corpus(path, size)
            results[f"{size} tokens"] = rows = {}
            for name, way in WAYS.items():
                rows[name] = way(path)
                print(f"{size:,} tokens, {name}: {json.dumps(rows[name])}", flush=True)
                RESULT.write_text(json.dumps(results, indent=2) + "\n")
            assert len({tuple(row[name] for name in TOTALS) for row in rows.values()}) == 1, "totals differ"


if __name__ == "__main__":
    main()
