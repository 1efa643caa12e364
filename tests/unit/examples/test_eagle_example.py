"""examples/kimi-k2.5-eagle: what it shows is what the commands beside it write."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from breakeven.cli.eagle_plan import plan

FOLDER = Path(__file__).parents[3] / "examples" / "kimi-k2.5-eagle"


def commands() -> dict[str, list[str]]:
    """By the file that each writes: the words after `breakeven eagle plan`."""
    text = (FOLDER / "run.sh").read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:3] == ["breakeven", "eagle", "plan"]:
            found[words[words.index("--out") + 1]] = words[3:]
    return found


def test_it_shows_both_machines():
    assert len(commands()) == 2


@pytest.mark.parametrize(("page", "words"), commands().items(), ids=list(commands()))
def test_its_output_is_that_of_this_version(
    page: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(plan, words, catch_exceptions=False)
    assert result.exit_code == 0
    assert (tmp_path / page).read_text() == (FOLDER / page).read_text()
    assert "3.34" in (tmp_path / page).read_text()
