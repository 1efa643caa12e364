"""Rows: which request is in which row of vLLM's batch, told by its tokens, as a drafter gets no names.

Rows move when the batch is condensed or reordered; a row's request may end and another take its place between
two calls. A request is known again by the number of its tokens before the step and by some of them where it
stood in the same row, by all of them elsewhere. Two requests with the same tokens are the same to a drafter:
which of the two states goes on with which of them makes no difference.

One that is absent from a call has ended, was preempted, or was not scheduled: vLLM does not say which. It is
parked: its index is dropped, and a digest of its tokens kept, with which a preempted one comes back.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.compiler import kernel
from breakeven.guard.match_index import Int32s, LongestMatch
from breakeven.guard.policy import RequestState

MOST_PARKED = 256
"""Requests; the one parked first is forgotten."""
MOST_UNSEEN = 512
"""Tokens that a request may have got since the last call. vLLM calls no drafter while any request of the
batch is within a draft of the end of max_model_len."""
TAIL, SPREAD = 32, 32
"""Tokens compared of a request in its own row: the last ones, and some from all over it."""

Key = tuple[int, bytes]


@dataclass(slots=True)
class Row:
    """A request that is being decoded."""

    index: LongestMatch
    state: RequestState
    given: int = 0
    """Tokens of the draft that it was given in the last call."""
    continued: bool = False
    """Whether this call's step verified just that draft."""
    emitted: int = 0
    """Tokens that this call's step gave it."""

    @property
    def last(self) -> Int32s:
        """The emitted tokens: a view, shape (emitted,)."""
        return self.index.tokens[len(self.index) - self.emitted :]


@dataclass(frozen=True, slots=True)
class Batch:
    """What one call found."""

    rows: tuple[Row | None, ...]
    """None for a prompt that is not computed to its end."""
    prefill: bool
    """Whether more than the last call's drafts was computed since: prompts, or steps that no call was for."""


class Rows:
    """All requests that are decoded, and those that may come back."""

    def __init__(
        self,
        begin: Callable[[], RequestState],
        end: Callable[[RequestState], None],
        least_match: int,
        most_match: int,
    ) -> None:
        """`begin` makes the state of a new request, and `end` is told of one that is forgotten."""
        self._begin, self._end = begin, end
        self._lengths = least_match, most_match
        self._rows: tuple[Row | None, ...] = ()
        self._parked: OrderedDict[Key, RequestState] = OrderedDict()

    def take(
        self, sampled: Sequence[Sequence[int]], counts: NDArray[np.int32], ids: NDArray[np.int32]
    ) -> Batch:
        """The requests of a call to `propose`, with their new tokens learned.

        `sampled` has the tokens that the step gave each row, `counts`, shape (rows,), its tokens with these,
        and `ids`, shape (rows, max_model_len), the tokens.
        """
        ends = [int(count) for count in counts[: len(sampled)]]
        found = [
            self._in_place(row, ends[row] - len(new), ids) if new else None for row, new in enumerate(sampled)
        ]
        left = self._left(found)
        missing = [row for row, new in enumerate(sampled) if new and found[row] is None]
        for row in missing:
            context = ids[row, : ends[row] - len(sampled[row])]
            found[row] = _take_out(left, context) or self._come_back(context) or self._new(ends[row])
        for one in left:
            self._park(one)
        self._rows = tuple(found)
        for row, request in enumerate(found):
            if request is not None:
                _go_on(request, ids[row], ends[row], len(sampled[row]))
        whole = all(request is not None and request.continued for request in found)
        return Batch(self._rows, not whole)

    def forget(self) -> None:
        """All requests."""
        for row in self._rows:
            if row is not None:
                self._end(row.state)
        for state in self._parked.values():
            self._end(state)
        self._rows = ()
        self._parked.clear()

    def _in_place(self, row: int, before: int, ids: NDArray[np.int32]) -> Row | None:
        """The request that was in this row in the last call, if it still is."""
        known = self._rows[row] if row < len(self._rows) else None
        if (
            known is None
            or len(known.index) != before
            or not _looks_alike(ids, row, known.index.buffer, before)
        ):
            return None
        known.continued = True
        return known

    def _left(self, found: Sequence[Row | None]) -> list[Row]:
        """Of the last call's requests, those not found in their rows."""
        stay = {id(row) for row in found}
        return [row for row in self._rows if row is not None and id(row) not in stay]

    def _come_back(self, context: Int32s) -> Row | None:
        if not any(tokens == len(context) for tokens, _ in self._parked):
            return None
        state = self._parked.pop(_key(context), None)
        return None if state is None else self._row(state, len(context))

    def _new(self, tokens: int) -> Row:
        return self._row(self._begin(), tokens)

    def _row(self, state: RequestState, tokens: int) -> Row:
        return Row(LongestMatch(*self._lengths, tokens), state)

    def _park(self, row: Row) -> None:
        key = _key(row.index.tokens)
        twin = self._parked.pop(key, None)
        if twin is not None:
            self._end(twin)
        self._parked[key] = row.state
        if len(self._parked) > MOST_PARKED:
            _, oldest = self._parked.popitem(last=False)
            self._end(oldest)


def _take_out(left: list[Row], context: Int32s) -> Row | None:
    """The row whose request has just this context, or the longest with the beginning of it."""
    near = [row for row in left if 0 <= len(context) - len(row.index) <= MOST_UNSEEN]
    for row in sorted(near, key=lambda row: len(row.index), reverse=True):
        if np.array_equal(context[: len(row.index)], row.index.tokens):
            left.remove(row)
            row.continued = len(row.index) == len(context)
            return row
    return None


def _go_on(row: Row, ids: Int32s, end: int, emitted: int) -> None:
    """Learn what a request got since the last call; ids has its tokens, shape (max_model_len,)."""
    row.index.append(ids[len(row.index) : end])
    row.emitted = emitted


def _key(context: Int32s) -> Key:
    return len(context), blake2b(np.ascontiguousarray(context).data, digest_size=16).digest()


@kernel
def _looks_alike(ids: NDArray[np.int32], row: int, context: Int32s, count: int) -> bool:
    """Whether the first `count` tokens of a row are those of the context, as far as some of them tell."""
    for p in range(max(count - TAIL, 0), count):
        if ids[row, p] != context[p]:
            return False
    for p in range(0, count, count // SPREAD + 1):  # noqa: SIM110 a loop is what compiles
        if ids[row, p] != context[p]:
            return False
    return True
