"""Random tokens: prompts that are no text, of which no acceptance follows for prompts that are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import UsageError
from breakeven.replay.sources import Source

Ids = NDArray[np.int32]

COMMONEST = 20
LEAST_SHARE = 0.12
"""Of all prompt tokens, that the COMMONEST ids make up.

In text and code, chat template left out (see own_tokens): 0.25 of 98,980 tokens of ShareGPT prompts and
0.35 of 17,544 of GSM8K ones (Llama 3's ids; in the least of 200 windows of 500 tokens 0.20 and 0.34), 0.38 of
1,182 tokens of the built-in set `default` (SmolLM2's ids). Of ids drawn evenly from 32,000 or more: 0.05 of
500 tokens, 0.02 of 2,000; from 1,000 ids, 0.10 and 0.06.
"""
IN_TEXT = 0.2
"""At least, as measured above."""
LEAST_TOKENS = 500
"""Fewer tell nothing: so few random ids repeat by chance as often as words of a short text do."""
ENOUGH_TOKENS = 20_000
"""As many are looked at, at most."""


def refuse_random_prompts(source: Source) -> None:
    """Raises UsageError if the prompts of a record are random ids rather than text; reads its beginning only.

    Each different prompt counts once, without what all begin and end with: a chat template is text around
    anything. Fewer than LEAST_TOKENS are not judged.
    """
    ids = own_tokens(_beginning(source))
    if len(ids) < LEAST_TOKENS:
        return
    share = commonest_share(ids)
    if share < LEAST_SHARE:
        raise UsageError(
            f"the prompts of {source.origin.path} look like random tokens (the {COMMONEST} commonest make up "
            f"{share:.1%} of {len(ids):,}; in text it is {IN_TEXT:.0%} at least): what a drafter guesses "
            "after them says nothing of real requests; record real ones: type  breakeven measure --url URL "
            "--prompts FILE --token-ids"
        )


def commonest_share(ids: Ids) -> float:
    """Of the tokens, how many are one of the COMMONEST ids; at least one token."""
    counts = np.sort(np.unique(ids, return_counts=True)[1])
    return float(counts[-COMMONEST:].sum() / len(ids))


def own_tokens(prompts: Iterable[Ids]) -> Ids:
    """Of the different prompts together, what not all of them begin or end with."""
    different = list({prompt.tobytes(): prompt for prompt in prompts if len(prompt)}.values())
    if len(different) < 2:
        return different[0] if different else np.zeros(0, np.int32)
    head = _shared(different)
    rest = [prompt[head:] for prompt in different]
    tail = _shared([prompt[::-1] for prompt in rest])
    return np.concatenate([prompt[: len(prompt) - tail] for prompt in rest])


def _shared(prompts: list[Ids]) -> int:
    """Tokens that all begin with."""
    first, *others = prompts
    shared = min(map(len, prompts))
    for other in others:
        differ = np.flatnonzero(first[:shared] != other[:shared])
        shared = int(differ[0]) if len(differ) else shared
    return shared


def _beginning(source: Source) -> list[Ids]:
    """Prompts of the first requests, until they have ENOUGH_TOKENS."""
    found, tokens = [], 0
    for request in source:
        found.append(request.prompt)
        tokens += len(request.prompt)
        if tokens >= ENOUGH_TOKENS:
            break
    return found
