import numpy as np

from breakeven.drafters.tokens import UNLIMITED, flat


def test_requests_lie_one_after_another():
    tokens = flat([([1, 2], [3]), ([], [4, 5, 6]), (np.array([7], np.int32), [])])
    assert len(tokens) == 3
    assert tokens.ids.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert tokens.starts.tolist() == [0, 3, 6, 7]
    assert tokens.outputs.tolist() == [2, 3, 7]
    assert tokens.positions.tolist() == [0, 1, 4, 4]
    assert tokens.ids.dtype == np.int32


def test_contexts_are_each_request_and_its_prompt_length():
    tokens = flat([([1, 2], [3]), ([], [4, 5])])
    assert [(ids.tolist(), prompt) for ids, prompt in tokens.contexts()] == [([1, 2, 3], 2), ([4, 5], 0)]


def test_context_lengths_and_values_of_requests_at_each_output_position():
    tokens = flat([([1, 2], [3]), ([], [4, 5, 6]), ([7], []), ([8], [9])])
    assert tokens.context_tokens.tolist() == [2, 0, 1, 2, 1]
    assert tokens.spread(np.array([10, 20, 30, 40])).tolist() == [10, 20, 20, 20, 40]


def test_limits_that_are_unknown_are_far_away():
    tokens = flat([([1], [2]), ([1], [2])], max_tokens=[16, None])
    assert tokens.max_tokens.tolist() == [16, UNLIMITED]
    assert tokens.max_model_len.tolist() == [UNLIMITED, UNLIMITED]
    assert flat([([1], [2])], max_model_len=[64]).max_model_len.tolist() == [64]


def test_recorded_acceptance_travels_along():
    lengths = np.array([3], np.int32)
    assert flat([([1], [2])], recorded={"acc_eagle": lengths}).recorded["acc_eagle"] is lengths
    assert flat([([1], [2])]).recorded == {}


def test_no_requests():
    tokens = flat([])
    assert (len(tokens), tokens.positions.tolist(), list(tokens.contexts())) == (0, [0], [])
