"""Damaged /metrics pages through read_page and what compares two of them: any exception is a bug, and so is a
result that cannot be.

    python benchmarks/fuzz_pages.py [--pages 100000] [--seed 0]

Starts from the pages in tests/golden without their histograms, and damages bytes, numbers and lines. The
pages of a seed are always the same.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from pathlib import Path

from breakeven.acceptance import load, prometheus
from breakeven.acceptance.counters import COUNTS, SpecCounters
from breakeven.acceptance.meter import Asked, Meter
from breakeven.acceptance.page import Page
from breakeven.acceptance.stated import stated

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
SPLICES = (
    "\r", "\n", "\0", "\ud800", "{", "}", '"', "\\", '\\"', "=", ",", " ", "#", "NaN", "+Inf", "-1", "1e400",
    "-0", "1_000", "9" * 400, "_total", "_created", "_bucket", "_sum", 'position="', 'dp_rank="3"', "٣", "[",
    "[{", "null", "vllm:", "sglang:", "llamacpp:", "tgi_", "trtllm_", "process_start_time_seconds 1\n",
)  # fmt: skip
MOST_REPORTED = 3


def damaged(lines: list[str], rng: random.Random) -> str:
    """Some lines left out, doubled or cut, and up to eight places changed."""
    lines = [line for line in lines for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 1, 2)))]
    for _ in range(rng.randrange(8) if lines else 0):
        at = rng.randrange(len(lines))
        begin = rng.randrange(len(lines[at]) + 1)
        digits = "".join(rng.choices("0123456789.", k=rng.randrange(1, 18)))
        put = rng.choice((digits, rng.choice(SPLICES), rng.choice(SPLICES), rng.choice(lines)))
        lines[at] = lines[at][:begin] + put + lines[at][begin + rng.randrange(9) :]
    return rng.choice(("\n", "\n", "\r\n")).join(lines)


def check(page: Page, other: Page) -> None:
    """Raises AssertionError where what is read of a page, or of two, cannot be."""
    for one in (*page.reported, *(stated(page.spec) if page.spec else ())):
        assert (one.value is None) == bool(one.why), one
    assert 0 <= page.silent_ranks <= page.ranks, page
    assert page.load.kv_usage is None or 0 <= page.load.kv_usage <= 1, page
    for before, after in ((page, other), (other, page), (page, page)):
        reset, counted = prometheus.is_reset(before, after), prometheus.between(before, after)
        assert counted is None or not reset
        _possible(counted)
        change = load.between(before.load, after.load)
        assert all(getattr(change, name) is None or getattr(change, name) >= 0 for name in load.COUNTS), (
            change
        )
        for why in Meter().add(before, after, Asked(3, 90, 40)).warnings:
            assert why.isprintable(), why
    assert not prometheus.is_reset(page, page), page


def _possible(counters: SpecCounters | None) -> None:
    if counters is None:
        return
    counts = [getattr(counters, name) for name in COUNTS] + list(counters.accepted_per_position or ())
    assert all(count is None or count >= 0 for count in counts), counters
    if counters.accepted_tokens is not None and counters.drafted_tokens is not None:
        assert counters.accepted_tokens <= counters.drafted_tokens, counters
    if counters.steps is not None and counters.drafts is not None:
        assert counters.drafts <= counters.steps, counters


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    texts = [path.read_text() for path in sorted(GOLDEN.glob("*.metrics.txt"))]
    texts.append((GOLDEN / "trtllm-iterations.json").read_text())
    lines = [[line for line in text.split("\n") if "_bucket{" not in line] for text in texts]
    whole = [page for page in map(prometheus.read_page, texts) if page is not None]
    begin, read, bugs = time.perf_counter(), 0, 0
    for _ in range(args.pages):
        text = damaged(rng.choice(lines), rng)
        try:
            page = prometheus.read_page(text)
            if page is not None:
                read += 1
                check(page, rng.choice(whole))
        except Exception:
            bugs += 1
            traceback.print_exc()
            print(repr(text))
            if bugs == MOST_REPORTED:
                break
    print(f"{args.pages:,} pages, {read:,} read, {bugs} bugs, {time.perf_counter() - begin:.0f} s")
    return 1 if bugs else 0


if __name__ == "__main__":
    sys.exit(main())
