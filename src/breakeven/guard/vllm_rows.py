"""Rows: which request is in which row of vLLM's batch, told by its tokens, as a drafter gets no names.

Rows move when the batch is condensed or reordered; a row's request may end and another take its place between
two calls. A request is known again by the number of its tokens before the step and by some of them where it
stood in the same row, by all of them elsewhere. Two requests with the same tokens are the same to a drafter:
which of the two states goes on with which of them makes no difference.

One that is absent from a call has ended, was preempted, or was not scheduled: vLLM does not say which. It is
parked: its index is dropped, and a digest of its tokens kept, with which a preempted one comes back.

One that has the tokens of a known one and more may be that one, after steps without a call, or the next turn
of its conversation. It gets the index, and an account of its own: what the turn before it saved is not lost
on it, and a request whose account begins again can lose no larger share of its time than before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.compiler import kernel
from breakeven.guard.match_index import Int32s, LongestMatch
from breakeven.guard.policy import RequestState

MOST_PARKED = 256
"""Requests; the one parked first is forgotten."""
MOST_NEW = 512
"""Tokens that a context may have more than a known one whose index it gets. vLLM calls no drafter while any
request of the batch is within a draft of the end of max_model_len."""
TAIL, SPREAD = 32, 32
"""Tokens compared of a request in its own row: the last ones, and some from all over it."""

Key = tuple[int, bytes]
End = tuple[int, ...]
"""How many tokens a context has, and the last of them."""


@dataclass(slots=True)
class Row:
    """A request that is being decoded."""

    index: LongestMatch
    state: RequestState
    draft: tuple[int, ...] = ()
    """What it was given in the last call."""
    continued: bool = False
    """Whether this call's step is the one after the last call's."""
    cut: bool = False
    """Whether that step verified less than the draft, as far as can be seen."""
    cuts: bool = False
    """Whether one of its drafts was cut."""
    emitted: int = 0
    """Tokens that this call's step gave it."""

    @property
    def given(self) -> int:
        """Tokens of the draft."""
        return len(self.draft)

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
    """Whether something else than the last call's drafts was computed since: prompts, less of a draft, or
    steps that no call was for."""


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
        emitted = [len(new) for new in sampled]
        begins = [int(count) - new for count, new in zip(counts, emitted, strict=False)]
        found = [
            self._in_place(row, begin, ids) if new else None
            for row, (begin, new) in enumerate(zip(begins, emitted, strict=True))
        ]
        left = self._left(found)
        for row, new in enumerate(emitted):
            if new and found[row] is None:
                found[row] = self._elsewhere(left, ids[row, : begins[row]])
        for one in chain(*left.values()):
            self._park(one)
        self._rows = tuple(found)
        for row, request in enumerate(found):
            if request is not None:
                _go_on(request, ids[row], begins[row], emitted[row])
        whole = all(request is not None and request.continued and not request.cut for request in found)
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

    def _left(self, found: Sequence[Row | None]) -> dict[End, list[Row]]:
        """Of the last call's requests, those not found in their rows.

        By their ends, as each new one is looked for among them, and a whole batch may change at once."""
        stay = {id(row) for row in found}
        left: dict[End, list[Row]] = {}
        for row in self._rows:
            if row is not None and id(row) not in stay:
                left.setdefault(_end(row.index.tokens), []).append(row)
        return left

    def _elsewhere(self, left: dict[End, list[Row]], context: Int32s) -> Row:
        """The request with this context: from another row, where it is taken out of `left`, or a new one."""
        return (
            _moved(left, context)
            or self._come_back(context)
            or self._longer(left, context)
            or Row(LongestMatch(*self._lengths, len(context)), self._begin())
        )

    def _come_back(self, context: Int32s) -> Row | None:
        if not any(tokens == len(context) for tokens, _ in self._parked):
            return None
        state = self._parked.pop(_key(context), None)
        return None if state is None else Row(LongestMatch(*self._lengths, len(context)), state)

    def _longer(self, left: dict[End, list[Row]], context: Int32s) -> Row | None:
        """The one with most of the context's begin, with a new account."""
        near = {tokens for tokens, _ in left if 0 < len(context) - tokens <= MOST_NEW}
        for tokens in sorted(near, reverse=True):
            row = _taken(left, context[:tokens])
            if row is not None:
                self._end(row.state)
                return Row(row.index, self._begin())
        return None

    def _park(self, row: Row) -> None:
        key = _key(row.index.tokens)
        twin = self._parked.pop(key, None)
        if twin is not None:
            self._end(twin)
        self._parked[key] = row.state
        if len(self._parked) > MOST_PARKED:
            _, oldest = self._parked.popitem(last=False)
            self._end(oldest)


def _moved(left: dict[End, list[Row]], context: Int32s) -> Row | None:
    row = _taken(left, context)
    if row is not None:
        row.continued = True
    return row


def _taken(left: dict[End, list[Row]], context: Int32s) -> Row | None:
    """The row that has exactly these tokens, out of `left`."""
    alike = left.get(_end(context), [])
    for row in alike:
        if np.array_equal(row.index.tokens, context):
            alike.remove(row)
            return row
    return None


def _end(context: Int32s) -> End:
    return len(context), *context[-1:].tolist()


def _go_on(row: Row, ids: Int32s, begin: int, emitted: int) -> None:
    """Learn what a request got since the last call; ids has its tokens, shape (max_model_len,).

    vLLM drops of a draft what a grammar does not allow, and what no more fits into a step, and tells nobody.
    But it writes what it verifies to where the step's tokens will be, from `begin` on, and what is rejected
    stays behind them (gpu_input_batch.py, update_req_spec_token_ids). Nor does a step end before its draft
    with tokens that are all the draft's. Where neither shows, a request whose drafts were cut before is not
    trusted.
    """
    seen = tuple(ids[begin : begin + row.given].tolist())
    if seen[emitted:] != row.draft[emitted:] or (seen == row.draft and emitted <= row.given):
        row.cut = row.cuts = True
    else:
        row.cut = row.cuts and row.given == emitted
    row.index.append(ids[len(row.index) : begin + emitted])
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
