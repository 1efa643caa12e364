"""recorded: acceptance that was measured elsewhere, per position, as a study's EAGLE columns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from breakeven.drafters.base import Ids, Table, TableDrafter
from breakeven.drafters.settings import Settings, setting, shown
from breakeven.drafters.tokens import NOT_RECORDED, Tokens
from breakeven.errors import UsageError


def no_source(source: str, columns: Collection[str]) -> UsageError:
    """For a record whose requests nowhere have this source; `columns` are those that they have."""
    message = f'no column {shown(source)} of this record holds accepted lengths as {{"acc_len": [3, 1, …]}}'
    if not columns:
        return UsageError(f"{message}, nor does any other: name a record that has them")
    names = sorted(columns)
    return UsageError(f"{message}; these do: {', '.join(names)}: type --set source={names[0]}")


@dataclass(frozen=True, slots=True)
class RecordedSettings(Settings):
    source: str = setting("acc_eagle", 'the column of accepted lengths, as {"acc_len": [3, 1, …]}')
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

        Requests without such a source are not recorded: whether a whole record lacks it, only its end tells.
        """
        lengths = tokens.recorded.get(self.settings.source)
        if lengths is None:
            lengths = np.full(int(tokens.positions[-1]), NOT_RECORDED, np.int32)
        drafted = np.where(lengths >= 0, self.settings.k, 0).astype(np.int32)
        accepted = np.minimum(np.minimum(lengths, drafted), tokens.remaining)
        return Table(drafted, np.maximum(accepted, 0).astype(np.int32))

    def propose(self, context: Ids, room: int) -> NoReturn:
        """Raises UsageError: only lengths are recorded, no tokens."""
        raise UsageError(
            "recorded acceptance has no tokens to draft: replay its record with --drafter recorded"
        )
