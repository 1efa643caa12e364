"""Replies held in memory, with what a head had accepted on them."""

from collections.abc import Sequence

import numpy as np

from breakeven.eagle.evaluate import journal
from breakeven.replay.records import RecordedRequest
from tests.unit.replay.small import Held, recorded


class HeldReplies(Held):
    """What `evaluate` writes to its journal, without a file."""

    acceptance_columns = (journal.COLUMN,)


def reply(
    accepted: Sequence[int], tokens: Sequence[int], name: str = "r", category: str = "chat"
) -> RecordedRequest:
    """A prompt of the first token and a reply of the others; `accepted` before each of them but the first."""
    lengths = {journal.COLUMN: np.array([-1, *accepted], np.int32)}
    return recorded(list(tokens[:1]), list(tokens[1:]), name, category, recorded=lengths)
