from dataclasses import dataclass

import pytest

from breakeven.drafters.settings import Settings, setting
from breakeven.errors import UsageError


@dataclass(frozen=True, slots=True)
class Some(Settings):
    k: int = setting(5, "tokens", 1, 9)
    share: float = setting(0.5, "of the tokens", 0, 1)
    deep: int = setting(3, "no upper limit", 2)
    mode: str = setting("fast", "how")
    greedy: bool = setting(True, "whether")
    most: int | None = setting(None, "unset is no limit", 1, kind=int)


def test_defaults_and_the_ends_of_the_limits_pass():
    assert Some() == Some(5, 0.5, 3, "fast", True, None)
    Some(k=1, share=0, deep=10**9)
    Some(k=9, share=1, most=1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": 0}, "k is from 1 to 9, not 0: type k=5"),
        ({"k": 10}, "k is from 1 to 9, not 10"),
        ({"deep": 1}, "deep is 2 or more, not 1: type deep=3"),
        ({"share": 1.5}, "share is from 0 to 1, not 1.5"),
        ({"share": float("nan")}, "share is from 0 to 1, not nan"),
        ({"most": 0}, "most is 1 or more, not 0: type most=1"),
        ({"most": "3"}, "most is a whole number, not '3'"),
        ({"most": 2.5}, "most is a whole number, not 2.5"),
        ({"k": None}, "k is a whole number, not None"),
        ({"k": 2.0}, "k is a whole number, not 2.0: type k=5"),
        ({"k": True}, "k is a whole number, not True"),
        ({"share": True}, "share is a number, not True"),
        ({"greedy": 1}, "greedy is true or false, not 1"),
        ({"mode": 3}, "mode is a word, not 3"),
        ({"k": "5"}, "k is a whole number, not '5'"),
    ],
)
def test_what_is_refused_says_what_to_type(wrong: dict[str, object], message: str):
    with pytest.raises(UsageError, match=message):
        Some(**wrong)


def test_settings_cannot_be_changed():
    with pytest.raises(AttributeError):
        Some().k = 3  # type: ignore[misc]
