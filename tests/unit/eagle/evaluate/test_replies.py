from pathlib import Path

import numpy as np
import pytest

from breakeven.eagle.data.samples import Sample, write_samples
from breakeven.eagle.evaluate.replies import held_out
from breakeven.errors import UsageError


def sample(name: str, mask: str, split: str = "held_out", category: str = "chat") -> Sample:
    """`mask` has a letter for each token, `y` for what the target wrote."""
    learned = np.array([letter == "y" for letter in mask])
    ids = np.arange(len(mask), dtype=np.int32)
    return Sample(name, category, split, mask.index("y") if "y" in mask else len(mask), ids, learned)


def replies(tmp_path: Path, *samples: Sample, most: int = 9, max_tokens: int = 99):
    path = tmp_path / "samples.parquet"
    write_samples(path, samples)
    return held_out(path, most, max_tokens)


def test_only_held_out_samples_in_the_datas_order(tmp_path: Path):
    found = replies(tmp_path, sample("a", "..yyy"), sample("b", "..yyy", "train"), sample("c", ".yy"))
    assert [one.id for one in found] == ["a", "c"]
    assert found[0].prompt.tolist() == [0, 1] and found[0].output.tolist() == [2, 3, 4]


def test_every_turn_is_a_reply_with_all_that_came_before(tmp_path: Path):
    (first, second) = replies(tmp_path, sample("a", "..yyy..yy."))
    assert (first.id, first.start, len(first.ids)) == ("a", 2, 5)
    assert (second.id, second.start, len(second.ids)) == ("a/1", 7, 9)
    assert first.sample == second.sample == "a"


def test_long_replies_are_cut_and_further_prompts_left_out(tmp_path: Path):
    found = replies(tmp_path, *(sample(name, ".yyyyyyyy") for name in "abc"), most=2, max_tokens=3)
    assert [(one.id, one.output.tolist()) for one in found] == [("a", [1, 2, 3]), ("b", [1, 2, 3])]


def test_a_reply_in_which_nothing_could_be_drafted_is_none(tmp_path: Path):
    found = replies(tmp_path, sample("a", "..y"), sample("b", "..."), sample("c", "yyy"), sample("d", ".yy"))
    assert [one.id for one in found] == ["d"]


def test_without_held_out_replies_it_says_what_to_write(tmp_path: Path):
    with pytest.raises(UsageError, match=r"write  held_out = 0\.05"):
        replies(tmp_path, sample("a", "..yyy", "train"))
