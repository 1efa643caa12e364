from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from breakeven.eagle.evaluate import journal
from breakeven.eagle.evaluate.drafted import Drafted
from breakeven.eagle.evaluate.replies import Reply
from breakeven.errors import RunFormatError
from breakeven.replay.sources import open_source

REPLY = Reply("a", "a", "chat", np.array([5, 6, 7, 8, 9], np.int32), 2)
DRAFTED = Drafted([1, 0], [2, 1], [1, 0], [2, 1], [1, 0], [0.9, 0.2], [0.8, 0.1], 2)


def written(path: Path, *names: str) -> None:
    with journal.opened(path) as lines:
        for name in names:
            lines.append(replace(REPLY, id=name), DRAFTED)


def test_lines_are_a_record_that_replay_reads(tmp_path: Path):
    path = tmp_path / journal.FILE
    written(path, "a")
    source = open_source(path)
    (request,) = source
    assert (request.id, request.category) == ("a", "chat")
    assert request.prompt.tolist() == [5, 6] and request.output.tolist() == [7, 8, 9]
    assert request.recorded[journal.COLUMN].tolist() == [-1, 1, 0]
    assert not source.acceptance_warnings and not source.skipped
    assert Drafted(**journal.lines(path)[0][journal.COUNTS]) == DRAFTED


def test_what_a_kill_left_of_a_line_is_cut_off(tmp_path: Path):
    path = tmp_path / journal.FILE
    written(path, "a", "b")
    whole = path.read_bytes()
    for cut in range(len(whole) // 2 + 1, len(whole)):
        path.write_bytes(whole[:cut])
        with journal.opened(path) as lines:
            assert lines.done == {"a"}
            lines.append(replace(REPLY, id="b"), DRAFTED)
        assert path.read_bytes() == whole


def test_a_damaged_line_is_named(tmp_path: Path):
    path = tmp_path / journal.FILE
    written(path, "a")
    path.write_bytes(b'{"id": "x"}\n' + path.read_bytes())
    with pytest.raises(RunFormatError, match="line 1 is damaged"), journal.opened(path):
        pass
