"""Strings of JSON, whatever a server or a file put into them."""

import pytest

from breakeven.report.plain import MOST_CHARACTERS, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x9b31mb", "a\\u009b31mb"),
        ("a\x7f", "a\\u007f"),
        ("left\u202eright\u061c", "left\\u202eright\\u061c"),
        ("lone \ud800", "lone \ufffd"),
        ("tpot in µs – 5 ×\n", "tpot in µs – 5 ×\n"),
    ],
)
def test_strings_and_keys_are_harmless(text: str, shown: str):
    assert printable({text: [text, (text, 5, None)]}) == {shown: [shown, [shown, 5, None]]}


def test_a_string_without_end_is_cut():
    made = printable("x" * 100_000)
    assert len(made) == MOST_CHARACTERS and made.endswith("…")
