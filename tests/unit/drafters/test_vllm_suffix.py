import json
import shlex

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.drafters import _suffix_tree, vllm_common
from breakeven.drafters._suffix_arrays import (
    COUNT,
    EDGE_COUNT,
    EDGES,
    FIRST_COUNT,
    FIRST_NODE,
    FIRST_TOKEN,
    HEAD,
    NEXT,
    NODE,
    PREVIOUS,
    ROOT,
    TAIL,
    TOKEN,
)
from breakeven.drafters._suffix_children import ABSENT, child_node, find_child
from breakeven.drafters._suffix_tree import SuffixTree
from breakeven.drafters.base import Limits
from breakeven.drafters.registry import make_drafter
from breakeven.drafters.tokens import flat
from breakeven.drafters.vllm_suffix import VllmSuffix, VllmSuffixSettings
from breakeven.errors import UsageError

ROOM = 2**31 - 1
Texts = list[list[int]]


def ids(*tokens: int) -> np.ndarray:
    return np.array(tokens, np.int32)


def draft(prompt: list[int], output: list[int], room: int = ROOM, **given: object) -> list[int]:
    drafter = VllmSuffix(VllmSuffixSettings(**given))
    drafter.begin(ids(*prompt), Limits())
    return drafter.propose(ids(*prompt, *output), room)


def test_no_more_tokens_than_the_match_is_long() -> None:
    seen = [1, 2, 3, 4, 5, 6, 7, 8]
    assert draft(seen, [9, 2]) == [3]
    assert draft(seen, [9, 1, 2]) == [3, 4]
    assert draft(seen, [9, 1, 2, 3], max_spec_factor=1.5) == [4, 5, 6, 7]
    assert draft(seen, [9, 1, 2, 3], max_spec_factor=0.0) == []


def test_the_present_occurrence_counts_against_the_path() -> None:
    """One of two occurrences of [1, 2] goes on: 1/2 for each token, below 0.6."""
    assert draft([1, 2, 3, 4], [1, 2], min_token_prob=0.5) == [3, 4]
    assert draft([1, 2, 3, 4], [1, 2], min_token_prob=0.6) == []


def test_no_match_and_no_context_draft_nothing() -> None:
    assert draft([], []) == []
    assert draft([], [1]) == []
    assert draft([1, 2, 3], [4]) == []


def test_match_and_draft_fit_the_depth() -> None:
    assert draft([1, 2, 3, 4, 5, 6], [1, 2, 3], max_tree_depth=4) == [4, 5]
    assert draft([1, 2, 3, 4, 5, 6], [1, 2, 3], max_tree_depth=1) == []


def test_k_and_room_cut_the_draft() -> None:
    assert draft([1, 2, 3, 4, 5, 6], [1, 2, 3]) == [4, 5, 6]
    assert draft([1, 2, 3, 4, 5, 6], [1, 2, 3], k=2) == [4, 5]
    assert draft([1, 2, 3, 4, 5, 6], [1, 2, 3], room=1) == [4]
    assert draft([1, 2, 3, 4, 5, 6], [1, 2, 3], room=-1) == []


def test_earlier_outputs_are_kept_and_prompts_are_not() -> None:
    drafter = VllmSuffix(VllmSuffixSettings())
    drafter.begin(ids(1, 2, 3), Limits())
    drafter.end(ids(1, 2, 3, 4, 5, 6))
    drafter.begin(ids(1, 2), Limits())
    assert drafter.propose(ids(1, 2), ROOM) == []
    assert drafter.propose(ids(1, 2, 4, 5), ROOM) == [6]


def test_the_oldest_output_leaves_when_a_request_begins() -> None:
    drafter = VllmSuffix(VllmSuffixSettings(max_cached_requests=2))
    for output in ([4, 5, 6], [7, 8, 9]):
        drafter.begin(ids(), Limits())
        drafter.end(ids(*output))
    drafter.begin(ids(0), Limits())
    assert drafter.propose(ids(0, 4, 5), ROOM) == []
    assert drafter.propose(ids(0, 4, 5, 7, 8), ROOM) == [9]


def test_the_own_tree_wins_a_tie() -> None:
    drafter = VllmSuffix(VllmSuffixSettings())
    drafter.begin(ids(), Limits())
    drafter.end(ids(4, 5))
    drafter.begin(ids(4, 6), Limits())
    assert drafter.propose(ids(4, 6, 4), ROOM) == [6]


def test_without_a_global_tree_it_learns_nothing() -> None:
    drafter = VllmSuffix(VllmSuffixSettings(max_cached_requests=0))
    assert (drafter.learns, VllmSuffix(VllmSuffixSettings()).learns) == (False, True)
    drafter.begin(ids(), Limits())
    drafter.end(ids(4, 5, 6))
    drafter.begin(ids(), Limits())
    assert drafter.propose(ids(4, 5), ROOM) == []


def test_a_table_goes_on_from_the_last() -> None:
    requests = [([1, 2], [3, 4, 5, 6]), ([2], [3, 4, 5, 6, 3]), ([], [4, 5, 6, 3, 4])]
    whole = VllmSuffix(VllmSuffixSettings()).table(flat(requests))
    drafter = VllmSuffix(VllmSuffixSettings())
    parts = [drafter.table(flat([request])) for request in requests]
    assert np.concatenate([part.drafted for part in parts]).tolist() == whole.drafted.tolist()
    assert np.concatenate([part.accepted for part in parts]).tolist() == whole.accepted.tolist()
    assert whole.accepted.max() == 2


def test_one_token_over_and_over() -> None:
    table = VllmSuffix(VllmSuffixSettings(k=5)).table(flat([([7] * 100, [7] * 5000)]))
    assert set(table.drafted.tolist()) == {5}
    assert table.accepted[:-5].tolist() == [5] * 4995
    assert table.accepted[-5:].tolist() == [5, 4, 3, 2, 1]


def test_empty_outputs_and_no_requests_have_empty_tables() -> None:
    assert len(VllmSuffix(VllmSuffixSettings()).table(flat([])).drafted) == 0
    table = VllmSuffix(VllmSuffixSettings()).table(flat([([1, 2], []), ([], [1]), ([1, 2, 1], [2])]))
    assert table.drafted.tolist() == [0, 1]


def test_room_leaves_a_place_for_the_token_after_the_draft() -> None:
    drafter = VllmSuffix(VllmSuffixSettings(k=7))
    assert drafter.room(10, 3, Limits(max_model_len=16)) == 5
    assert drafter.room(11, 3, Limits(max_model_len=16)) == 0
    assert drafter.room(10, 3, Limits(max_tokens=4)) > 10**9


@pytest.mark.parametrize("k", [1, 5, 9])
@pytest.mark.parametrize("max_model_len", [20, 40, 41, 46, 51, 70])
def test_the_table_has_the_room_of_each_step(k: int, max_model_len: int) -> None:
    """One token over and over is drafted as often as may be."""
    table = VllmSuffix(VllmSuffixSettings(k=k)).table(flat([([7] * 30, [7] * 20)], [3], [max_model_len]))
    limits = Limits(3, max_model_len)
    rooms = [vllm_common.room(context, k, limits) for context in range(30, 50)]
    assert table.drafted.tolist() == [max(0, min(k, room)) for room in rooms]


def test_k_left_out_is_the_depth() -> None:
    assert VllmSuffixSettings(max_tree_depth=16) == VllmSuffixSettings(k=16, max_tree_depth=16)


def test_flags_give_vllm_its_config() -> None:
    option, value = shlex.split(make_drafter("vllm-suffix", {"max_tree_depth": 16}).flags())
    assert option == "--speculative-config"
    assert json.loads(value) == {
        "method": "suffix",
        "num_speculative_tokens": 16,
        "suffix_decoding_max_tree_depth": 16,
        "suffix_decoding_max_cached_requests": 10000,
        "suffix_decoding_max_spec_factor": 1.0,
        "suffix_decoding_min_token_prob": 0.1,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"max_tree_depth": 0},
        {"max_cached_requests": -1},
        {"max_spec_factor": -0.5},
        {"min_token_prob": 1.5},
    ],
)
def test_settings_have_vllms_limits(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        make_drafter("vllm-suffix", wrong)


@pytest.mark.parametrize("followers", range(8, 300, 7))
def test_arrays_grow_before_a_node_with_many_children_is_split(
    followers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every 2 stands after a 1 but the last."""
    monkeypatch.setattr(_suffix_tree, "SMALLEST", 8)
    tree = SuffixTree(2)
    tree.feed(ids(*(token for i in range(followers) for token in (1, 2, 10 + i)), 3, 2))
    assert tree.arrays.state[EDGES] <= len(tree.arrays.edges)
    assert count_of(tree, (2,)) == followers + 1
    assert {count_of(tree, (2, 10 + i)) for i in range(followers)} == {1}


texts = st.integers(1, 4).flatmap(
    lambda symbols: st.lists(st.lists(st.integers(0, symbols), max_size=40), min_size=1, max_size=6)
)


@settings(max_examples=150, deadline=None)
@given(texts=texts, depth=st.integers(1, 8), kept=st.integers(1, 3))
def test_every_sequence_is_counted_and_children_are_in_order(texts: Texts, depth: int, kept: int) -> None:
    tree = SuffixTree(depth)
    for at, text in enumerate(texts):
        tree.begin()
        tree.feed(ids(*text))
        if at >= kept:
            tree.remove(ids(*texts[at - kept]))
    counts = occurrences(texts[-kept:], depth)
    assert {sequence: count_of(tree, sequence) for sequence in counts} == counts
    for sequence in [(), *counts]:
        if len(sequence) < depth:
            followers = [token for token in range(5) if count_of(tree, (*sequence, token))]
            assert followers == [token for token in range(5) if (*sequence, token) in counts]
            check_children(tree, node_of(tree, sequence), ordered=len(sequence) > 0)


def occurrences(texts: Texts, depth: int) -> dict[tuple[int, ...], int]:
    counts: dict[tuple[int, ...], int] = {}
    for text in texts:
        for start in range(len(text)):
            for end in range(start + 1, min(start + depth, len(text)) + 1):
                sequence = tuple(text[start:end])
                counts[sequence] = counts.get(sequence, 0) + 1
    return counts


def node_of(tree: SuffixTree, sequence: tuple[int, ...]) -> int:
    node = ROOT
    for token in sequence:
        child = find_child(tree.arrays, node, token)
        if child == ABSENT:
            return -1
        node = child_node(tree.arrays, node, child)
    return int(node)


def count_of(tree: SuffixTree, sequence: tuple[int, ...]) -> int:
    node = node_of(tree, sequence)
    return 0 if node < 0 else int(tree.arrays.nodes[node, COUNT])


def check_children(tree: SuffixTree, node: int, ordered: bool) -> None:
    """The list is linked both ways, its head is the first child, and counts fall."""
    nodes, edges = tree.arrays.nodes, tree.arrays.edges
    edge, before, counts = nodes[node, HEAD], 0, []
    if edge:
        assert edges[edge, [TOKEN, NODE]].tolist() == nodes[node, [FIRST_TOKEN, FIRST_NODE]].tolist()
    while edge:
        assert edges[edge, PREVIOUS] == before
        counts.append(edges[edge, EDGE_COUNT] if before else nodes[node, FIRST_COUNT])
        if ordered:
            assert counts[-1] == nodes[edges[edge, NODE], COUNT]
        before, edge = edge, edges[edge, NEXT]
    assert before == nodes[node, TAIL]
    if ordered:
        assert counts == sorted(counts, reverse=True)
