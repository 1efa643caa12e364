"""`breakeven watch`: options that cannot be, refused before any server is asked."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from breakeven.cli.watch import watch
from breakeven.cost.calibration import FILE, save_calibration
from breakeven.errors import UsageError
from tests.unit.watch.pages import calibration

URL = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "which server"),
        ([URL, "--json"], "--once too"),
        ([URL, "--once", "--for", "9"], "leave out --for"),
        ([URL, "--once", "--prometheus-port", "0"], "leave out --for and --prometheus-port"),
        ([URL, "--interval", "9", "--window", "3"], "--window 9 or more"),
        ([URL, "--flat-ms", "1"], "--calibration FILE too"),
        ([URL, "--method", "eagle3"], "--calibration FILE too"),
        ([URL, "--calibration", "no/such"], "cannot read"),
        (["http://user:secret@h:1"], "leave user and password out"),
        (["ftp://h"], "neither http nor https"),
        ([URL, "--header", "nonsense"], "NAME:VALUE"),
    ],
)
def test_what_is_refused(words: list[str], said: str):
    with pytest.raises(UsageError, match=said):
        watch.main(words, standalone_mode=False)


@pytest.mark.parametrize("option", ["--interval", "--window", "--for"])
@pytest.mark.parametrize("value", ["nan", "inf", "0", "-1", "1e30"])
def test_times_that_are_none(option: str, value: str):
    with pytest.raises(click.BadParameter):
        watch.main([URL, option, value], standalone_mode=False)


def test_a_calibration_without_a_curve_is_refused(tmp_path: Path):
    save_calibration(calibration(ms=(10.0, 11.0)), tmp_path / FILE)
    with pytest.raises(UsageError, match="2 measured points cannot show a curve"):
        watch.main([URL, "--calibration", str(tmp_path)], standalone_mode=False)


def test_a_server_that_nothing_answers_for_ends_with_3(capsys: pytest.CaptureFixture[str]):
    assert watch.main([URL, "--once", "--interval", "0.1"], standalone_mode=False) == 3
    assert "nothing answers" in " ".join(capsys.readouterr().out.split())
