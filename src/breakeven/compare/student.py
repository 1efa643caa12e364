"""Quantiles of Student's t and of the normal distribution, for any positive degrees of freedom."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_TINY = 1e-300
_NORMAL = NormalDist()


@lru_cache(maxsize=4096)
def t_quantile(tail: float, dof: float) -> float:
    """The t with `tail` of the distribution above it, 0 < tail < 0.5; dof need not be whole.

    Found by bisection on the tail probability, which is half the regularised incomplete beta function
    (Abramowitz & Stegun 26.7.1), to a relative error below 1e-9.
    """
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _upper_tail(math.expm1(middle), dof) > tail else (low, middle)
    return math.expm1((low + high) / 2)


def z_quantile(tail: float) -> float:
    """The standard normal value with `tail` of the distribution above it."""
    return -_NORMAL.inv_cdf(tail)


def _upper_tail(t: float, dof: float) -> float:
    if t == 0:
        return 0.5
    square = t * t
    return _incomplete_beta(dof / 2, 0.5, dof / (dof + square), square / (dof + square)) / 2


def _incomplete_beta(a: float, b: float, x: float, complement: float) -> float:
    """I_x(a, b); `complement` is 1 − x, given apart so that neither end loses digits."""
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log_front + a * math.log(x) + b * math.log(complement))
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, complement) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """The fraction of A&S 26.5.8, evaluated from the front (Lentz 1976)."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or _TINY)
    value = d
    for m in range(1, 500):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d or _TINY)
            c = 1 + term / c or _TINY
            value *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return value
