import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.report.text import clean, encodable, line, lines

ANY_TEXT = st.text(st.characters(codec=None, categories=None))


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;new title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jx", "x"),
        ("\x1bcreset", "reset"),
        ("a\x00b\x07", "a␀b␇"),
        ("a\rb", "a␍b"),
        ("a\r\nb", "a\nb"),
        ("x\u202egnp.exe", "xgnp.exe"),
        ("\ud800", "\ufffd"),
        ("مرحبا\tβ\n", "مرحبا\tβ\n"),
    ],
)
def test_clean(hostile: str, harmless: str):
    assert clean(hostile) == harmless


@given(ANY_TEXT)
def test_clean_text_has_no_control_character_and_can_be_encoded(text: str):
    cleaned = clean(text)
    cleaned.encode()
    assert not [c for c in cleaned if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"]
    assert clean(cleaned) == cleaned


@given(ANY_TEXT)
def test_encodable_changes_surrogates_alone(text: str):
    encoded = encodable(text)
    encoded.encode()
    assert len(encoded) == len(text)
    assert all(a == b or unicodedata.category(a) == "Cs" for a, b in zip(text, encoded, strict=True))


def test_line_joins_and_cuts():
    assert line("a\n\n b\tc") == "a b c"
    assert line("x" * 300, 10) == "x" * 9 + "…"


def test_the_lines_of_a_log_stay_lines():
    assert lines("the end of its log:\n  one   two\n\n\tthree\x1b[31m\x07\n") == (
        "the end of its log:\n  one two\n  three␇"
    )
    assert lines("a\nbcdef", 5) == "a\nbc…"
