"""Steps: the decode steps that a server with this drafter would have made to emit a recorded output."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.base import Draft, Drafter, Limits, Table, TableDrafter, Tree
from breakeven.drafters.tokens import UNLIMITED, Tokens
from breakeven.errors import UsageError


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of some requests, one after another. A lossless drafter changes none of the tokens."""

    counts: NDArray[np.int64]
    """Steps of each request; shape (requests,)."""
    at: NDArray[np.int64]
    """The output position whose token the step would emit without a draft, counted through all requests as
    in Tokens.positions; shape (steps,)."""
    drafted: NDArray[np.int32]
    """Shape (steps,)."""
    accepted: NDArray[np.int32]
    """Shape (steps,); clipped at the end of the record."""


def step_through(drafter: Drafter[Any], tokens: Tokens, first: int) -> Steps:
    """Step through each request after its `first` output tokens, in order.

    Raises UsageError where a drafter of the user's own fails.
    """
    if isinstance(drafter, TableDrafter):
        table = _table(drafter, lambda: drafter.stepped(tokens, first), tokens)
        return walk_table(table, tokens, first)
    found = [
        one_request(drafter, ids, prompt_tokens, limits, first)
        for (ids, prompt_tokens), limits in zip(tokens.contexts(), _limits(tokens), strict=True)
    ]
    joined = np.concatenate([np.zeros((0, 3), np.int64), *found])
    counts = np.array([len(steps) for steps in found], np.int64)
    at = joined[:, 0] + np.repeat(tokens.positions[:-1], counts)
    return Steps(counts, at, joined[:, 1].astype(np.int32), joined[:, 2].astype(np.int32))


def walk_table(table: Table, tokens: Tokens, first: int) -> Steps:
    """The steps of requests whose drafts are known for every position."""
    from breakeven.replay._walk import walk

    at = np.empty(len(table.accepted), np.int64)
    counts = np.empty(len(tokens), np.int64)
    at = at[: walk(table.accepted, tokens.positions, first, at, counts)]
    return Steps(counts, at, table.drafted[at], table.accepted[at])


def table_of(drafter: Drafter[Any], tokens: Tokens) -> Table:
    """What a drafter whose drafts depend on the tokens alone proposes at every output position."""
    if isinstance(drafter, TableDrafter):
        return _table(drafter, lambda: drafter.table(tokens), tokens)
    rows: list[tuple[int, int]] = []
    for (ids, prompt_tokens), limits in zip(tokens.contexts(), _limits(tokens), strict=True):
        with _blaming(drafter):
            drafter.begin(ids[:prompt_tokens], limits)
            positions = range(len(ids) - prompt_tokens)
            rows += [_drafted(drafter, ids, prompt_tokens, p, limits) for p in positions]
            drafter.end(ids)
    drafted, accepted = np.array(rows, np.int32).reshape(-1, 2).T
    return Table(drafted, accepted)


def _table(drafter: TableDrafter[Any], make: Callable[[], Table], tokens: Tokens) -> Table:
    with _blaming(drafter):
        table = make()
        if is_own(drafter):
            check_table(table, tokens)
    return table


def one_request(
    drafter: Drafter[Any], ids: NDArray[np.int32], prompt_tokens: int, limits: Limits, first: int
) -> NDArray[np.int64]:
    """Position, drafted and accepted tokens of each step of one request; shape (steps, 3)."""
    ids = ids.view()
    ids.flags.writeable = False
    steps = []
    p = first
    with _blaming(drafter):
        drafter.begin(ids[:prompt_tokens], limits)
        while prompt_tokens + p < len(ids):
            drafted, accepted = _drafted(drafter, ids, prompt_tokens, p, limits)
            if drafted:
                drafter.accept(accepted)
            steps.append((p, drafted, accepted))
            p += accepted + 1
        drafter.end(ids)
    return np.array(steps, np.int64).reshape(-1, 3)


def _drafted(
    drafter: Drafter[Any], ids: NDArray[np.int32], prompt_tokens: int, p: int, limits: Limits
) -> tuple[int, int]:
    """Tokens drafted and accepted where the output so far is of p tokens."""
    end = prompt_tokens + p
    room = drafter.room(end, p, limits)
    if room <= 0:
        return 0, 0
    draft = drafter.propose(ids[:end], room)
    if is_own(drafter):
        draft = checked(draft)
    if isinstance(draft, Tree):
        return len(draft.tokens), min(accepted_of(draft, ids[end:]), room)
    draft = draft[:room]
    return len(draft), accepted_of(draft, ids[end:])


def accepted_of(draft: Draft, following: Sequence[int] | NDArray[np.int32]) -> int:
    """How many tokens of the draft the record goes on with: its longest prefix, or path in the tree."""
    if isinstance(draft, Tree):
        return _accepted_path(draft, following)
    accepted = 0
    for drafted, token in zip(draft, following, strict=False):
        if drafted != token:
            break
        accepted += 1
    return accepted


def _accepted_path(tree: Tree, following: Sequence[int] | NDArray[np.int32]) -> int:
    node, accepted = -1, 0
    for token in following:
        matching = (i for i, child in enumerate(tree.tokens) if tree.parents[i] == node and child == token)
        child = next(matching, None)
        if child is None:
            break
        node, accepted = child, accepted + 1
    return accepted


def is_own(drafter: Drafter[Any]) -> bool:
    """Whether it is a class of the user's, whose drafts and failures are the user's too."""
    return drafter.engine == Drafter.engine


def checked(draft: Any) -> Draft:
    """The draft of a user's drafter in the types that it should have. Raises TypeError or ValueError."""
    if isinstance(draft, Tree):
        if len(draft.tokens) != len(draft.parents):
            raise ValueError("its Tree has another number of parents than tokens")
        if any(not -1 <= parent < i for i, parent in enumerate(draft.parents)):
            raise ValueError("a node of its Tree stands before its parent")
        return Tree(tuple(_ids(draft.tokens)), draft.parents)
    if draft is None or isinstance(draft, str | bytes):
        raise TypeError(f"propose gave {draft!r}, not a list of token ids")
    return _ids(draft)


def check_table(table: Table, tokens: Tokens) -> None:
    """Raises ValueError for a Table that no drafter can have meant."""
    left = tokens.remaining
    for column in (table.drafted, table.accepted):
        if column.shape != left.shape or column.dtype.kind not in "iu":
            raise ValueError(f"its Table must have integers of shape {left.shape}")
    if (table.accepted < 0).any() or (table.accepted > np.minimum(table.drafted, left)).any():
        raise ValueError("its Table accepts more tokens than were drafted, than are left, or than none")


def _ids(tokens: Iterable[Any]) -> list[int]:
    return [operator.index(token) for token in tokens]


@contextmanager
def _blaming(drafter: Drafter[Any]) -> Iterator[None]:
    """Turns what goes wrong in a drafter of the user's own into a UsageError."""
    try:
        yield
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        if not is_own(drafter):
            raise
        raise UsageError(
            f"{drafter.name} failed ({type(error).__name__}: {error}): mend the class"
        ) from error


def _limits(tokens: Tokens) -> list[Limits]:
    return [
        Limits(_known(most), _known(room))
        for most, room in zip(tokens.max_tokens, tokens.max_model_len, strict=True)
    ]


def _known(limit: int) -> int | None:
    return None if limit == UNLIMITED else int(limit)
