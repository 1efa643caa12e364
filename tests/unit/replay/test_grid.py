"""Which settings a sweep tries."""

from __future__ import annotations

import numpy as np

from breakeven.drafters.registry import make_drafter
from breakeven.replay.grid import DRAFTERS, KS, N_RANGES, default_grid, recorded_grid
from tests.unit.replay.small import Held, recorded

SIMPLE = "llamacpp-ngram-simple"


def test_each_setting_once_and_none_that_surprises():
    grid = default_grid()
    assert {name for name, _ in grid} == set(DRAFTERS)
    assert len({str(setting) for setting in grid}) == len(grid)
    assert not any(
        "nothing is drafted" in said for name, has in grid for said in make_drafter(name, has).warnings()
    )
    drafting = {(k, n) for k in KS for _, n in N_RANGES if k >= n}
    assert {(has["k"], has["n"]) for name, has in grid if name == SIMPLE} == drafting


def test_a_drafter_without_a_setting_that_drafts_is_kept_so_that_it_is_said():
    assert default_grid([SIMPLE], [1, 2], [(1, 3)]) == [
        (SIMPLE, {"k": 1, "n": 3}),
        (SIMPLE, {"k": 2, "n": 3}),
    ]
    assert default_grid([SIMPLE, SIMPLE], [1, 3], [(1, 3)]) == [(SIMPLE, {"k": 3, "n": 3})]


def test_acceptance_that_a_record_holds_is_swept_up_to_the_longest_that_it_has():
    head = np.array([-1, 3, 0, 1], np.int32)
    records = [
        recorded([1], [2, 3, 4, 5], recorded={"acc_head": head, "acc_none": np.full(4, -1, np.int32)}),
        recorded([1], [2, 3], recorded={"acc_head": np.array([-1, 2], np.int32)}),
    ]
    found = recorded_grid(Held(records), [1, 2, 3, 5])
    assert found == [
        *(("recorded", {"source": "acc_head", "k": k}) for k in (1, 2, 3)),
        ("recorded", {"source": "acc_none", "k": 1}),
    ]


def test_a_record_without_such_acceptance_is_read_no_further_than_its_first_request():
    assert recorded_grid(Held([recorded([1], [2, 3])])) == []
