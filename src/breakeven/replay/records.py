"""What goes into a replay (recorded requests) and what comes out (counts per request, category, setting)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.record import Acceptance

FirstToken = Literal["prefill", "replayed"]
"""Where stepping starts: after the first output token, which a server's prefill gives; or before it."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request with the tokens that went in and came out."""

    id: str
    category: str
    prompt: NDArray[np.int32]
    output: NDArray[np.int32]
    """One token or more."""
    answer_from: int | None = None
    """How many of the output's tokens are reasoning; None where the record does not tell."""
    max_tokens: int | None = None
    max_model_len: int | None = None
    recorded: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    """As Tokens.recorded, for this request; shape (len(output),)."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where recorded requests come from, and what must be said beside every figure made from them."""

    path: str
    kind: Literal["run", "trial", "jsonl", "parquet", "text"]
    temperature: float | None
    """Of the sampling that gave the outputs; None is unknown. Above 0 a replay's meaning changes."""
    ids: Literal["recorded", "server tokenizer", "tokenizer"] = "recorded"
    """Whether the server reported the ids, or a tokenizer made them again from text."""
    engine: str | None = None
    """What served the outputs, as Drafter.engine; None is unknown."""


@dataclass(frozen=True, slots=True)
class RequestReplay:
    """One request's counts."""

    id: str
    category: str
    output_tokens: int
    emitted_tokens: int
    counters: SpecCounters
    histogram: NDArray[np.int64]
    """Rows (drafted, accepted, steps with both); shape (distinct, 3)."""
    accepted_lengths: NDArray[np.int32] | None = None
    """Asked for with per_position: draft tokens accepted if the context ended before each output token."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A drafter on a record."""

    drafter: str
    settings: Mapping[str, Any]
    flags: str
    """What turns the drafter on in its engine; empty if nothing does."""
    engine: str
    """Which has this drafter, as Drafter.engine."""
    learns: bool
    """Whether the drafter, with these settings, keeps what it saw for later requests."""
    origin: Origin
    first_token: FirstToken
    total: Acceptance
    by_category: Mapping[str, Acceptance]
    requests: tuple[RequestReplay, ...]
    skipped: Mapping[str, int]
    """Records that could not be replayed, counted by the reason."""
    warnings: tuple[str, ...]
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One setting of a sweep."""

    drafter: str
    settings: Mapping[str, Any]
    flags: str
    counters: SpecCounters
    tokens_per_step: float
    engine: str
    learns: bool
    """These two as in Replay."""
    pareto: bool
    """On the front of tokens per step and acceptance rate: no other row is better in one of the two and at
    least as good in the other; of equals the first."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Many settings on one record, best first by tokens per step."""

    origin: Origin
    first_token: FirstToken
    requests: int
    output_tokens: int
    rows: tuple[SweepRow, ...]
    """One or more."""
    skipped: Mapping[str, int]
    warnings: tuple[str, ...]
    elapsed_s: float

    @property
    def best_of_engine(self) -> SweepRow | None:
        """The best row of a drafter that the engine of the record has; None if none, or it is unknown."""
        return next((row for row in self.rows if row.engine == self.origin.engine), None)

    @property
    def suggested(self) -> SweepRow:
        """The row to try next: the best on the record's engine, else the best of all."""
        return self.best_of_engine or self.rows[0]
