import numpy as np
import pytest

from breakeven.drafters.recorded import Recorded, RecordedSettings, no_source
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


def test_requests_without_the_source_are_not_recorded():
    table = Recorded(RecordedSettings(source="acc_mtp")).table(record(acc_eagle=[1] * 6))
    assert table.drafted.tolist() == table.accepted.tolist() == [0] * 6


def test_a_record_without_the_source_names_its_form_and_those_present():
    assert str(no_source("acc_mtp", {"acc_b", "acc_a"})) == (
        "no column 'acc_mtp' of this record holds accepted lengths as {\"acc_len\": [3, 1, …]}; "
        "these do: acc_a, acc_b: type --set source=acc_a"
    )
    assert "nor does any other" in str(no_source("acc_mtp", ()))


def test_there_are_no_tokens_to_propose():
    with pytest.raises(UsageError, match="no tokens to draft"):
        Recorded(RecordedSettings()).propose(np.array([1], np.int32), 5)
