"""Files of variables."""

from __future__ import annotations

import pytest

from breakeven.servers.systemd.env_file import variables


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1\nB = 2 \n", {"A": "1", "B": "2"}),
        ("# A=1\n; B=2\nC=3", {"C": "3"}),
        ('A=\'x y\' \nB="x \\"y\\" \\d"\n', {"A": "x y", "B": 'x "y" \\d'}),
        ("A='two\nlines'\nB=\"two\\\nlines\"\n", {"A": "two\nlines", "B": "twolines"}),
        ("A=x \\\n y\nB=a\\ \n", {"A": "x  y", "B": "a "}),
        ("A='x'\"y\" z \n", {"A": "xyz"}),
        ("A=it's # all\n", {"A": "it's # all"}),
        ("A=\nB=''\n", {"A": "", "B": ""}),
        ("export A=1\n1B=2\nnothing\nC=3\n", {"C": "3"}),
        ("A=1\nA=2\r\n", {"A": "2"}),
        ("A='open", {"A": "open"}),
        ('A="x\\', {"A": "x"}),
        ("", {}),
    ],
)
def test_files(text: str, expected: dict[str, str]):
    assert variables(text.encode()) == expected
