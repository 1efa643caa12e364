import numpy as np
import orjson
import pytest

from breakeven.guard._kernels import MOST_MEMORY, PRIOR, ROWS, chance, teach
from breakeven.guard.policy import knobs_of
from breakeven.guard.settings import GuardSettings
from breakeven.guard.survival import Survival

KNOBS = knobs_of(GuardSettings())


def taught(length: int, trials: int, hits: int, survival: Survival | None = None) -> Survival:
    made = survival or Survival()
    for i in range(trials):
        teach(made.counts, length, float(i < hits))
    return made


def test_without_knowledge_the_prior_tells_and_longer_matches_are_better():
    found = [chance(Survival().counts, KNOBS, length) for length in range(1, 40)]
    assert found[0] == pytest.approx(PRIOR[0]) and found[-1] == pytest.approx(PRIOR[-1])
    assert found == sorted(found) and found[0] < found[-1]


def test_much_counting_outweighs_the_prior():
    counts = taught(4, 4000, 400).counts
    assert chance(counts, KNOBS, 4) == pytest.approx(0.1, abs=0.01)
    assert chance(counts, KNOBS, 5) == chance(Survival().counts, KNOBS, 5)


def test_every_match_has_a_place():
    counts = Survival().counts
    for length in (0, 1, 2, 33, 10_000):
        teach(counts, length, 1.0)
    assert counts[:, 0].sum() == 5
    assert counts[-1].tolist() == [2, 2]


def test_old_counts_fade_so_that_a_change_is_followed():
    survival = taught(4, 20_000, 20_000)
    assert survival.counts.max() <= MOST_MEMORY
    taught(4, int(2 * MOST_MEMORY), 0, survival)
    assert chance(survival.counts, KNOBS, 4) < 0.3


def test_it_says_whether_it_is_taught():
    assert not Survival().is_taught
    assert taught(4, 1, 0).is_taught


def test_it_is_kept_across_restarts():
    survival = taught(4, 50, 30, taught(30, 40, 39))
    again = Survival.from_json(survival.to_json())
    assert np.array_equal(again.counts, survival.counts)
    assert again.counts is not survival.counts


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (b"not json", "no JSON"),
        (b"[1, 2]", "no learned acceptance of this version"),
        ({"version": 2}, "no learned acceptance of this version"),
        ({"format": "other"}, "no learned acceptance of this version"),
        ({"counts": None}, "shape"),
        ({"counts": [[1, 2], [3]]}, "damaged"),
        ({"counts": "many"}, "damaged"),
        ({"counts": [[[1.0, 1.0]]]}, "shape"),
        ({"counts": np.full((ROWS, 2), -1.0).tolist()}, "cannot be"),
        ({"counts": np.full((ROWS, 2), 1e9).tolist()}, "cannot be"),
        ({"counts": np.tile([1.0, 2.0], (ROWS, 1)).tolist()}, "more hits than trials"),
        ({"counts": np.full((ROWS, 2), None).tolist()}, "cannot be"),
    ],
)
def test_files_of_others_and_damaged_ones(change: bytes | dict[str, object], said: str):
    data = change
    if isinstance(change, dict):
        data = orjson.dumps({**orjson.loads(Survival().to_json()), **change})
    with pytest.raises(ValueError, match=said):
        Survival.from_json(data)
