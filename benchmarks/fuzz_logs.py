"""Damaged lines of real logs through read_log: any exception is a bug, and so is a result that cannot be.

    python benchmarks/fuzz_logs.py [--lines 100000] [--seed 0]

Starts from the logs in tests/golden, damages their bytes, numbers and line ends, and joins some dozens of
lines to a log. The logs of a seed are always the same.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
import unicodedata
from pathlib import Path

from breakeven.acceptance.logs.reader import read_log
from breakeven.acceptance.logs.summary import LogSummary

LOGS = Path(__file__).parents[1] / "tests" / "golden" / "logs"
SPLICES = (
    b"\r", b"\n", b"\0", b"\xff", b"\x1b[31m", b"\x1b]", b"9" * 30, b"nan", b"inf", b"-1", b"1e999", b"{",
    b'"}', b'{"log":"', b'{"MESSAGE":[83,112]}', b"\xe2\x80\xae", b"0.00", b"99999999.99", b": ", b", ", b"(",
    "٣".encode(), "²".encode(), b"Decode batch, ", b"SpecDecoding metrics: ",
    b"  eval time = 1 ms / 7 tokens",
    b"draft acceptance = 0.5 ( 5 accepted / 6 generated), mean len = 0.00", b'"numDraftTokens": 24',
    b"statistics ngram_mod: #calls = 4, #gen drafts = 2, #acc drafts = 2, #gen tokens = 8, #acc tokens = 6",
)  # fmt: skip
MOST_REPORTED = 3


def damaged(line: bytes, rng: random.Random) -> bytes:
    """The line with up to four places changed."""
    for _ in range(rng.randrange(5)):
        begin = rng.randrange(len(line) + 1)
        digits = bytes(rng.randrange(48, 58) for _ in range(rng.randrange(1, 20)))
        put = rng.choice((b"", digits, rng.randbytes(3), rng.choice(SPLICES), rng.choice(SPLICES)))
        line = line[:begin] + put + line[begin + rng.randrange(9) :]
    return line


def check(summary: LogSummary) -> None:
    """Raises AssertionError where the result cannot be, or is not safe to print."""
    for one in summary.stated:
        assert (one.value is None) == bool(one.why), one
    known = [one.value for one in summary.stated if one.value is not None]
    for interval in (*known, *summary.positions):
        assert interval.low <= interval.estimate <= interval.high, interval
    counters = summary.counters
    if counters is not None and counters.accepted_tokens is not None and counters.drafted_tokens is not None:
        assert 0 <= counters.accepted_tokens <= counters.drafted_tokens, counters
    for text in (*summary.facts, *(first for _, first in summary.events.values())):
        assert not any(unicodedata.category(one) in ("Cc", "Cs") for one in text), text


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    lines = [line for path in sorted(LOGS.glob("*.log")) for line in path.read_bytes().split(b"\n")]
    begin, done, bugs = time.perf_counter(), 0, 0
    while done < args.lines and bugs < MOST_REPORTED:
        some = [damaged(rng.choice(lines), rng) for _ in range(rng.randrange(1, 60))]
        log = rng.choice((b"\n", b"\r", b"\r\n")).join(some)
        cut = rng.randrange(len(log) + 1)
        done += len(some)
        try:
            check(read_log([log[:cut], log[cut:]]))
        except Exception:
            bugs += 1
            traceback.print_exc()
            print(repr(log))
    print(f"{done:,} lines, {bugs} bugs, {time.perf_counter() - begin:.0f} s")
    return 1 if bugs else 0


if __name__ == "__main__":
    sys.exit(main())
