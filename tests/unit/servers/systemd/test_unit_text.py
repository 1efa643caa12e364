"""Lines of unit files."""

from __future__ import annotations

import pytest

from breakeven.servers.systemd.unit_text import assignments


def pairs(text: str | bytes) -> list[tuple[str, str]]:
    data = text if isinstance(text, bytes) else text.encode()
    return [(one.name, one.value) for one in assignments(data)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[S]\nA=1\n\n# c\n; c\nB = 2 \n", [("A", "1"), ("B", "2")]),
        ("A=outside\n[S]\nB=1\n", [("B", "1")]),
        ("[S]\nA=x \\\n  y\nB=1", [("A", "x    y"), ("B", "1")]),
        ("[S]\nA=x \\\n# between \\\n; and\n y\n", [("A", "x   y")]),
        ("[S]\nA=x \\\n\nB=1\n", [("A", "x"), ("B", "1")]),
        ("[S]\nA=x \\", [("A", "x")]),
        ("[S]\nA=x\\\\\nB=1\n", [("A", "x\\\\"), ("B", "1")]),
        ("[S]\nA=x \\\\\\\n y\n", [("A", "x \\\\  y")]),
        ("[S]\nA=x # no comment\n", [("A", "x # no comment")]),
        ("[S]\nno assignment\n=nameless\nA=\n", [("A", "")]),
        ("\ufeff[S]\r\nA=1\r\nB=2\r\n", [("A", "1"), ("B", "2")]),
        ("[S]\rA=1\n\rB=2\n\nC=3\0D=4", [("A", "1"), ("B", "2"), ("C", "3"), ("D", "4")]),
        (b"[S]\nA=\xff\nB=1\n", [("B", "1")]),
        ("[S]\nA=b=c\n", [("A", "b=c")]),
    ],
)
def test_lines(text: str | bytes, expected: list[tuple[str, str]]):
    assert pairs(text) == expected


def test_sections_are_told_apart():
    found = assignments(b"[Unit]\nA=1\n[Service]\nA=2\n")
    assert [(one.section, one.value) for one in found] == [("Unit", "1"), ("Service", "2")]
