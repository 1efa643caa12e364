"""RoutingTrace on made and on recorded routing: what it measures, what it refuses, its file."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.cost.coverage import distinct_experts
from breakeven.cost.geometry import Experts
from breakeven.cost.routing import TOKENS, RoutingTrace, fitted_reuse, load_routing, save_routing
from breakeven.errors import StorageError, UsageError

GOLDEN = Path(__file__).parents[2] / "golden" / "routing-smollm2-moe.npz"
COUNT, TOP_K = 32, 4


def at_random(lengths: tuple[int, ...], layers: int = 4, stay: float = 0.0, seed: int = 0) -> RoutingTrace:
    """A token has all experts of the one before it with probability `stay`, else any, each as likely."""
    random = np.random.default_rng(seed)
    tokens: list[Any] = []
    for length in lengths:
        for i in range(length):
            fresh = random.permuted(np.tile(np.arange(COUNT), (layers, 1)), axis=1)[:, :TOP_K]
            stays = (random.random(layers) < stay)[:, None] & (i > 0)
            tokens.append(np.where(stays, tokens[-1], fresh) if tokens else fresh)
    return RoutingTrace(np.array(tokens, np.int32), lengths, COUNT, "made", True)


def formula(tokens: int, reuse: float = 0.0) -> float:
    return distinct_experts(Experts(COUNT, TOP_K, 1), tokens, reuse=reuse)


def test_a_router_at_random_is_as_the_formula_says() -> None:
    trace = at_random((120,) * 10)
    for found in (trace.neighbours((1, 2, 4, 8)), trace.sequences((1, 2, 4, 8))):
        assert [one.tokens for one in found] == [1, 2, 4, 8]
        for one in found:
            assert one.distinct.estimate == pytest.approx(formula(one.tokens), rel=0.01)
    assert trace.reuse().low == 0 and trace.reuse().high < 0.05


def test_reuse_is_found_where_there_is_some() -> None:
    trace = at_random((120,) * 10, stay=0.4)
    reuse = trace.reuse()
    assert reuse.estimate == pytest.approx(0.4, abs=0.03) and reuse.low < 0.4 < reuse.high
    for one in trace.neighbours():
        assert one.distinct.estimate == pytest.approx(formula(one.tokens, reuse.estimate), rel=0.03)
    assert trace.sequences((8,))[0].distinct.estimate == pytest.approx(formula(8), rel=0.02)


def test_intervals_hold_the_truth_about_as_often_as_said() -> None:
    """91 % with 8 sequences; 100 traces stray from that by 3 % (one standard deviation)."""
    held = 0
    for seed in range(100):
        one = at_random((40,) * 8, layers=1, stay=0.4, seed=seed).neighbours((2,))[0].distinct
        held += one.low <= formula(2) - 0.4 * (formula(2) - TOP_K) <= one.high
    assert 82 <= held <= 98


@given(
    st.floats(0, 0.95), st.integers(2, 256).flatmap(lambda e: st.tuples(st.just(e), st.integers(1, e - 1)))
)
def test_the_fit_gives_the_reuse_of_the_formula_back(reuse: float, shape: tuple[int, int]) -> None:
    count, top_k = shape
    experts = Experts(count, top_k, 1)
    tokens = np.array([2, 3, 4])
    distinct = np.array([distinct_experts(experts, t, reuse=reuse) for t in tokens])
    if (1 - distinct / count).min() < 1e-9:
        return
    found, misfit = fitted_reuse(tokens, distinct, top_k, count)
    assert found == pytest.approx(reuse, abs=1e-5) and misfit < 1e-5


def test_the_fit_is_the_best_in_relative_error() -> None:
    """Of a random MoE with 8 of 64 experts, distinct experts as measured: no other reuse does much better."""
    tokens, distinct = np.array([2, 4, 8, 16]), 8 * np.array([1.76, 2.89, 4.38, 5.96])
    found, misfit = fitted_reuse(tokens, distinct, 8, 64)

    def error(reuse: float) -> float:
        said = [distinct_experts(Experts(64, 8, 1), t, reuse=reuse) for t in tokens]
        return math.sqrt(np.mean((np.array(said) / distinct - 1) ** 2))

    assert error(found) < 1.05 * min(error(reuse) for reuse in np.linspace(0, 1, 201))
    assert found == pytest.approx(0.276, abs=0.002) and 0.05 < misfit < 0.1


def test_of_the_engine() -> None:
    trace = load_routing(GOLDEN)
    assert (trace.count, trace.top_k, trace.layers, trace.random_router) == (8, 2, 30, True)
    assert trace.model == "smollm2-moe" and trace.lengths == (24, 24, 24, 24, 24, 17)
    neighbours = {one.tokens: one.distinct for one in trace.neighbours()}
    sequences = {one.tokens: one.distinct for one in trace.sequences()}
    assert list(neighbours) == list(TOKENS) and list(sequences) == [1, 2, 3, 4]
    assert neighbours[1].low == neighbours[1].estimate == neighbours[1].high == 2
    for tokens in (2, 3, 4):
        independent = distinct_experts(Experts(8, 2, 1), tokens, reuse=0)
        assert neighbours[tokens].high < sequences[tokens].low < sequences[tokens].high < independent
    assert trace.reuse().low < trace.reuse().estimate < trace.reuse().high < 1


def test_windows_end_with_their_sequence() -> None:
    experts = np.array([[[0]], [[0]], [[1]], [[1]]])
    assert RoutingTrace(experts, (2, 2), 2).neighbours((2,))[0].distinct.estimate == 1


def test_what_does_not_fit_is_left_out() -> None:
    trace = at_random((3, 3, 20))
    assert [one.tokens for one in trace.neighbours()] == [1, 2, 3]
    assert [one.tokens for one in trace.sequences()] == [1, 2]
    assert trace.neighbours((4,)) == () and trace.sequences((3,)) == ()


def test_single_tokens_have_no_reuse() -> None:
    with pytest.raises(UsageError, match="record longer replies"):
        at_random((1, 1, 5)).reuse()


@pytest.mark.parametrize(
    ("experts", "lengths", "count", "message"),
    [
        ([[[0]], [[1]]], (2,), 4, "two prompts or more"),
        ([[[0]], [[1]]], (1, 2), 4, "3 tokens, and experts of 2"),
        ([[[0]], [[1]]], (2, 0), 4, "experts of 2"),
        ([[[0]], [[4]]], (1, 1), 4, "experts 0 to 4 of 4"),
        ([[[0]], [[-1]]], (1, 1), 4, "experts -1 to 0 of 4"),
        ([[[0, 1]], [[2, 2]]], (1, 1), 4, "one expert twice"),
        ([[[0, 1]], [[1, 0]]], (1, 1), 2, "uses every expert"),
        ([[0], [1]], (1, 1), 4, r"\[tokens, layers, top_k\]"),
        ([[[0.5]], [[1]]], (1, 1), 4, "expert numbers"),
        ([[[]], [[]]], (1, 1), 4, "expert numbers"),
    ],
)
def test_what_is_no_routing_is_refused(
    experts: list[Any], lengths: tuple[int, ...], count: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        RoutingTrace(np.array(experts), lengths, count)


def test_a_file_gives_the_trace_back(tmp_path: Path) -> None:
    trace = at_random((3, 5))
    save_routing(trace, tmp_path / "new" / "routing.npz")
    again = load_routing(tmp_path / "new" / "routing.npz")
    assert np.array_equal(again.experts, trace.experts)
    assert (again.lengths, again.count, again.model, again.random_router) == ((3, 5), COUNT, "made", True)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["routing.npz"]


def test_a_folder_that_is_a_file_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError):
        save_routing(at_random((2, 2)), tmp_path / "file" / "routing.npz")


def write(path: Path, about: object, **arrays: Any) -> Path:
    whole = {"experts": np.array([[[0]], [[1]]]), "lengths": np.array([1, 1]), **arrays}
    np.savez(path, about=np.array(json.dumps(about)), **whole)
    return path


ABOUT = {"version": 1, "count": 4, "model": "m", "random_router": False}


@pytest.mark.parametrize(
    ("about", "arrays", "message"),
    [
        ({**ABOUT, "version": 2}, {}, "format 2, and this version reads up to 1"),
        ({**ABOUT, "version": "1"}, {}, "format"),
        ({**ABOUT, "version": 0}, {}, "format 0"),
        ({**ABOUT, "count": float("nan")}, {}, "is damaged"),
        ({**ABOUT, "model": None}, {}, "is damaged .model is None"),
        ({**ABOUT, "random_router": 1}, {}, "is damaged .random_router is 1"),
        (ABOUT, {"lengths": np.array([1.0, np.nan])}, "is damaged .lengths are no whole numbers"),
        ({"version": 1}, {}, "is damaged"),
        ([], {}, "is no trace of routing"),
        ({**ABOUT, "count": "4"}, {}, "is damaged"),
        (ABOUT, {"experts": np.array([[[0]], [[9]]])}, "is damaged .*experts 0 to 9 of 4"),
        (ABOUT, {"lengths": np.array([[1, 1]])}, "is damaged"),
        (ABOUT, {"experts": np.array([object()])}, "is no trace of routing"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, about: object, arrays: Any, message: str) -> None:
    path = write(tmp_path / "routing.npz", about, **arrays)
    with pytest.raises(UsageError, match=message):
        load_routing(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"text", b"\x93NUMPY"])
def test_no_npz(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "routing.npz"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="type  breakeven models routing MODEL"):
        load_routing(path)
    with pytest.raises(UsageError, match="cannot read"):
        load_routing(tmp_path / "absent.npz")
    with pytest.raises(UsageError, match="cannot read"):
        load_routing(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="no regular file"):
        load_routing(tmp_path / "pipe")


def test_a_small_file_that_unpacks_to_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "routing.npz", ABOUT)
    monkeypatch.setattr("breakeven.cost.routing._MOST_BYTES", 100)
    with pytest.raises(UsageError, match="is no trace of routing"):
        load_routing(path)


def test_an_array_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "routing.npy", np.zeros((2, 1, 1)))
    with pytest.raises(UsageError, match="is no trace of routing"):
        load_routing(tmp_path / "routing.npy")


@given(st.integers(0, GOLDEN.stat().st_size - 1), st.integers(1, 255))
def test_a_damaged_file_is_refused_or_whole(tmp_path_factory: Any, at: int, change: int) -> None:
    data = bytearray(GOLDEN.read_bytes())
    data[at] ^= change
    path = tmp_path_factory.mktemp("damaged") / "routing.npz"
    path.write_bytes(data)
    try:
        trace = load_routing(path)
    except UsageError:
        return
    assert np.array_equal(trace.experts, load_routing(GOLDEN).experts)


def test_reuse_beside_sequences_by_hand():
    """Two neighbours wake 3 of 8 experts and two sequences 4: as many as one and a half sequences do."""
    tokens = [[[0, 1]], [[0, 2]], [[0, 3]]]
    others = [[[4, 5]], [[4, 6]], [[4, 7]]]
    more = [[[2, 7]], [[2, 5]], [[2, 1]]]
    trace = RoutingTrace(np.array([*tokens, *others, *more]), (3, 3, 3), 8)
    two = trace.sequences([2])[0].distinct.estimate
    found = trace.reuse_beside_sequences([2])
    assert trace.neighbours([2])[0].distinct.estimate == 3
    assert found.estimate == pytest.approx(1 - (3 - 2) / (two - 2))
    assert found.low <= found.estimate <= found.high


def test_reuse_beside_sequences_needs_sequences_that_wake_as_many():
    tokens = [[[0, 1]], [[2, 3]], [[4, 5]]]
    trace = RoutingTrace(np.array([*tokens, *tokens]), (3, 3), 8)
    with pytest.raises(UsageError, match="too few sequences"):
        trace.reuse_beside_sequences([2])
