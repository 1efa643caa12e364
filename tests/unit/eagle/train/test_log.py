"""progress.jsonl holds each step once, also when a run went on after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.eagle.train.log import PROGRESS, opened, read_progress
from breakeven.eagle.train.records import Scores, Step, Validation
from breakeven.errors import StorageError


def step(number: int) -> Step:
    return Step(number, 0, 0.1 * number, (1.0,), (None,), 5, 1e-4, 2.0, 0.5)


def steps_of(folder: Path) -> list[int]:
    return [line["step"] for line in read_progress(folder)]


def test_lines_in_order(tmp_path: Path):
    with opened(tmp_path, 0) as log:
        log.validated(Validation(0, Scores(1.5, (1.0,), (0.25,), 5), 1.25))
        log.stepped(step(1))
    first, second = read_progress(tmp_path)
    assert first["validation"]["acceptance_length"] == 1.25 and first["validation"]["loss"] == 1.5
    assert second["loss"] == 0.1 and second["acceptance"] == [None]


def test_goes_on_after_the_steps_that_are_done(tmp_path: Path):
    with opened(tmp_path, 0) as log:
        for number in range(1, 6):
            log.stepped(step(number))
    with (tmp_path / PROGRESS).open("ab") as file:
        file.write(b'{"step":6,"lo')
    assert steps_of(tmp_path) == [1, 2, 3, 4, 5]
    with opened(tmp_path, 3) as log:
        assert steps_of(tmp_path) == [1, 2, 3]
        log.stepped(step(4))
    assert steps_of(tmp_path) == [1, 2, 3, 4]


@pytest.mark.parametrize("damage", [b"\0" * 40 + b"\n", b"[1]\n", b"{}\n", b"\xff\n"])
def test_what_a_machine_without_power_left_is_passed_over(tmp_path: Path, damage: bytes):
    with opened(tmp_path, 0) as log:
        for number in (1, 2):
            log.stepped(step(number))
    with (tmp_path / PROGRESS).open("ab") as file:
        file.write(damage)
    with opened(tmp_path, 2) as log:
        log.stepped(step(3))
    assert steps_of(tmp_path) == [1, 2, 3]
    assert damage not in (tmp_path / PROGRESS).read_bytes()


def test_begins_anew_without_a_checkpoint(tmp_path: Path):
    with opened(tmp_path, 0) as log:
        log.stepped(step(1))
    with opened(tmp_path, 0):
        pass
    assert read_progress(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk(tmp_path: Path):
    (tmp_path / PROGRESS).symlink_to("/dev/full")
    with pytest.raises(StorageError, match="disk is full"), opened(tmp_path, 0) as log:
        log.stepped(step(1))
