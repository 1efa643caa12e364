"""Words split and quoted by systemd's rules."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from breakeven.errors import UsageError
from breakeven.servers.systemd.unit_text import assignments
from breakeven.servers.systemd.words import Word, quote, split

BYTES = st.binary(max_size=12).map(lambda data: data.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
WORDS = st.text(st.characters(exclude_categories=("Cs", "Cn"), exclude_characters="\0"), max_size=12)
"""Whatever a unit's command line can hold; BYTES: whatever an argument list can."""


def values(text: str) -> list[str]:
    return [word.value for word in split(text)]


@given(st.lists(WORDS | BYTES, max_size=5))
@example(["", ";", "#x", "\\", "a\\", "'", '"', "'\"", "\n", "%i", "$X", "${X}", "$$", "\ufeff", "\ufffe"])
def test_what_is_quoted_is_read_again(words: list[str]):
    line = " ".join(quote(word) for word in words)
    assert values(line) == words
    unit = f"[Service]\nExecStart=/bin/x {line}\n".encode()
    (read,) = assignments(unit)
    assert values(read.value) == ["/bin/x", *words]


@given(st.lists(WORDS | BYTES, min_size=1, max_size=5))
def test_a_word_keeps_its_spelling(words: list[str]):
    line = "  ".join(quote(word) for word in words)
    assert [word.source for word in split(line)] == [quote(word) for word in words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("'a b' \"c d\"", ["a b", "c d"]),
        ("a'b c'd", ["ab cd"]),
        ("--x='y z'", ["--x=y z"]),
        ("'' \"\"", ["", ""]),
        (r"'it\'s'", ["it's"]),
        (r"\x41\102\u00e9\U0001F600\s\t", ["AB\u00e9\U0001f600 \t"]),
        (r"caf\xc3\xa9", ["caf\u00e9"]),
        (r"\xff", ["\udcff"]),
        (r"\d \400 \x00 \u0000 \U00110000", [r"\d", r"\400", r"\x00", r"\u0000", r"\U00110000"]),
        (r"\xZ1 \09", [r"\xZ1", r"\09"]),
        ("a\\", ["a\\"]),
        ("'{\"k\":1}'", ['{"k":1}']),
    ],
)
def test_quotes_and_escapes(text: str, words: list[str]):
    assert values(text) == words


@pytest.mark.parametrize("text", ["'a", 'b "c', "'a\\"])
def test_an_open_quote_is_refused(text: str):
    with pytest.raises(UsageError, match="not closed"):
        split(text)


@pytest.mark.parametrize("value", ["a\0b", "\ud800", "\udcff", "\ufffe", "\U0010ffff", "\ufdd0"])
def test_what_the_bus_cannot_carry_is_refused(value: str):
    with pytest.raises(UsageError, match="text only"):
        Word.of(value)


def test_plain_words_and_json_stay_readable():
    assert quote("--tensor-parallel-size=8") == "--tensor-parallel-size=8"
    assert quote('{"method":"ngram"}') == """'{"method":"ngram"}'"""
    assert quote("it's") == '"it\'s"'
