from dataclasses import dataclass
from typing import Any

import click
import pytest

from breakeven.cli.drafter_options import Numbers, Ranges, drafter_settings
from breakeven.drafters import registry
from breakeven.drafters.base import Draft, Drafter, Ids
from breakeven.drafters.settings import Settings, setting
from breakeven.errors import UsageError


@dataclass(frozen=True, slots=True)
class Config(Settings):
    k: int = setting(5, "draft", 1)
    min_n: int = setting(2, "shortest", 1)
    max_n: int = setting(4, "longest", 1)
    share: float = setting(0.5, "share", 0, 1)
    loud: bool = setting(False, "loud")
    word: str = setting("bfs", "word")
    limit: int | None = setting(None, "limit", 1, kind=int)
    path: str | None = setting(None, "path", kind=str)
    plain: int = 3
    bare: Any = None


class Mine(Drafter[Config]):
    name = "mine"
    Config = Config

    def propose(self, context: Ids, room: int) -> Draft:
        return ()


@pytest.fixture(autouse=True)
def mine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "drafter_class", lambda name: Mine)


def settings(*words: str, **options: int) -> dict[str, Any]:
    return drafter_settings({
        "drafter": "mine", "k": None, "n": None, "min_n": None, "max_n": None, **options, "setting": words,
    })  # fmt: skip


def test_only_what_is_given_is_set():
    assert settings() == {}
    assert settings(k=3, min_n=1) == {"k": 3, "min_n": 1}


def test_one_n_is_both_ends_of_a_range():
    assert settings(n=3) == {"min_n": 3, "max_n": 3}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("k=7", 7),
        ("share=0.25", 0.25),
        ("share=1", 1.0),
        ("loud=true", True),
        ("loud=No", False),
        ("word=7", "7"),
        ("word=a=b", "a=b"),
        ("limit=8", 8),
        ("limit=none", None),
        ("path=123", "123"),
        ("path=none", None),
        ("plain=7", 7),
        ("bare=7", 7),
        ("bare=0.5", 0.5),
        ("bare=on", True),
        ("bare=none", None),
        ("bare=some", "some"),
    ],
)
def test_a_value_has_the_type_of_its_setting(word: str, value: object):
    (found,) = settings(word).values()
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (("k",), {}, "'k' is not NAME=VALUE: type --set k="),
        (("=3",), {}, "is not NAME=VALUE"),
        (("kk=3",), {}, "mine has no setting kk: did you mean k?"),
        (("k=3.5",), {}, "--set k=3.5: it is a whole number: type --set k=5"),
        (("share=much",), {}, "it is a number: type --set share=0.5"),
        (("loud=3",), {}, "it is true or false: type --set loud=false"),
        (("limit=few",), {}, "it is a whole number: type --set limit=none"),
        (("plain=none",), {}, "it is a whole number: type --set plain=3"),
        (
            ("zebra=3",),
            {},
            "mine has no setting zebra: it has k, min_n, max_n, share, loud, word, limit, path",
        ),
        (("k=" + "9" * 5000,), {}, "9…: it is a whole number: type --set k=5"),
        (("plain=" + "9" * 4000,), {}, "9…: it is a whole number: type --set plain=3"),
        (("k=3",), {"k": 4}, "k is given twice"),
        (("min_n=3",), {"n": 4}, "min_n is given twice"),
    ],
)
def test_what_cannot_be_read_says_what_to_type(words: tuple[str, ...], options: dict[str, int], message: str):
    with pytest.raises(UsageError) as caught:
        settings(*words, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("5", (5,)), ("1-4", (1, 2, 3, 4)), ("1,2, 4", (1, 2, 4)), ("8,1-3,2", (8, 1, 2, 3)), ("2-2", (2,))],
)
def test_lists_of_numbers(text: str, numbers: tuple[int, ...]):
    assert Numbers().convert(text, None, None) == numbers


@pytest.mark.parametrize(("text", "ranges"), [("2-4", ((2, 4),)), ("2-4,3", ((2, 4), (3, 3)))])
def test_lists_of_ranges(text: str, ranges: tuple[tuple[int, int], ...]):
    assert Ranges().convert(text, None, None) == ranges


@pytest.mark.parametrize("text", ["", "a", "-3", "0", "1-", "1,,2", "1-2-3", "²", "99999999999", "9" * 5000])
@pytest.mark.parametrize("kind", [Numbers(), Ranges()])
def test_what_is_no_list_is_refused(kind: click.ParamType, text: str):
    with pytest.raises(UsageError, match="type "):
        kind.convert(text, None, None)


@pytest.mark.parametrize("kind", [Numbers(), Ranges()])
def test_a_range_that_runs_backwards_is_turned_round(kind: click.ParamType):
    with pytest.raises(UsageError, match=r"'4-2' runs backwards: type --some 2-4$"):
        kind.convert("4-2", click.Option(["--some"]), None)


def test_a_long_range_is_refused_before_it_is_counted_out():
    with pytest.raises(UsageError, match="type "):
        Numbers().convert("1-2000000000", None, None)


MANY = ("1-600,700-1200", "1-1025", "1-1048576")


@pytest.mark.parametrize("text", MANY)
def test_all_ranges_together_are_bounded_and_one_thing_is_said_to_do(text: str):
    option = click.Option(["--ks"])
    with pytest.raises(UsageError) as caught:
        Numbers().convert(text, option, None)
    assert str(caught.value) == f"{text!r} is more than 1024 numbers: type --ks 1-5"


def test_as_many_as_are_allowed():
    assert len(Numbers().convert("1-512,513-1024,1-1024", None, None)) == 1024


def test_ranges_are_bounded_and_each_counts_once():
    assert Ranges().convert("2-4,2-4", None, None) == ((2, 4),)
    with pytest.raises(UsageError, match="more than 1024 ranges: type 2-4,3-5"):
        Ranges().convert(",".join(f"1-{most}" for most in range(1, 1026)), None, None)


@pytest.mark.parametrize("word", ["k=" + "9" * 4000, "k=9223372036854775808", "share=nan", "share=1e999"])
def test_numbers_without_end_are_left_to_the_limits_of_the_setting(word: str):
    with pytest.raises(
        UsageError, match=r"(k|share) is from . to \d+, not .{3,25}: type --set (k=5|share=0.5)$"
    ):
        Config(**settings(word))


def test_where_no_limits_are_known_a_number_without_end_is_a_word():
    assert settings("bare=" + "9" * 5000) == {"bare": "9" * 5000}
    assert settings("bare=inf") == {"bare": "inf"}
