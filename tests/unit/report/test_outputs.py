from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from breakeven.report.outputs import (
    AFTER_CHARACTERS,
    BEFORE_CHARACTERS,
    difference_of,
    diverged,
    shared_length,
)
from breakeven.trace.records import RequestError, RequestTrace
from tests.unit.report.builders import trace


def reply(text: str, prompt_id: str = "p", repeat: int = 0, **changes: object) -> RequestTrace:
    return replace(trace(prompt_id, "c", 0.02, repeat, text=text), **changes)


@given(st.text(), st.text(), st.text())
def test_shared_length(common: str, a: str, b: str):
    length = shared_length(common + a, common + b)
    assert length >= len(common)
    assert (common + a)[:length] == (common + b)[:length]
    assert (common + a)[length : length + 1] != (common + b)[length : length + 1] or a == b


def test_the_same_replies_do_not_differ():
    assert difference_of(reply("x"), reply("x")) is None


def test_reasoning_is_compared_before_content():
    found = difference_of(reply("a", reasoning="same, then x"), reply("b", reasoning="same, then y"))
    assert (found.part, found.position) == ("reasoning", 11)
    assert [output.own for output in found.outputs] == ["x", "y"]
    assert found.outputs[0].shared == "same, then "


def test_long_replies_are_cut_around_the_difference():
    found = difference_of(reply("s" * 1000 + "a" * 1000), reply("s" * 1000))
    first, second = found.outputs
    assert (len(first.shared), len(first.own)) == (BEFORE_CHARACTERS, AFTER_CHARACTERS)
    assert first.cut_before and first.cut_after
    assert second.own == "" and not second.cut_after


def test_the_first_differing_repeat_of_each_prompt_is_shown_and_failures_are_not():
    error = RequestError("StreamError", "broke off")
    a = [reply("x", "p", 0), reply("x", "p", 1), reply("x", "p", 2), reply("x", "q", 0)]
    b = [reply("x", "p", 0), reply("y", "p", 1), reply("y", "p", 2), reply("y", "q", 0, error=error)]
    sides = [{(one.prompt_id, one.repeat): one for one in side} for side in (a, b)]
    assert [(found.prompt_id, found.repeat) for found in diverged(*sides)] == [("p", 1)]
