"""What is learned is written now and then, and costs no step when it cannot be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import pytest

from breakeven.guard.state_file import EVERY_S, FIRST_S, StateFile


class Kept:
    """A StateFile whose content is the number of times that it was asked for."""

    def __init__(self, file: Path) -> None:
        self.now, self.asked = 0.0, 0
        self.said: list[str] = []
        self.file = file
        self.kept = StateFile(file, self.state, lambda: self.now, self.said.append)

    def state(self) -> bytes:
        self.asked += 1
        return str(self.asked).encode()

    def step(self, seconds: float) -> None:
        self.now += seconds
        self.kept.step()
        if self.kept._writer is not None:
            self.kept._writer.join()


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path / "folder" / "state.json")
    yield made
    made.kept.close()


def test_a_run_of_seconds_leaves_something(one: Kept) -> None:
    """However long the server was idle before its first step."""
    one.file.parent.mkdir()
    one.step(1e4)
    one.step(FIRST_S * 0.9)
    assert one.asked == 0
    one.step(FIRST_S * 0.2)
    assert one.file.read_bytes() == b"1"


def test_then_at_most_once_in_its_time(one: Kept) -> None:
    one.file.parent.mkdir()
    one.step(0)
    one.step(FIRST_S)
    for _ in range(10):
        one.step(EVERY_S / 4)
    assert one.asked == 3 and one.file.read_bytes() == b"3"


def test_at_the_end_it_is_written_whatever_the_time(one: Kept) -> None:
    one.file.parent.mkdir()
    one.kept.write()
    assert one.file.read_bytes() == b"1"


def test_a_failure_is_told_once_and_tried_again(one: Kept) -> None:
    for _ in range(4):
        one.step(EVERY_S)
    folder = one.file.parent
    assert one.said == [
        f"{one.file} cannot be written (its folder does not exist: type  mkdir -p {folder})",
    ]
    folder.mkdir()
    one.step(EVERY_S)
    assert one.file.read_bytes() == b"4"


def test_it_is_told_again_with_another_reason_and_after_a_success(one: Kept) -> None:
    one.step(0)
    one.step(EVERY_S)
    one.file.parent.touch()
    for _ in range(2):
        one.step(EVERY_S)
    assert len(one.said) == 2 and "Not a directory" in one.said[1]
    one.file.parent.unlink()
    one.file.parent.mkdir()
    one.step(EVERY_S)
    one.file.unlink()
    one.file.parent.rmdir()
    for _ in range(2):
        one.step(EVERY_S)
    assert len(one.said) == 3 and one.said[2] == one.said[0]


def test_the_folder_to_make_goes_into_a_shell(tmp_path: Path) -> None:
    """And is where a link leads, as that is what is missing."""
    (tmp_path / "link.json").symlink_to(tmp_path / "a b" / "state.json")
    one = Kept(tmp_path / "link.json")
    one.kept.write()
    one.kept.close()
    assert one.said[0].endswith(f"mkdir -p '{tmp_path / 'a b'}')")


def test_a_clock_that_is_set_back_does_not_stop_it(one: Kept) -> None:
    one.file.parent.mkdir()
    one.step(0)
    one.step(1e6)
    one.step(-1e6)
    assert one.file.read_bytes() == b"2"


def test_a_name_that_cannot_be_is_told_once(tmp_path: Path) -> None:
    one = Kept(tmp_path / "a\0b")
    for _ in range(3):
        one.step(EVERY_S)
    one.kept.close()
    assert len(one.said) == 1 and "null" in one.said[0]


def test_without_a_thread_to_spare_it_is_told_and_tried_again(
    one: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    one.file.parent.mkdir()
    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", none)
        one.step(0)
        one.step(EVERY_S)
    assert len(one.said) == 1 and "thread" in one.said[0]
    one.step(EVERY_S)
    assert one.file.read_bytes() == b"2"


def keep(file: Path) -> None:
    """What a process that ends at once does."""
    StateFile(file, lambda: b"learned", lambda: 0.0, print)


def test_it_is_written_at_the_end_of_a_child_that_was_forked(tmp_path: Path) -> None:
    """As vLLM's engine is where it has a GPU."""
    file = tmp_path / "state.json"
    child = get_context("fork").Process(target=keep, args=(file,))
    child.start()
    child.join(60)
    assert child.exitcode == 0 and file.read_bytes() == b"learned"
