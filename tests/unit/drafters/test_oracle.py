import numpy as np
import pytest

from breakeven.drafters.oracle import Oracle, OracleSettings
from breakeven.drafters.tokens import flat
from breakeven.errors import UsageError


def test_it_drafts_what_comes_to_the_end_of_the_record():
    tokens = flat([([1, 2], [3, 4, 5, 6]), ([7], [8])])
    table = Oracle(OracleSettings(k=3)).table(tokens)
    assert table.drafted.tolist() == [3, 3, 2, 1, 1]
    assert table.accepted.tolist() == table.drafted.tolist()
    assert table.accepted.dtype == np.int32


def test_no_requests():
    assert Oracle(OracleSettings()).table(flat([])).drafted.tolist() == []


def test_it_cannot_know_without_a_record():
    with pytest.raises(UsageError, match="record only"):
        Oracle(OracleSettings()).propose(np.array([1, 2], np.int32), 5)
