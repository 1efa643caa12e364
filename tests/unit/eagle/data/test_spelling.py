"""Another tokenizer than the target's is refused on what replies say."""

from __future__ import annotations

import numpy as np
import pytest

from breakeven.eagle.data.spelling import LOOKED_AT, TOLD_FROM, Spelling
from breakeven.errors import UsageError
from tests.unit.eagle.data.plain import decode_bytes, of_bytes

WRONG = "the tokenizer of models/a is not the server's"


def spelling(decode: object = decode_bytes) -> Spelling:
    return Spelling(decode, "models/a", 300)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ids", "text", "reasoning"),
    [
        ("Hello", "Hello", ""),
        ("<think>Hm.</think>\n\nHello ", "Hello", "Hm."),
        (" Hello\n", "Hello", ""),
        ("Hello, f(x)", "Hello,", ""),
        ("Hel", "Hel\ufffd", ""),
    ],
)
def test_what_servers_trim_or_parse_away_is_no_difference(ids: str, text: str, reasoning: str) -> None:
    looks = spelling()
    for _ in range(TOLD_FROM):
        looks.see("p#0", of_bytes(ids), text, reasoning)
    looks.close()


def test_another_tokenizer_is_told_before_all_replies_are_there() -> None:
    looks = spelling()
    with pytest.raises(UsageError, match=WRONG) as caught:
        for number in range(TOLD_FROM):
            looks.see(f"p#{number}", of_bytes("Uryyb"), "Hello", "")
    assert "p#3 says 'Hello', and its ids 'Uryyb'" in str(caught.value)
    assert "4 of 4 replies" in str(caught.value)


def test_another_tokenizer_is_told_at_the_end_of_a_few() -> None:
    looks = spelling()
    looks.see("p#0", of_bytes("Uryyb"), "Hello", "")
    with pytest.raises(UsageError, match=WRONG):
        looks.close()


def test_one_that_differs_among_many_is_no_other_tokenizer() -> None:
    looks = spelling()
    for number in range(20):
        looks.see("p", of_bytes("Hello" if number % 2 else "Hello!"), "Hello" if number % 4 else "Hello?", "")
    looks.close()


def test_no_more_are_looked_at_than_are_needed() -> None:
    seen: list[object] = []

    def decode(ids: object) -> str:
        seen.append(ids)
        return "Hello"

    looks = spelling(decode)
    for _ in range(LOOKED_AT + 5):
        looks.see("p", of_bytes("x"), "Hello", "")
    assert len(seen) == LOOKED_AT


def test_replies_without_text_and_unreadable_tokenizers_say_nothing() -> None:
    looks = spelling()
    looks.see("p", of_bytes("x"), " ", "")
    looks.close()
    unread = spelling(None)
    unread.see("p", of_bytes("x"), "Hello", "")
    unread.close()


def test_ids_beyond_the_vocabulary() -> None:
    looks = spelling(None)
    looks.in_range("p", np.array([299]))
    looks.in_range("p", np.array([], np.int32))
    with pytest.raises(UsageError, match=r"p#1: token id 300 is beyond the vocabulary of models/a \(300\)"):
        looks.in_range("p#1", np.array([5, 300]))
