import numpy as np

from breakeven.replay.batches import batch_of, batches
from tests.unit.replay.small import recorded


def test_a_batch_holds_whole_requests_up_to_its_tokens():
    requests = [recorded([1] * 3, [2] * 2, str(i)) for i in range(5)]
    assert [batch.ids for batch in batches(requests, 10)] == [("0", "1"), ("2", "3"), ("4",)]


def test_a_request_longer_than_a_batch_has_one_of_its_own():
    requests = [recorded([1], [2], "a"), recorded([1], [2] * 50, "b"), recorded([1], [2], "c")]
    assert [batch.ids for batch in batches(requests, 10)] == [("a",), ("b",), ("c",)]


def test_requests_are_taken_only_as_they_are_needed():
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield recorded([1] * 5, [2] * 5)

    next(batches(endless(), 20))
    assert len(taken) == 3


def test_limits_and_what_was_recorded_elsewhere_go_along():
    more = {"max_tokens": 9, "recorded": {"eagle": np.array([1, 0], np.int32)}, "answer_from": 1}
    batch = batch_of([recorded([1], [2, 3], **more), recorded([1, 1, 1], [4])])
    assert batch.tokens.max_tokens.tolist() == [9, 2**31 - 1]
    assert batch.tokens.recorded["eagle"].tolist() == [1, 0, -1]
    assert batch.answer_from.tolist() == [1, -1]
    assert batch.tokens.ids.tolist() == [1, 2, 3, 1, 1, 1, 4]
    assert batch.tokens.outputs.tolist() == [1, 6]
