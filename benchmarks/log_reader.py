"""Time and memory of reading 100 MB of an engine's log, on one core.

    python benchmarks/log_reader.py [--megabytes 100] [--seed 0] [--json]

Writes a log of each kind to a temporary folder, reads each in a process of its own, and prints seconds and
peak memory of that process. The kinds: vLLM under load (a web server's line per request, and every tenth
second its state and its speculation), SGLang with one request at a time (three lines of decode batches for
each prefill and request), llama.cpp (eight lines per request), and one without meaning whose every line
differs and holds a word that marks lines of interest.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from breakeven.acceptance.logs.reader import read_log

CHUNK = 1 << 20
POSTS = 200


def vllm(rng: random.Random) -> Iterator[str]:
    server = "(APIServer pid=1036) INFO"
    for second in itertools.count(0, 10):
        minute = f"{second // 86400 % 28 + 1:02} {second // 3600 % 24:02}:{second // 60 % 60:02}"
        for _ in range(POSTS):
            port = rng.randrange(32768, 61000)
            yield f'{server}:     127.0.0.1:{port} - "POST /v1/completions HTTP/1.1" 200 OK\n'
        drafts = rng.randrange(50, 2000)
        kept = [int(drafts * rng.uniform(0.7, 0.9) ** (position + 1)) for position in range(5)]
        kept.sort(reverse=True)
        accepted = sum(kept)
        yield (
            f"{server} 11-{minute}:{second % 60:02} [loggers.py:335] Engine 000: "
            "Avg prompt throughput: 116.7 tokens/s, Avg generation throughput: 170.5 tokens/s, "
            f"Running: {rng.randrange(64)} reqs, Waiting: 0 reqs, "
            "GPU KV cache usage: 40.4%, Prefix cache hit rate: 55.4%\n"
        )
        yield (
            f"{server} 11-{minute}:{second % 60:02} [metrics.py:120] SpecDecoding metrics: "
            f"Mean acceptance length: {1 + accepted / drafts:.2f}, Accepted throughput: 130.78 tokens/s, "
            "Drafted throughput: 133.32 tokens/s, "
            f"Accepted: {accepted} tokens, Drafted: {5 * drafts} tokens, "
            f"Per-position acceptance rate: {', '.join(f'{one / drafts:.3f}' for one in kept)}, "
            f"Avg Draft acceptance rate: {accepted / drafts * 20:.1f}%\n"
        )


def sglang(rng: random.Random) -> Iterator[str]:
    while True:
        at = f"[2026-11-29 11:{rng.randrange(60):02}:{rng.randrange(60):02} TP0]"
        yield (
            f"{at} Prefill batch, #new-seq: 1, #new-token: {rng.randrange(9999)}, #cached-token: 17, "
            "token usage: 0.02, #running-req: 0, #queue-req: 0, cuda graph: True, "
            f"input throughput (token/s): {rng.uniform(1, 9999):.2f}\n"
        )
        for _ in range(3):
            length = rng.uniform(1, 4)
            yield (
                f"{at} Decode batch, #running-req: 1, #token: {rng.randrange(99999)}, "
                f"token usage: {rng.random():.2f}, accept len: {length:.2f}, "
                f"accept rate: {(length - 1) / 3:.2f}, cuda graph: True, "
                f"gen throughput (token/s): {rng.uniform(1, 9999):.2f}, #queue-req: 0\n"
            )
        port = rng.randrange(32768, 61000)
        yield f'{at} INFO:     127.0.0.1:{port} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


def llamacpp(rng: random.Random) -> Iterator[str]:
    for task in itertools.count():
        drafts = rng.randrange(1, 40)
        drafted, accepted = 48 * drafts, rng.randrange(48 * drafts)
        output = accepted + drafts + 9
        line = f"{task // 60}.{task % 60:02}.728.164 I slot print_timing: id  0 | task {task} |"
        yield (
            f"{line} processing task, is_child = 0\n"
            f"{line} n_gen =    100, tg =   9.84 t/s, tg_3s =   9.94 t/s\n"
            f"{line} prompt eval time =    6036.01 ms /   185 tokens (   32.63 ms per token)\n"
            f"{line}        eval time =   12504.34 ms / {output:5} tokens (   98.46 ms per token)\n"
            f"{line}       total time =   18540.35 ms /   313 tokens\n"
            f"{line}    graphs reused =         64\n"
            f"{line} draft acceptance = {accepted / drafted:.5f} ({accepted:5} accepted / "
            f"{drafted:5} generated), mean len = {1 + accepted / drafts:5.2f}\n"
            f"{line} stop processing: n_tokens = 312, truncated = 0\n"
        )


def hostile(rng: random.Random) -> Iterator[str]:
    words = (
        "Capturing",
        "acceptance",
        "eval time = ",
        "\x1b[31m",
        "peculative",
        " backend",
        "{",
        "NaN",
        "\0\0",
        "ü",
    )
    while True:
        yield f"{rng.getrandbits(256):064x} {rng.choice(words)} {rng.getrandbits(256):064x}\n"


KINDS: dict[str, Callable[[random.Random], Iterator[str]]] = {
    "vllm": vllm,
    "sglang": sglang,
    "llama.cpp": llamacpp,
    "hostile": hostile,
}


def write(path: Path, kind: str, size: int, seed: int) -> None:
    """A log of that kind and about that size; some thousand lines come again and again."""
    lines = KINDS[kind](random.Random(seed))
    piece = b""
    while len(piece) < min(size, 4 * CHUNK):
        piece += b"".join(next(lines).encode() for _ in range(500))
    with path.open("wb") as file:
        for _ in range(size // len(piece) or 1):
            file.write(piece)


def measure(path: Path) -> dict[str, float]:
    """Reads the log in this process."""
    begin, cpu_begin = time.perf_counter(), time.process_time()
    with path.open("rb") as file:
        summary = read_log(iter(lambda: file.read(CHUNK), b""))
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "megabytes": path.stat().st_size / 1e6,
        "lines": summary.lines,
        "periods": summary.periods,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        "peak_mb": round(peak_mb, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read:
        print(json.dumps(measure(args.read)))
        return 0
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            path = Path(folder, f"{kind}.log")
            write(path, kind, args.megabytes * 10**6, args.seed)
            command = [sys.executable, __file__, "--read", str(path)]
            results[kind] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            path.unlink()
            if not args.json:
                print(
                    f"{kind:10}",
                    *(f"{value:12,} {name}" for name, value in results[kind].items()),
                    flush=True,
                )
    if args.json:
        print(
            json.dumps({"python": platform.python_version(), "machine": platform.machine(), "logs": results})
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
