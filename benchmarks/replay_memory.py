"""Peak memory of replaying a parquet file of 10 M tokens, on one core, on all, and on two workers of Ray.

    python benchmarks/replay_memory.py [--tokens N]

The file holds requests of 512 + 512 tokens of 4,096 kinds, drawn so that passages come again: numbers alone,
as only their volume matters here. Each way is a process of its own; its peak is that of its largest process,
and the totals must be the same. Writes benchmarks/results/replay_memory.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RESULT = Path(__file__).parent / "results" / "replay_memory.json"
HALF = 512
KINDS = 4096
PASSAGE = 32
ROWS_AT_ONCE = 256
WAYS = {"1 core": ["--jobs", "1"], "all cores": [], "Ray, local": ["--ray", "local"]}
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


def replay(path: Path, way: list[str]) -> dict[str, Any]:
    """The totals of one way, its peak memory and its time."""
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
                rows[name] = replay(path, way)
                print(f"{size:,} tokens, {name}: {json.dumps(rows[name])}", flush=True)
                RESULT.write_text(json.dumps(results, indent=2) + "\n")
            assert len({tuple(row[name] for name in TOTALS) for row in rows.values()}) == 1, "totals differ"


if __name__ == "__main__":
    main()
