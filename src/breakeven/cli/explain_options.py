"""What the options of `breakeven explain` take: shares, speeds, and parts of a step."""

from __future__ import annotations

import re
from typing import Any

import click

from breakeven.cli.cost_options import MOST_MS
from breakeven.errors import UsageError

MOST_SPEED = 1e9
"""Tokens per second, …"""
LEAST_SPEED = 1e3 / MOST_MS
"""… and one in eleven days: what is counted from speeds between the two stays finite."""
_SHARE = re.compile(r"([\d.]+)\s*(?:[-–]\s*([\d.]+))?\s*(%?)")


class Share(click.ParamType):  # type: ignore[type-arg]
    """A share or a range of it: 0.2, 0.17-0.31, 17-31%. Raises UsageError for what is none, or above 1."""

    name = "LOW[-HIGH]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        option = f"--{param.name.replace('_', '-')}" if param and param.name else "the share"
        try:
            low, high = _share(value)
        except ValueError:
            raise UsageError(f"{option} {value[:40]!r} is no share: type 0.2, 0.17-0.31 or 17-31%") from None
        if not 0 <= low <= high <= 1:
            raise UsageError(f"{option} {value} is out of range: type a share of 0 to 1, low first, or a %")
        return low, high


def _share(text: str) -> tuple[float, float]:
    found = _SHARE.fullmatch(text.strip())
    if found is None:
        raise ValueError
    low, high, percent = found.groups()
    unit = 100 if percent else 1
    return float(low) / unit, float(high or low) / unit


class Speeds(click.ParamType):  # type: ignore[type-arg]
    """NAME=BASELINE,CANDIDATE in tokens per second; the name may be left out.

    Raises UsageError for what is none, and for a speed that no model has.
    """

    name = "NAME=BASELINE,CANDIDATE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float, float]:
        name, separator, numbers = value.rpartition("=")
        try:
            baseline, candidate = (float(word) for word in numbers.split(","))
        except ValueError:
            raise UsageError(
                f"--speeds {value[:80]!r} is not NAME=BASELINE,CANDIDATE: type two numbers of tokens per "
                "second, such as  --speeds coding=62.6,46.4"
            ) from None
        name = name if separator else "measured"
        for speed in (baseline, candidate):
            if not LEAST_SPEED <= speed <= MOST_SPEED:
                raise UsageError(
                    f"--speeds {name[:40]}: {speed:g} tokens per second is no speed: type two numbers from "
                    f"{LEAST_SPEED:g} to {MOST_SPEED:g}"
                )
        return name, baseline, candidate


class Profiled(click.ParamType):  # type: ignore[type-arg]
    """PART=MS. Raises UsageError."""

    name = "PART=MS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float]:
        name, _, number = value.partition("=")
        try:
            return name, float(number) / 1e3
        except ValueError:
            raise UsageError(
                f"--profiled {value[:40]!r} is not PART=MS: type such as --profiled all_reduce=6.2"
            ) from None
