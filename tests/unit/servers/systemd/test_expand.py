"""Specifiers, variables, and the names that specifiers stand for."""

from __future__ import annotations

import pytest

from breakeven.errors import UsageError
from breakeven.servers.systemd.expand import with_specifiers, with_variables
from breakeven.servers.systemd.unit_name import UnitName


def test_known_specifiers_are_filled_in_and_others_stay():
    assert with_specifiers("%i %% %%i %q %", {"i": "gpu0"}) == "gpu0 % %i %q %"


@pytest.mark.parametrize(
    ("word", "filled"),
    [
        ("$ARGS", ("--a", "b c")),
        ("${ARGS}", ("--a 'b c'",)),
        ("x${PORT}y", ("x80y",)),
        ("$PORT/", ()),
        ("a$PORT", ("a$PORT",)),
        ("$$PORT", ("$PORT",)),
        ("a$$b", ("a$b",)),
        ("$NONE", ()),
        ("${NONE}", ("",)),
        ("$OPEN", ("it's",)),
    ],
)
def test_variables(word: str, filled: tuple[str, ...]):
    environment = {"ARGS": "--a 'b c'", "PORT": "80", "OPEN": "it's"}
    assert with_variables(("/bin/x", word), environment) == ("/bin/x", *filled)


def test_names_and_their_parts():
    name = UnitName.parse(r"vllm-big@gpu-0\x2d1")
    assert name.full == r"vllm-big@gpu-0\x2d1.service"
    assert name.template == "vllm-big@.service"
    specifiers = name.specifiers()
    assert {key: specifiers[key] for key in "NpPijIf"} == {
        "N": r"vllm-big@gpu-0\x2d1",
        "p": "vllm-big",
        "P": "vllm/big",
        "i": r"gpu-0\x2d1",
        "j": "big",
        "I": "gpu/0-1",
        "f": "/gpu/0-1",
    }


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("vllm.socket", "not a service"),
        ("vllm@.service", "template"),
        ("-x", "no name"),
        ("a/b", "no name"),
        ("", "no name"),
        ("a b", "no name"),
        ("x" * 300, "no name"),
    ],
)
def test_other_names_are_refused(text: str, advice: str):
    with pytest.raises(UsageError, match=advice):
        UnitName.parse(text)
