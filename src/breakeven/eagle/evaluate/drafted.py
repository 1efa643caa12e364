"""Drafted: what chains of k drafts did from every token of one reply on; raw counts by place in the chain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breakeven.eagle.sampling import passing


@dataclass(frozen=True, slots=True)
class Drafted:
    """Chains begin before each token of the reply but its first, and are fed with the tokens that came.

    Lists by place are of k numbers each; a place counts where the reply goes on so far.
    """

    accepted: list[int]
    """By token of the reply but its first: of the chain before it, the drafts before the first wrong one."""
    contexts: list[int]
    """By place: chains that have a token of the reply there."""
    agree: list[int]
    """Of them, those whose most probable token it is."""
    reached: list[int]
    """Those that agree at every place before."""
    passed: list[int]
    """Those that agree up to here and here."""
    overlap: list[float]
    """Sum over `contexts` of Σ min(p, q)."""
    survived: list[float]
    """Sum over `contexts` of Π min(1, q(x) / p(x)) up to this place, x being the reply's tokens."""
    greedy: int
    """Tokens of the reply but its first that the target finds most probable."""


def counted(
    agrees: NDArray[np.bool_],
    overlaps: NDArray[np.float64],
    ratios: NDArray[np.float64],
    greedy: int,
) -> Drafted:
    """From what every chain did at every place, each of shape (chains, k). Chain i begins before token i + 1
    of the reply, by which it is known what lies beyond the end.
    """
    chains, k = agrees.shape
    inside = np.arange(chains)[:, None] + np.arange(k) < chains
    passed = passing(agrees & inside)
    before = np.concatenate([np.ones((chains, 1), np.bool_), passed[:, :-1]], axis=1)
    return Drafted(
        accepted=passed.sum(axis=1).tolist(),
        contexts=inside.sum(axis=0).tolist(),
        agree=(agrees & inside).sum(axis=0).tolist(),
        reached=(before & inside).sum(axis=0).tolist(),
        passed=passed.sum(axis=0).tolist(),
        overlap=np.where(inside, overlaps, 0.0).sum(axis=0).tolist(),
        survived=np.where(inside, np.cumprod(ratios, axis=1), 0.0).sum(axis=0).tolist(),
        greedy=greedy,
    )
