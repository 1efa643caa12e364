"""Expert coverage by its definition: every window, every choice of sequences and of a token in each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from statistics import mean

Token = Sequence[Sequence[int]]
"""Experts by layer."""


def distinct(tokens: Sequence[Token]) -> float:
    """The mean over layers."""
    layers = range(len(tokens[0]))
    return mean(len({expert for token in tokens for expert in token[layer]}) for layer in layers)


def of_neighbours(sequences: Sequence[Sequence[Token]], tokens: int) -> float:
    return mean(
        distinct(one[start : start + tokens]) for one in sequences for start in range(len(one) - tokens + 1)
    )


def of_sequences(sequences: Sequence[Sequence[Token]], tokens: int) -> float:
    """A choice of sequences counts once, however many tokens they have."""
    return mean(
        mean(distinct(choice) for choice in product(*chosen)) for chosen in combinations(sequences, tokens)
    )
