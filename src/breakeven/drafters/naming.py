"""Naming: settings of a drafter in words, the same wherever they are read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

RANGE = ("min_n", "max_n")
ALWAYS = frozenset({"k", "n", *RANGE})
"""Settings that are named even where they do not vary."""


def varying(settings: Iterable[Mapping[str, Any]]) -> set[str]:
    """Names of the settings in which these differ."""
    every = list(settings)
    names = dict.fromkeys(name for one in every for name in one)
    return {name for name in names if any(one.get(name) != every[0].get(name) for one in every)}


def settings_words(settings: Mapping[str, Any], only: Collection[str] | None = None) -> str:
    """`k=5 n=2–4`: a pair of shortest and longest n-gram as a range; of the settings in `only`, if given."""
    names = list(settings)
    if all(name in settings for name in RANGE):
        names.remove("max_n")
    return " ".join(_word(name, settings) for name in names if _wanted(name, settings, only))


def value_words(value: Any) -> str:
    """A setting's value as it is typed after `--set NAME=`."""
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _wanted(name: str, settings: Mapping[str, Any], only: Collection[str] | None) -> bool:
    return only is None or name in only or (name == "min_n" and "max_n" in settings and "max_n" in only)


def _word(name: str, settings: Mapping[str, Any]) -> str:
    if name != "min_n" or "max_n" not in settings:
        return f"{name}={value_words(settings[name])}"
    low, high = (value_words(settings[end]) for end in RANGE)
    return f"n={low}" if low == high else f"n={low}–{high}"
