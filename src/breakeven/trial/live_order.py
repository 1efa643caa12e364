"""In which order one server is measured with and without the change, and which repeats pair up.

A repeat is every prompt once. Only one side is up at a time, so a pair's two replies are minutes or hours
apart; what makes up for that is the order of the repeats:

    AB     A 0 1 2 3                    B 0 1 2 3
    ABA    A 0 1    B 0 2 1 3    A 2 3
    ABBA   A 0 1    B 0 2    B 1 3    A 2 3      the candidate is restarted in between

With ABA and ABBA half of the candidate's repeats pair up with the baseline before it and half with the one
after it, whenever the candidate stops between two such pairs: a steady drift of the machine falls on both
sides alike. AB has nothing against drift.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal, get_args

from breakeven.errors import UsageError
from breakeven.trace.records import RequestTrace

Order = Literal["AB", "ABA", "ABBA"]
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True, slots=True)
class Repeats:
    """Numbers of repeats, in the order in which they are asked."""

    before: tuple[int, ...]
    """Of the baseline as it was found."""
    candidate: tuple[tuple[int, ...], ...]
    """Of each start of the candidate."""

    def after(self, asked: Sequence[int]) -> tuple[int, ...]:
        """Of the baseline once it is back, where the candidate was asked those. Where all have a pair it is
        one that pairs up with nothing: it still tells whether the machine drifted."""
        return tuple(sorted(set(asked) - set(self.before))) or (len(self.before),)

    def is_balanced(self, asked: Sequence[int]) -> bool:
        """Whether as many pair up with the baseline before as with the one after it, if there is one."""
        with_before = len(set(asked) & set(self.before))
        has_after = any(n not in self.before for start in self.candidate for n in start)
        return not has_after or len(asked) == 2 * with_before


def whole_repeats(traces: Iterable[RequestTrace], prompts: int) -> int:
    """How many repeats were asked of all prompts, from the first on, whether or not they were answered."""
    asked: defaultdict[int, set[str]] = defaultdict(set)
    for trace in traces:
        asked[trace.repeat].add(trace.prompt_id)
    return next(n for n in count() if len(asked[n]) < prompts)


def before(order: Order, repeats: int) -> int:
    """How many of a side's repeats the baseline is asked at first, as it was found."""
    return repeats if order == "AB" else (repeats + 1) // 2


def planned(order: Order, repeats: int, asked: int) -> Repeats:
    """All of it, once the baseline has been asked the first `asked` repeats: as many as pair up with them.

    Raises UsageError where the baseline was asked none.
    """
    if not asked:
        raise UsageError("the baseline holds no whole repeat of the prompts: measure it again")
    first = tuple(range(min(asked, before(order, repeats))))
    if order == "AB":
        return Repeats(first, (first,))
    second = range(len(first), min(repeats, 2 * len(first)))
    paired = [(n, *second[n : n + 1]) for n in first]
    if order == "ABA":
        return Repeats(first, (tuple(n for pair in paired for n in pair),))
    half = (len(paired) + 1) // 2
    starts = (paired[:half], paired[half:])
    return Repeats(first, tuple(tuple(n for pair in part for n in pair) for part in starts if part))


def once(asked: int) -> Repeats:
    """Each prompt once only: for a candidate whose drafter remembers what it was asked."""
    return Repeats(tuple(range(asked)), ((0,),))
