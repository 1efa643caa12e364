"""Command lines of ExecStart=."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.errors import UsageError
from breakeven.servers.systemd.command import Command, commands
from breakeven.servers.systemd.expand import with_specifiers, with_variables
from tests.unit.servers.systemd.test_words import WORDS


def only(value: str) -> Command:
    (command,) = commands(value)
    return command


@pytest.mark.parametrize(
    ("value", "prefix", "argv"),
    [
        ("/bin/x a", "", ("/bin/x", "a")),
        ("-/bin/x", "-", ("/bin/x",)),
        ("!!/bin/x", "!!", ("/bin/x",)),
        ("+:/bin/x", "+:", ("/bin/x",)),
        ("--x", "-", ("-x",)),
        ('-"/opt/my models/x" y', "-", ("/opt/my models/x", "y")),
        ("@/bin/x name a", "@", ("/bin/x", "a")),
        (r"/bin/x \; ';' a;b", "", ("/bin/x", ";", ";", "a;b")),
    ],
)
def test_prefixes_are_told_from_programs(value: str, prefix: str, argv: tuple[str, ...]):
    command = only(value)
    assert (command.prefix, command.argv) == (prefix, argv)
    assert only(command.text()) == Command(prefix, command.program, command.name, command.arguments)


def test_a_lone_semicolon_parts_commands():
    assert [one.argv for one in commands("/bin/a 1 ; /bin/b ;2 ; ; /bin/c ;")] == [
        ("/bin/a", "1"),
        ("/bin/b", ";2"),
        ("/bin/c",),
    ]


@pytest.mark.parametrize("value", ["-", "@", "/bin/x 'a"])
def test_what_systemd_refuses_is_refused(value: str):
    with pytest.raises(UsageError):
        commands(value)


def test_words_that_stay_keep_their_spelling_and_meaning():
    command = only(r"""-/bin/x  "a b" %i ${PORT} --old \x41""")
    changed = command.with_argv(("/bin/x", "a b", "%i", "${PORT}", "A", "100%", "$5"))
    assert changed.text() == r'-/bin/x "a b" %i ${PORT} \x41 100%% $$5'


def test_variables_are_not_filled_in_with_a_colon():
    assert only(":/bin/x").with_argv(("/bin/x", "$5")).text() == ":/bin/x $5"


def test_the_name_of_the_process_stays():
    assert only("@/bin/x me a").with_argv(("/bin/x", "b")).text() == "@/bin/x me b"


def test_a_command_line_is_not_empty():
    with pytest.raises(UsageError, match="program"):
        only("/bin/x").with_argv(())


@given(st.lists(WORDS, max_size=5))
def test_new_words_reach_the_process_as_they_are(words: list[str]):
    changed = only("/bin/x the-unit-is-%n").with_argv(("/bin/x", "the-unit-is-%n", *words))
    read = only(changed.text())
    filled = with_variables([with_specifiers(word, {"n": "N"}) for word in read.argv], {"PATH": "wrong"})
    assert filled == ("/bin/x", "the-unit-is-N", *words)
