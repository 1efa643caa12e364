from dataclasses import dataclass

import pytest

from breakeven.drafters.settings import MOST, MOST_COUNTED, Settings, setting
from breakeven.errors import UsageError


@dataclass(frozen=True, slots=True)
class Some(Settings):
    k: int = setting(5, "tokens", 1, 9)
    share: float = setting(0.5, "of the tokens", 0, 1)
    deep: int = setting(3, "no upper limit of its own", 2)
    size: int = setting(7, "only counts", 0, MOST_COUNTED)
    factor: float = setting(1.0, "no limits of its own")
    mode: str = setting("fast", "how")
    greedy: bool = setting(True, "whether")
    most: int | None = setting(None, "unset is no limit", 1, kind=int)


def test_defaults_and_the_ends_of_the_limits_pass():
    assert Some() == Some(5, 0.5, 3, 7, 1.0, "fast", True, None)
    Some(k=1, share=0, deep=MOST, size=MOST_COUNTED, factor=-MOST)
    Some(k=9, share=1, most=1, factor=MOST)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": 0}, "k is from 1 to 9, not 0: type --set k=5"),
        ({"k": 10}, "k is from 1 to 9, not 10"),
        ({"deep": 1}, "deep is from 2 to 1048576, not 1: type --set deep=3"),
        ({"share": 1.5}, "share is from 0 to 1, not 1.5"),
        ({"share": float("nan")}, "share is from 0 to 1, not nan"),
        ({"most": 0}, "most is from 1 to 1048576, not 0: type --set most=1"),
        ({"most": "3"}, "most is a whole number, not '3'"),
        ({"most": 2.5}, "most is a whole number, not 2.5"),
        ({"k": None}, "k is a whole number, not None"),
        ({"k": 2.0}, "k is a whole number, not 2.0: type --set k=5"),
        ({"k": True}, "k is a whole number, not True"),
        ({"share": True}, "share is a number, not True"),
        ({"greedy": 1}, "greedy is true or false, not 1: type --set greedy=true"),
        ({"mode": 3}, "mode is a word, not 3"),
        ({"k": "5"}, "k is a whole number, not '5'"),
        ({"deep": MOST + 1}, "deep is from 2 to 1048576, not 1048577: type --set deep=3"),
        ({"deep": 10**5000}, "deep is from 2 to 1048576, not a number beyond 64 bits: type"),
        ({"size": 2**31}, "size is from 0 to 2147483647, not 2147483648: type --set size=7"),
        ({"factor": float("inf")}, "factor is from -1048576 to 1048576, not inf: type --set factor=1.0"),
        ({"factor": float("nan")}, "not nan"),
        ({"factor": 1e308}, r"not 1e\+308"),
        ({"factor": 10**400}, "not a number beyond 64 bits"),
        ({"mode": ["x" * 500]}, "mode is a word, not .{1,50}…: type --set mode=fast$"),
    ],
)
def test_what_is_refused_says_what_to_type(wrong: dict[str, object], message: str):
    with pytest.raises(UsageError, match=message):
        Some(**wrong)


def test_settings_cannot_be_changed():
    with pytest.raises(AttributeError):
        Some().k = 3  # type: ignore[misc]


def test_infinity_is_no_limit_that_lets_infinity_pass():
    @dataclass(frozen=True, slots=True)
    class Open(Settings):
        factor: float = setting(1.0, "anything", high=float("inf"))

    Open(factor=1e300)
    with pytest.raises(UsageError, match="not inf"):
        Open(factor=float("inf"))
