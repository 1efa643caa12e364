"""vllm-ngram: vLLM's prompt lookup.

Semantics from vLLM 0.32, `vllm/v1/spec_decode/ngram_proposer.py` (drafts), `vllm/config/speculative.py`
(settings), `vllm/v1/core/sched/scheduler.py` (room).

The longest of the context's last max_n to min_n tokens that occurred before, at its first occurrence: the k
tokens that followed there, or as many as there are up to the end of the context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from breakeven.drafters import vllm_common
from breakeven.drafters._ngram_tables import earlier_ends, first_occurrences
from breakeven.drafters.base import Ids, Limits, Table, TableDrafter
from breakeven.drafters.settings import Settings, setting
from breakeven.drafters.tokens import Tokens
from breakeven.engines.speculation import SpeculationConfig
from breakeven.engines.vllm import Vllm
from breakeven.errors import UsageError

N = 5
"""vLLM's min_n and max_n if both are left out."""


@dataclass(frozen=True, slots=True)
class VllmNgramSettings(Settings):
    """k has no default in vLLM, which asks for it; 5 is ours, as in the examples of its documentation."""

    k: int = setting(5, "most tokens of a draft (num_speculative_tokens)", 1)
    min_n: int = setting(
        None, "shortest n-gram looked up (prompt_lookup_min); unset: max_n, or 5", 1, kind=int
    )
    max_n: int = setting(
        None, "longest n-gram looked up (prompt_lookup_max); unset: min_n, or 5", 1, kind=int
    )

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        object.__setattr__(self, "min_n", self.min_n or self.max_n or N)
        object.__setattr__(self, "max_n", self.max_n or self.min_n)
        least, most = self.n_range
        if least > most:
            raise UsageError(f"min_n {least} is above max_n {most}: type --set max_n={least}")

    @property
    def n_range(self) -> tuple[int, int]:
        """Shortest and longest n-gram, in tokens."""
        return self.min_n, self.max_n


class VllmNgram(TableDrafter[VllmNgramSettings]):
    """Drafts the continuation of the first occurrence of the longest repeated n-gram."""

    name: ClassVar[str] = "vllm-ngram"
    engine: ClassVar[str] = vllm_common.ENGINE
    summary: ClassVar[str] = "first occurrence of the longest repeated n-gram of the request"
    Config: ClassVar[type[Settings]] = VllmNgramSettings
    compiled: ClassVar[bool] = True

    def propose(self, context: Ids, room: int) -> list[int]:
        for n in range(min(self.settings.max_n, len(context)), self.settings.min_n - 1, -1):
            ends = earlier_ends(context, n)
            if len(ends):
                draft: list[int] = context[ends[0] :][: max(0, min(self.settings.k, room))].tolist()
                return draft
        return []

    def room(self, context_tokens: int, output_tokens: int, limits: Limits) -> int:
        return vllm_common.room(context_tokens, self.settings.k, limits)

    def flags(self) -> str:
        one = self.settings
        return Vllm().line(SpeculationConfig("ngram", one.k, one.min_n, one.max_n))

    def table(self, tokens: Tokens) -> Table:
        return next(self.tables(tokens, [self.settings]))

    @classmethod
    def tables(cls, tokens: Tokens, settings: Sequence[VllmNgramSettings]) -> Iterator[Table]:
        """One pass looks up every n-gram; each table then costs a few operations a position."""
        if not settings:
            return
        ranges = sorted({one.n_range for one in settings})
        rooms = {k: vllm_common.rooms(tokens, k) for k in {one.k for one in settings}}
        found = first_occurrences(tokens, ranges[0][0], [most for _, most in ranges], max(rooms))
        reaches = {(least, most): found.reach_of(least, most) for least, most in ranges}
        for one in settings:
            yield found.table(reaches[one.n_range], one.max_n, one.k, rooms[one.k])
