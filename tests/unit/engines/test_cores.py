"""Cores are counted from files laid out as the kernel lays them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.engines import cores, llamacpp


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four cores with two hardware threads each, all of them allowed, no quota."""
    for cpu in range(8):
        folder = tmp_path / f"cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    monkeypatch.setattr(cores, "CPU_FOLDER", tmp_path)
    monkeypatch.setattr(cores, "CGROUP_FOLDER", tmp_path)
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    return tmp_path


def test_hardware_threads_of_one_core_count_once(machine: Path) -> None:
    assert cores.usable_cores() == 4
    assert llamacpp.default_threads() == 3


@pytest.mark.parametrize(
    ("limit", "expected"), [("max 100000", 4), ("250000 100000", 2), ("50000 100000", 1)]
)
def test_a_containers_quota_cuts_them(machine: Path, limit: str, expected: int) -> None:
    (machine / "cpu.max").write_text(limit + "\n")
    assert cores.usable_cores() == expected


@pytest.mark.parametrize(("quota", "expected"), [("-1", 4), ("300000", 3)])
def test_the_older_control_groups_quota_is_read_too(machine: Path, quota: str, expected: int) -> None:
    (machine / "cpu").mkdir()
    (machine / "cpu/cpu.cfs_quota_us").write_text(quota + "\n")
    (machine / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert cores.usable_cores() == expected


def test_without_the_kernels_word_each_cpu_is_a_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "CPU_FOLDER", tmp_path / "absent")
    monkeypatch.setattr(cores, "CGROUP_FOLDER", tmp_path / "absent")
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _pid: {0, 5}, raising=False)
    assert cores.usable_cores() == 2
    assert llamacpp.default_threads() == 1
