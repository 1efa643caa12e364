"""What may be set of a guard is asked alike of a simulated one and of one in a server."""

from __future__ import annotations

import math

import click
import pytest
from click.testing import CliRunner

from breakeven.cli.guard import guard
from breakeven.cli.guard_options import Epsilons, guard_options, settings_given
from breakeven.engines.vllm_flags import GUARD_TOKENS, MOST_GUARD_TOKENS
from breakeven.errors import UsageError
from breakeven.guard.settings import MOST_DRAFT, GuardSettings


def set_by(*words: str) -> GuardSettings:
    """What the options come to."""
    found: list[GuardSettings] = []

    @click.command()
    @guard_options
    def command(**values: object) -> None:
        found.append(settings_given(values))

    CliRunner().invoke(command, words, catch_exceptions=False)
    return found[0]


def test_nothing_typed_is_the_default():
    assert set_by() == GuardSettings()


def test_what_is_typed():
    assert set_by("--epsilon", "5%", "--most-tokens", "6") == GuardSettings(epsilon=0.05, most_tokens=6)
    assert set_by("--epsilon", "0.05") == GuardSettings(epsilon=0.05)


@pytest.mark.parametrize("verb", ["simulate", "vllm-config"])
def test_both_verbs_ask_alike(verb: str):
    told = CliRunner().invoke(guard, [verb, "--help"], terminal_width=110).stdout
    assert "--epsilon SHARE" in told and "[default: 2%]" in told
    assert "--most-tokens INTEGER RANGE" in told and "[default: 10; 1<=x<=64]" in told
    for words in (["--epsilon", "150%"], ["--epsilon", "-1%"], ["--epsilon", "none"]):
        with pytest.raises(UsageError, match="is no share from 0 to below 1: type  --epsilon 2%"):
            CliRunner().invoke(
                guard, [verb, *(["x"] if verb == "simulate" else []), *words], catch_exceptions=False
            )


def test_epsilons_are_shares_or_none():
    found = Epsilons().convert("0.01, 5%,none,0.01,1%", None, None)
    assert found == (0.01, 0.05, math.inf)
    for word in ("-0.1", "inf", "nan", "two", "", "0.01;0.02", "2%,,5%"):
        with pytest.raises(UsageError, match=r"type  --epsilons 1%,2%,5%,none"):
            Epsilons().convert(word, None, None)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("1", "1%"), ("1, 2.5,5", "1%,2.5%,5%"), ("3,none", "3%,none"), ("1,200", "1%,2%,5%,none")],
)
def test_epsilons_without_their_per_cent_are_likely_meant_in_it(typed: str, meant: str):
    with pytest.raises(UsageError, match=f"type  --epsilons {meant}$"):
        Epsilons().convert(typed, None, None)


def test_what_the_flags_say_of_the_guard_is_what_it_does():
    assert GuardSettings().most_tokens == GUARD_TOKENS
    assert MOST_GUARD_TOKENS == MOST_DRAFT
