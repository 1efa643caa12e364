import numpy as np
import pytest

from breakeven.drafters.recorded import Recorded, RecordedSettings
from breakeven.drafters.tokens import Tokens, flat
from breakeven.errors import UsageError


def record(**recorded: list[int]) -> Tokens:
    requests = [([1], [2, 3, 4, 5]), ([6], [7, 8])]
    return flat(requests, recorded={name: np.array(x, np.int32) for name, x in recorded.items()})


def test_lengths_are_capped_at_k_and_clipped_at_the_end_of_the_record():
    tokens = record(acc_eagle=[9, 2, 5, 0, -1, 3])
    table = Recorded(RecordedSettings(k=3)).table(tokens)
    assert table.drafted.tolist() == [3, 3, 3, 3, 0, 3]
    assert table.accepted.tolist() == [3, 2, 2, 0, 0, 1]
    assert (table.drafted.dtype, table.accepted.dtype) == (np.int32, np.int32)


def test_another_source_by_name():
    tokens = record(acc_eagle=[0] * 6, acc_mtp=[1] * 6)
    assert Recorded(RecordedSettings(source="acc_mtp")).table(tokens).accepted.tolist() == [1] * 6


def test_an_unknown_source_lists_those_present():
    with pytest.raises(UsageError, match="'acc_mtp' in this record, it has acc_a, acc_b: type source=NAME"):
        Recorded(RecordedSettings(source="acc_mtp")).table(record(acc_b=[0] * 6, acc_a=[0] * 6))
    with pytest.raises(UsageError, match="it has no recorded acceptance"):
        Recorded(RecordedSettings()).table(record())


def test_there_are_no_tokens_to_propose():
    with pytest.raises(UsageError, match="no tokens to draft"):
        Recorded(RecordedSettings()).propose(np.array([1], np.int32), 5)
