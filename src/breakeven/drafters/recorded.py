"""recorded: acceptance that was measured elsewhere, per position, as a study's EAGLE columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from breakeven.drafters.base import Ids, Table, TableDrafter
from breakeven.drafters.oracle import remaining
from breakeven.drafters.settings import Settings, setting
from breakeven.drafters.tokens import Tokens
from breakeven.errors import UsageError


@dataclass(frozen=True, slots=True)
class RecordedSettings(Settings):
    source: str = setting("acc_eagle", "the record's field that holds the accepted lengths")
    k: int = setting(5, "tokens of a draft, where a length is recorded", 1)


class Recorded(TableDrafter[RecordedSettings]):
    """Steps through measured lengths: k drafted wherever one is recorded, accepted as recorded, to at most k.
    Nothing is drafted at positions that were not recorded.

    Exact for a drafter that drafts k tokens in a row and whose choice of a token does not depend on k.
    """

    name: ClassVar[str] = "recorded"
    engine: ClassVar[str] = "none"
    summary: ClassVar[str] = "acceptance recorded per position by another measurement"
    Config: ClassVar[type[Settings]] = RecordedSettings

    def table(self, tokens: Tokens) -> Table:
        """Recorded lengths are clipped at the end of the record, past which some run.

        Raises UsageError where the record has no such source.
        """
        source = self.settings.source
        if source not in tokens.recorded:
            present = ", ".join(sorted(tokens.recorded)) or "no recorded acceptance"
            raise UsageError(f"there is no {source!r} in this record, it has {present}: type source=NAME")
        lengths = tokens.recorded[source]
        drafted = np.where(lengths >= 0, self.settings.k, 0).astype(np.int32)
        accepted = np.minimum(np.minimum(lengths, drafted), remaining(tokens))
        return Table(drafted, np.maximum(accepted, 0).astype(np.int32))

    def propose(self, context: Ids, room: int) -> NoReturn:
        """Raises UsageError: only lengths are recorded, no tokens."""
        raise UsageError(
            "recorded acceptance has no tokens to draft: replay its record with --drafter recorded"
        )
