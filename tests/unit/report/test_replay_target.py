import errno
import os
from pathlib import Path

import pytest

from breakeven.errors import StorageError, UsageError
from breakeven.report.replay_target import check_target, unwritten


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "ids.jsonl"
    path.write_text("{}")
    return path


def refused(target: Path, *inputs: Path) -> str:
    with pytest.raises(UsageError) as raised:
        check_target(target, inputs, "explain.html")
    message = str(raised.value)
    assert message.startswith(f"--html {target}: ") and message.endswith(": type --html explain.html")
    return message


def test_a_page_may_be_new_or_stand_there_or_be_a_device(tmp_path: Path, record: Path):
    old, link = tmp_path / "old.html", tmp_path / "link.html"
    old.write_text("old")
    link.symlink_to(tmp_path / "new.html")
    for target in (tmp_path / "new.html", old, link, Path("/dev/null")):
        check_target(target, [record], "explain.html")
    assert old.read_text() == "old" and sorted(path.name for path in tmp_path.iterdir()) == [
        "ids.jsonl",
        "link.html",
        "old.html",
    ]


def test_what_takes_no_page_is_named(tmp_path: Path, record: Path):
    assert "it is a folder" in refused(tmp_path, record)
    assert "it is a folder" in refused(Path(), record)
    assert f"there is no folder {tmp_path / 'none'}" in refused(tmp_path / "none" / "a.html", record)
    assert "not a directory" in refused(record / "a.html", record)
    assert "too long" in refused(tmp_path / ("a" * 300), record)
    dangling, loop, pipe = (tmp_path / name for name in ("dangling", "loop", "pipe"))
    dangling.symlink_to(tmp_path / "none" / "a.html")
    loop.symlink_to(loop)
    os.mkfifo(pipe)
    assert "there is no folder" in refused(dangling, record)
    assert "symbolic links" in refused(loop, record)
    assert "no regular file" in refused(pipe, record)


def test_a_folder_in_which_nothing_can_be_made(record: Path):
    if not Path("/proc/self").is_dir():
        pytest.skip("no /proc here")
    assert "cannot write in /proc" in refused(Path("/proc/a.html"), record)


def test_the_record_is_not_written_over(tmp_path: Path, record: Path):
    link, hard = tmp_path / "link.html", tmp_path / "hard.html"
    link.symlink_to(record)
    hard.hardlink_to(record)
    for target in (record, link, hard):
        assert f"it is {record} itself" in refused(target, tmp_path / "tokenizer.json", record)


def test_of_a_run_only_its_pages_are_written_over(tmp_path: Path):
    run = tmp_path / "run"
    run.mkdir()
    for name in ("requests.jsonl", "sweep.html"):
        (run / name).write_text("")
    check_target(run / "sweep.html", [run], "replay.html")
    check_target(run / "new.html", [run], "replay.html")
    assert f"it is a file of {run}" in refused(run / "requests.jsonl", run)


def test_the_page_to_type_is_the_verbs_own(tmp_path: Path):
    with pytest.raises(UsageError, match=r"type --html forecast\.html$"):
        check_target(tmp_path, [], "forecast.html")


def test_what_went_wrong_with_a_page_is_said_of_html():
    error = StorageError("cannot write to x: the disk is full: free some space, then go on with --resume")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    said = str(unwritten(Path("a.html"), error))
    assert said == "cannot write the page a.html: no space left on device: name another file with --html"


def test_another_option_is_named(record: Path):
    with pytest.raises(UsageError, match=rf"--out {record}: it is {record} itself: type --out routing.npz"):
        check_target(record, [record], "routing.npz", "--out")
