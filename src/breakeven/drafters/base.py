"""Drafter: given the tokens so far, which tokens would this engine have it verify next?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.settings import Settings
from breakeven.drafters.tokens import Tokens

Ids = NDArray[np.int32]
"""Token ids, shape (length,)."""
S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, slots=True)
class Tree:
    """A draft with branches. The accepted part is the path from the root that the target's tokens follow."""

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    """parents[i] < i is the index of the node before node i; −1 is the end of the context."""


Draft = Sequence[int] | Tree


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends a request on its server, as far as drafts are cut by it; None is no limit known."""

    max_tokens: int | None = None
    """Output tokens that the request asked for at most."""
    max_model_len: int | None = None
    """Tokens of prompt and output that the server has room for."""


class Drafter(ABC, Generic[S]):
    """One engine's drafter with its settings, and what it has learned so far.

    A replay calls `begin`, then in each decode step `propose` and, if the draft was not empty, `accept`, then
    `end`; requests follow one another. A class of one's own needs `Config`, `propose`, and a `name`.
    """

    name: ClassVar[str]
    """Such as vllm-ngram: the engine, then the method."""
    engine: ClassVar[str] = "own"
    """As a run names the engine that served it, such as vllm or llama.cpp; "none" for what no engine has."""
    summary: ClassVar[str] = ""
    """One line for `breakeven drafters`."""
    Config: ClassVar[type[Settings]]
    learns: bool = False
    """Keeps what it saw from one request to the next, so that the order of the requests matters."""
    steps_matter: ClassVar[bool] = False
    """A draft depends on where earlier steps ended, not only on the tokens: no per-position table exists."""
    compiled: ClassVar[bool] = False
    """Its loops are compiled where numba is installed, and are slow without."""

    def __init__(self, settings: S) -> None:
        self.settings = settings

    def begin(self, prompt: Ids, limits: Limits) -> None:
        """A request starts, its prompt is in the cache; nothing is generated yet."""

    @abstractmethod
    def propose(self, context: Ids, room: int) -> Draft:
        """The draft for a context (prompt and output so far) that ends here; at most `room` tokens deep."""

    def accept(self, accepted: int) -> None:
        """Of the draft just proposed, which was not empty, so many tokens were accepted."""

    def end(self, context: Ids) -> None:
        """The request ended; `context` is its whole prompt and output."""

    def room(self, context_tokens: int, output_tokens: int, limits: Limits) -> int:
        """Most tokens that the engine lets this step draft, whatever the drafter's k; 0 or less is none."""
        return 2**31 - 1

    def warnings(self) -> tuple[str, ...]:
        """What about these settings would surprise who set them."""
        return ()

    def flags(self) -> str:
        """The words that turn it on with these settings in its engine; empty if it has none."""
        return ""


@dataclass(frozen=True, slots=True)
class Table:
    """For each output position, the draft made if the context ended just before that token.

    Shape (positions,), over all requests of a Tokens in turn, as Tokens.positions counts them. It exists for
    drafters whose draft depends on the tokens alone; then every way to step through the record reads from it.
    """

    drafted: NDArray[np.int32]
    """Tokens in the draft; 0 is no draft."""
    accepted: NDArray[np.int32]
    """Of them, how many the recorded output goes on with; clipped at the end of the record."""


class TableDrafter(Drafter[S]):
    """A drafter that can fill its Table at once, by compiled loops."""

    @abstractmethod
    def table(self, tokens: Tokens) -> Table:
        """What `propose` would draft at every output position, for the requests in their order."""

    def stepped(self, tokens: Tokens, first: int) -> Table:
        """As `table`, but only where steps fall if each request's begin after `first` output tokens.

        What stands at other positions means nothing. Overridden where drafts cost more than a look-up.
        """
        return self.table(tokens)

    @classmethod
    def tables(cls, tokens: Tokens, settings: Sequence[S]) -> Iterator[Table]:
        """One Table for each of the settings, in their order; overridden where they can share work."""
        for one in settings:
            yield cls(one).table(tokens)
