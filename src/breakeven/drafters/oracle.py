"""oracle: drafts exactly what comes, up to k tokens. No drafter of k tokens in a row can do better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from breakeven.drafters.base import Ids, Table, TableDrafter
from breakeven.drafters.settings import Settings, setting
from breakeven.drafters.tokens import Tokens
from breakeven.errors import UsageError


@dataclass(frozen=True, slots=True)
class OracleSettings(Settings):
    k: int = setting(5, "tokens of a draft", 1)


class Oracle(TableDrafter[OracleSettings]):
    """The upper bound. It knows the record only, so that it has a table but cannot propose."""

    name: ClassVar[str] = "oracle"
    engine: ClassVar[str] = "none"
    summary: ClassVar[str] = "drafts what really comes: the upper bound for k tokens"
    Config: ClassVar[type[Settings]] = OracleSettings

    def table(self, tokens: Tokens) -> Table:
        """Drafts end with the record: every token drafted is accepted."""
        drafted = np.minimum(tokens.remaining, self.settings.k).astype(np.int32)
        return Table(drafted, drafted)

    def propose(self, context: Ids, room: int) -> NoReturn:
        """Raises UsageError: what comes next is known in a record only."""
        raise UsageError("the oracle drafts from a record only: replay one with --drafter oracle")
