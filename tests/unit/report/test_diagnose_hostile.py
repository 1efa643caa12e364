"""Damaged logs and pages, from reading to printing: nothing raises, and nothing reaches the terminal raw."""

from __future__ import annotations

import random
from io import StringIO
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from breakeven.acceptance.logs.reader import read_log
from breakeven.acceptance.prometheus import read_page
from breakeven.diagnose.diagnose import diagnose
from breakeven.diagnose.gather import gather
from breakeven.diagnose.readings import Look, Readings
from breakeven.diagnose.told import told_by_log
from breakeven.report.diagnose_json import diagnose_json
from breakeven.report.diagnose_terminal import print_diagnosis

GOLDEN = Path(__file__).parents[2] / "golden"
LOGS = sorted((GOLDEN / "logs").glob("*.log"))
PAGES = sorted(GOLDEN.glob("*.metrics.txt"))
ROUNDS = 12
BAD = (
    *(b"\x1b[2J", b"\x1b]0;x\x07", b"\xff\xfe", b"\x00", b"\r", b"\xe2\x80\xae", b"nan", b"-1", b"9" * 400),
    *(
        b"1e308",
        b"{",
        b"'speculative_config': {'prompt_lookup_max': 'x', 'num_speculative_tokens': -1}",
        b"%",
        b": ",
    ),
    *(b"null", b"0", b"0.0", b"inf"),
)


def spoilt(data: bytes, seed: int) -> bytes:
    """With pieces replaced, dropped and doubled at random places."""
    rng = random.Random(seed)
    pieces = bytearray(data[:60_000])
    for _ in range(rng.randrange(1, 60)):
        at, length = rng.randrange(len(pieces)), rng.choice((0, 1, 3, 40))
        pieces[at : at + length] = rng.choice(BAD)
    return bytes(pieces)


def shown(read: Readings) -> None:
    made = diagnose(gather(read))
    orjson.dumps(diagnose_json(made), option=orjson.OPT_SERIALIZE_NUMPY)
    console = Console(file=StringIO(), width=60, highlight=False)
    print_diagnosis(made, console)
    file = console.file
    assert isinstance(file, StringIO)
    text = file.getvalue()
    assert not {"\x1b", "\x00", "\x07", "\u202e"} & set(text)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_spoilt_logs(path: Path):
    data = path.read_bytes()
    for seed in range(ROUNDS):
        log = read_log([spoilt(data, seed)])
        shown(Readings(told=told_by_log(log.facts), log=log, baseline_log=log))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_spoilt_pages(path: Path):
    data = path.read_bytes()
    for seed in range(ROUNDS):
        before, after = (
            read_page(spoilt(data, each).decode("utf-8", "replace")) for each in (seed, seed + 1000)
        )
        if before is not None and after is not None:
            shown(Readings(look=Look(before, after, 30.0)))
