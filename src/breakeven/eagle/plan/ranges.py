"""Arithmetic of intervals of positive figures that are not known to hang together: ends meet ends."""

from __future__ import annotations

from math import prod

from breakeven.interval import Interval


def exactly(value: float) -> Interval:
    """Of a figure that is known."""
    return Interval(value, value, value)


def product(*factors: Interval) -> Interval:
    """The least is the product of the least."""
    return Interval(
        prod(one.estimate for one in factors),
        prod(one.low for one in factors),
        prod(one.high for one in factors),
    )


def quotient(of: Interval, by: Interval) -> Interval:
    """The least is the least divided by the most."""
    return Interval(of.estimate / by.estimate, of.low / by.high, of.high / by.low)


def total(*parts: Interval) -> Interval:
    """The least is the sum of the least."""
    return Interval(
        sum(one.estimate for one in parts), sum(one.low for one in parts), sum(one.high for one in parts)
    )
