"""Loss masks: exactly what the target wrote, or nothing at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.eagle.data.chats import Chat, Ids
from breakeven.eagle.data.masks import (
    COUNTS_DIFFER,
    DROPPED,
    RAW,
    REFUSED,
    UNPROVEN,
    Masked,
    of_ids,
    of_text,
)
from breakeven.eagle.data.turns import assistant, user
from tests.unit.eagle.data.plain import END, PlainTemplate, chat, of_bytes, spelled


def parts(found: Masked | str) -> list[tuple[bool, str]]:
    """Runs of tokens that are, or are not, learned from."""
    assert isinstance(found, Masked), found
    assert len(found.ids) == len(found.mask)
    runs: list[tuple[bool, list[int]]] = []
    for token, learned in zip(found.ids.tolist(), found.mask.tolist(), strict=True):
        if not runs or runs[-1][0] != learned:
            runs.append((learned, []))
        runs[-1][1].append(token)
    return [(learned, spelled(ids)) for learned, ids in runs]


def made(one: Chat, **how: bool) -> Masked | str:
    return of_text(one, PlainTemplate(**how), {END})


PROMPT = len(PlainTemplate().ids("<user>\nHi<end>\n<assistant>\n"))
BOTH = pytest.mark.parametrize("marks", [True, False])


def test_ids_are_taken_as_they_are() -> None:
    found = of_ids(Ids(of_bytes("ask"), of_bytes("answer")))
    assert parts(found) == [(False, "ask"), (True, "answer")]


@BOTH
def test_a_reply_is_learned_with_the_token_that_ends_it(marks: bool) -> None:
    found = made(chat("Hi", "Hello!"), has_marks=marks)
    assert parts(found) == [(False, "<user>\nHi<end>\n<assistant>\n"), (True, "Hello!<end>")]


@BOTH
def test_reasoning_is_learned_too(marks: bool) -> None:
    found = made(chat("Hi", "Hello!", reasoning="They greet."), has_marks=marks)
    assert parts(found)[-1] == (True, "<think>They greet.</think>Hello!<end>")


@BOTH
def test_a_reply_cut_by_max_tokens_has_no_end(marks: bool) -> None:
    assert parts(made(chat("Hi", "Hel", ended=False), has_marks=marks))[-1] == (True, "Hel")


@BOTH
def test_all_replies_of_a_recorded_conversation_are_learned(marks: bool) -> None:
    found = made(chat("a", "b", "c", "d", several=True), has_marks=marks)
    assert [text for learned, text in parts(found) if learned] == ["b<end>", "d<end>"]


@BOTH
def test_replies_in_a_clients_context_are_not(marks: bool) -> None:
    found = made(chat("a", "b", "c", "d"), has_marks=marks)
    assert [text for learned, text in parts(found) if learned] == ["d<end>"]


@BOTH
def test_tools_stand_before_the_prompt(marks: bool) -> None:
    found = made(chat("a", "b", tools=({"name": "f"},)), has_marks=marks)
    assert parts(found)[0][1].startswith('<system>\n{"name": "f"}<end>\n<user>')
    assert parts(found)[-1] == (True, "b<end>")


@BOTH
def test_a_template_that_leaves_out_the_reasoning_is_not_learned_from(marks: bool) -> None:
    one = chat("Hi", "Hello!", reasoning="They greet.")
    assert made(one, has_marks=marks, drops_reasoning=True) == DROPPED


@BOTH
def test_a_template_that_refuses(marks: bool) -> None:
    assert made(chat("refuse", "x"), has_marks=marks) == REFUSED


def test_a_thought_that_the_template_adds_is_not_taken_for_the_targets() -> None:
    assert made(chat("Hi", "Hello!"), thinks=True) == UNPROVEN
    assert isinstance(made(chat("Hi", "Hello!", reasoning="x"), thinks=True), Masked)


def test_a_token_across_the_beginning_of_the_reply() -> None:
    assert made(chat("Hi", "!Hello"), merges=True) == UNPROVEN
    assert isinstance(made(chat("Hi", "Hello!"), merges=True), Masked)


def test_a_template_that_closes_with_white_space_alone() -> None:
    assert parts(made(chat("Hi", "Hello"), closes=False))[-1] == (True, "Hello")


def test_an_early_reply_of_which_nothing_is_certain_stays_context() -> None:
    found = made(chat("a", "!b", "c", "d", several=True), merges=True)
    assert [text for learned, text in parts(found) if learned] == ["d<end>"]


@pytest.mark.parametrize(
    "one",
    [
        Chat("w", "c", "raw text", assistant("x")),
        Chat("w", "c", None, assistant("x")),
        Chat("w", "c", (user("a"),)),
    ],
)
def test_what_no_template_can_say(one: Chat) -> None:
    assert made(one) == RAW


@pytest.mark.parametrize("reply", [assistant(""), assistant("x", tool_calls=[{"id": "1"}])])
def test_replies_that_cannot_be_found_in_the_text(reply: dict[str, Any]) -> None:
    assert made(Chat("w", "c", (user("a"),), reply)) == UNPROVEN


@BOTH
@pytest.mark.parametrize(
    ("more", "answered", "fits"),
    [(None, None, True), (0, 7, True), (1, None, False), (0, 6, False), (-1, 7, False), (None, 9, False)],
)
def test_tokens_are_as_many_as_the_server_counted(
    marks: bool, more: int | None, answered: int | None, fits: bool
) -> None:
    """`more` than the prompt has; the reply is six letters and its end."""
    asked = None if more is None else PROMPT + more
    found = made(chat("Hi", "Hello!", counted=(asked, answered)), has_marks=marks)
    assert isinstance(found, Masked) if fits else found == COUNTS_DIFFER


def test_marks_may_leave_out_the_end() -> None:
    one = chat("Hi", "Hello!", counted=(PROMPT, 8))
    assert isinstance(made(one, has_marks=True), Masked)
    assert made(one) == COUNTS_DIFFER


WORDS = st.text(st.sampled_from("ab !\n<>é"), min_size=1, max_size=12).filter(lambda text: bool(text.strip()))


@given(st.lists(WORDS, min_size=2, max_size=6), st.booleans(), st.booleans())
def test_what_is_learned_is_what_was_said(texts: list[str], merges: bool, ended: bool) -> None:
    """Or it is left out; the prompt is never learned from."""
    texts = texts[: len(texts) // 2 * 2]
    one = chat(*texts, several=True, ended=ended)
    found = made(one, merges=merges)
    if not isinstance(found, Masked):
        assert merges and found == UNPROVEN
        return
    template = PlainTemplate(merges=merges)
    replies = [text + "<end>" for text in texts[1::2]]
    if not ended:
        replies[-1] = texts[-1]
    learned = [template.ids(text) for text in replies]
    got = _runs(found)
    assert got[-1] == learned[-1]
    assert all(run in learned for run in got)
    if not merges:
        assert got == learned


def _runs(found: Masked) -> list[list[int]]:
    runs: list[list[int]] = []
    before = False
    for token, learned in zip(found.ids.tolist(), found.mask.tolist(), strict=True):
        if learned and not before:
            runs.append([])
        if learned:
            runs[-1].append(token)
        before = learned
    return runs


@BOTH
def test_a_thought_that_was_cut_ends_where_it_was_cut(marks: bool) -> None:
    """A template closes it, within its marks: the target never wrote that."""
    found = made(chat("Hi", "", reasoning="They gr", ended=False), has_marks=marks)
    assert parts(found)[-1] == (True, "<think>They gr")


@BOTH
def test_a_thought_that_ended_without_an_answer_is_left_out(marks: bool) -> None:
    """Whether the target closed it, and how, is not certain."""
    assert made(chat("Hi", "", reasoning="They greet."), has_marks=marks) == UNPROVEN
