"""A file that turns the guard off."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.guard.kill_switch import CHECK_S, KillSwitch


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_without_a_file_it_is_never_thrown() -> None:
    assert not KillSwitch(None, Clock()).thrown()


def test_it_follows_the_file_within_its_time(tmp_path: Path) -> None:
    file, clock = tmp_path / "kill", Clock()
    switch = KillSwitch(file, clock)
    assert not switch.thrown()
    file.touch()
    assert not switch.thrown(), "it looked just now"
    clock.now += CHECK_S
    assert switch.thrown()
    file.unlink()
    assert switch.thrown()
    clock.now += CHECK_S
    assert not switch.thrown()


def test_it_looks_no_oftener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    monkeypatch.setattr(Path, "exists", lambda self: bool(looks.append(self)))
    clock = Clock()
    switch = KillSwitch(tmp_path / "kill", clock)
    for _ in range(100):
        switch.thrown()
        clock.now += CHECK_S / 10
    assert len(looks) in (10, 11)


def test_a_place_that_cannot_be_looked_at_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def exists(_: Path) -> bool:
        raise PermissionError

    monkeypatch.setattr(Path, "exists", exists)
    assert not KillSwitch(Path("kill"), Clock()).thrown()


def test_a_clock_that_is_set_back_is_no_excuse(tmp_path: Path) -> None:
    file, clock = tmp_path / "kill", Clock()
    switch = KillSwitch(file, clock)
    clock.now = 1e6
    assert not switch.thrown()
    file.touch()
    clock.now = 0.0
    assert switch.thrown()


def test_a_name_that_cannot_be_is_no_file() -> None:
    assert not KillSwitch(Path("a\0b"), Clock()).thrown()
