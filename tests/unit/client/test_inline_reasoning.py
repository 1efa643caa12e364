from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.client.reasoning import TAGS, split_inline
from breakeven.trace.records import Kind

C, R = Kind.CONTENT, Kind.REASONING


def kinds(*contents: str) -> tuple[str, str, tuple[Kind, ...]]:
    split = split_inline(contents, [C] * len(contents))
    assert split is not None
    return split.content, split.reasoning, split.kinds


def test_plain_content_is_left_alone() -> None:
    assert split_inline(["Hello", " you"], [C, C]) is None
    assert split_inline([], []) is None
    assert split_inline(["I said <think> once"], [C]) is None


@pytest.mark.parametrize(("opening", "closing"), TAGS)
def test_every_pair_of_tags(opening: str, closing: str) -> None:
    assert kinds(opening, "why", closing, "so") == ("so", "why", (R, R, R, C))


def test_tags_split_over_chunks() -> None:
    assert kinds("<th", "ink>\nI", " see.</thi", "nk>\n\n", "Yes") == ("\n\nYes", "\nI see.", (R, R, R, R, C))


def test_a_chunk_with_both_counts_as_content_if_it_has_words() -> None:
    assert kinds("<think>a", "b</think>Yes") == ("Yes", "ab", (R, C))


def test_a_template_that_opened_the_tag() -> None:
    split = split_inline(["I see", "</think>", "Yes"], [C, C, C])
    assert split is not None and split.pre_opened
    assert (split.content, split.reasoning, split.kinds) == ("Yes", "I see", (R, R, C))


def test_reasoning_that_never_ends_leaves_no_content() -> None:
    assert kinds(" <think>", "and on", " and on") == ("", "and on and on", (R, R, R))


def test_other_kinds_keep_theirs() -> None:
    split = split_inline(["<think>a</think>", "", "b", ""], [C, Kind.TOOL, C, Kind.END])
    assert split is not None and split.kinds == (R, Kind.TOOL, C, Kind.END)


@given(st.text(alphabet="ab \n", max_size=20), st.text(alphabet="ab \n", max_size=20), st.data())
def test_where_chunks_are_cut_changes_no_text(reasoning: str, content: str, data: st.DataObject) -> None:
    text = f"<think>{reasoning}</think>{content}"
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)) | {0, len(text)})
    pieces = [text[a:b] for a, b in itertools.pairwise(cuts)]
    split = split_inline(pieces, [C] * len(pieces))
    assert split is not None
    assert (split.content, split.reasoning) == (content, reasoning)
    after = len("<think></think>") + len(reasoning)
    ends = cuts[1:]
    assert all(kind is R for kind, end in zip(split.kinds, ends, strict=True) if end <= after)
    assert all(kind is C for kind, start in zip(split.kinds, cuts, strict=False) if start >= after)
