import io
import unicodedata
from pathlib import Path

import pytest
from rich.console import Console

from breakeven.latency import summarize
from breakeven.report.terminal import print_run
from breakeven.trace.run import Run
from breakeven.units import milliseconds, rate
from tests.unit.report.builders import HOSTILE, run_on_disk, trace, traces
from tests.unit.report.test_runs import failed, self_check, truncated


def shown(run: Run, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_run(run, summarize(run.traces(), run.meta.elapsed_s), console)
    return console.file.getvalue()


def test_a_run(tmp_path: Path):
    run = run_on_disk(tmp_path / "run", traces(2)[0], self_check())
    summary = summarize(run.traces(), run.meta.elapsed_s)
    text = shown(run)
    tpot = next(row for row in text.splitlines() if row.startswith("TPOT"))
    assert tpot.split()[1:] == [
        *(milliseconds(value) for value in (summary.tpot.mean, summary.tpot.p50, summary.tpot.p90)),
        "–",
        "16",
    ]
    assert "p99: 16 values" in text
    assert f"Decode speed: {rate(summary.decode_tokens_per_s)} tok/s" in text
    assert "output 1,536" in text
    assert "structured" in text
    assert "Self-check: passed (event loop lag p99 0.4 ms)" in text


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_is_wider_than_the_terminal(tmp_path: Path, width: int):
    run = run_on_disk(tmp_path / "run", [*traces(1)[0], failed(), truncated()], self_check())
    lines = shown(run, width).splitlines()
    assert max(len(row) for row in lines if str(tmp_path) not in row) <= width


def test_no_number_is_cut(tmp_path: Path):
    run = run_on_disk(tmp_path / "run", traces(2)[0], self_check())
    e2e = summarize(run.traces(), run.meta.elapsed_s).e2e
    narrow = " ".join(shown(run, 30).split())
    assert f"end to end (ms): mean {milliseconds(e2e.mean)}, p50 {milliseconds(e2e.p50)}" in narrow


def test_a_void_run_says_why(tmp_path: Path):
    run = run_on_disk(tmp_path / "run", [trace("p", "c", 0.02)], self_check(False, ("it fell behind",)))
    text = shown(run)
    assert "Self-check: FAILED" in text and "void" in text and "! it fell behind" in text


def test_errors_and_truncation_are_named(tmp_path: Path):
    text = shown(run_on_disk(tmp_path / "run", [failed(), truncated()], None))
    assert "2 requests, 1 error" in text
    assert "1 of 2 requests failed with HttpError, the first of them because: " in text
    assert "ended inside reasoning, at max_tokens" in text
    assert "TTFT to content: " in text
    assert "Self-check: none" in text


def test_hostile_strings_are_harmless(tmp_path: Path):
    some = [trace(HOSTILE, HOSTILE, 0.02), trace("b", "[red]b[/red]", 0.02)]
    said = HOSTILE.replace("\ud800", "")
    text = shown(run_on_disk(tmp_path / "run", some, self_check(False, (said,)), model=said))
    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cs") and c != "\n"]
    assert "[red]b[/red]" in text
