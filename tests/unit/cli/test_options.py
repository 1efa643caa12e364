"""Options that several verbs share: what they take, and what is said of the rest."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from breakeven.cli.options import ShareBelowOne, html_option, share_below_one
from breakeven.errors import UsageError


@pytest.mark.parametrize("text", ["0.02", "2%", " 2 % ", ".02", "2e-2"])
def test_a_share_in_any_spelling(text: str):
    assert share_below_one(text) == 0.02


def test_a_share_reaches_from_nothing_to_below_all():
    assert share_below_one("0") == share_below_one("0%") == 0
    assert share_below_one("99.9%") == 0.999


@pytest.mark.parametrize(
    "text", ["1", "100%", "150 %", "-1%", "-0.1", "two", "nan", "inf", "", "%", "2%%", "%2", "0.02;0.05"]
)
def test_what_is_no_share(text: str):
    with pytest.raises(ValueError, match="is no share from 0 to below 1"):
        share_below_one(text)
    instead = r"--epsilon 1%  or  --epsilon 0\.01$" if text == "1" else r"--epsilon 2%  or  --epsilon 0\.02$"
    with pytest.raises(UsageError, match=f"type  {instead}"):
        ShareBelowOne().convert(text, click.Option(["--epsilon"]), None)


@pytest.mark.parametrize(
    ("text", "meant"), [("3", "3%  or  0.03"), ("2.5", "2.5%  or  0.025"), ("100", "2%")]
)
def test_a_number_without_its_per_cent_is_likely_meant_in_it(text: str, meant: str):
    with pytest.raises(UsageError, match=f"is no share from 0 to below 1: type  {meant}"):
        ShareBelowOne().convert(text, None, None)


def test_a_long_word_is_cut():
    with pytest.raises(UsageError) as caught:
        ShareBelowOne().convert("x" * 10_000, None, None)
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    ("option", "default"),
    [
        (html_option(), ""),
        (html_option("a.html"), " [default of a folder: a.html in it]"),
        (html_option("a.html", of="a trial"), " [default of a trial: a.html in it]"),
    ],
)
def test_a_page_that_is_written_unasked_is_told(
    option: Callable[[click.Command], click.Command], default: str
):
    (made,) = option(click.Command("verb")).params
    assert isinstance(made, click.Option) and made.help == f"Write the report as one HTML file{default}."
