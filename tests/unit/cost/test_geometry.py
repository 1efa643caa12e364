from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.cost.attention import GroupedQuery, Latent
from breakeven.cost.geometry import Experts, Geometry, Sliding
from breakeven.cost.precision import PARTS, Precision, Precisions
from breakeven.cost.presets import preset, preset_names
from breakeven.errors import UsageError

DENSE = Geometry("tiny", 2, 8, 100, GroupedQuery(4, 2, 2), dense_layers=2, dense_ff=16)
MIXED = Geometry(
    *("mixed", 3, 8, 100, GroupedQuery(4, 2, 2)),
    dense_layers=1,
    dense_ff=16,
    experts=Experts(count=4, top_k=2, ff=10, shared=1, shared_ff=6),
)
LATENT = Latent(heads=4, q_rank=6, kv_rank=5, nope_dim=3, rope_dim=2, v_dim=7)


def test_parameters_of_a_dense_model_by_hand():
    assert DENSE.parameters_by_part() == {
        "attention": 2 * (8 * 8 + 8 * 4 + 8 * 4 + 8 * 8),
        "dense": 2 * 3 * 8 * 16,
        "routed": 0,
        "shared": 0,
        "embedding": 800,
        "output": 800,
        "other": 5 * 8,
    }
    assert DENSE.parameters_active() == DENSE.parameters_total()


def test_parameters_of_a_mixture_by_hand():
    sizes = MIXED.parameters_by_part()
    assert sizes["dense"] == 1 * 3 * 8 * 16
    assert sizes["routed"] == 2 * 4 * 3 * 8 * 10
    assert sizes["shared"] == 2 * 1 * 3 * 8 * 6
    assert sizes["other"] == 7 * 8 + 2 * 4 * 8
    assert MIXED.parameters_total() - MIXED.parameters_active() == 2 * 2 * 3 * 8 * 10


def test_latent_attention_by_hand():
    assert LATENT.modules(8) == {
        "q_a_proj": 8 * 6 + 6,
        "q_b_proj": 6 * 4 * (3 + 2),
        "kv_a_proj_with_mqa": 8 * (5 + 2) + 5,
        "kv_b_proj": 5 * 4 * (3 + 7),
        "o_proj": 4 * 7 * 8,
    }
    assert replace(LATENT, q_rank=None).modules(8)["q_proj"] == 8 * 4 * 5
    assert LATENT.kv_values() == 7
    assert LATENT.flops_per_cached_token() == 4 * (2 * 7 + 2 * 5)


def test_scales_count_among_the_bits():
    assert Precision(4, 32, 16).bits_per_weight == 4.5
    quantised = replace(DENSE, weights=Precisions(dense=Precision(4, 32, 16)))
    assert DENSE.weight_bytes() - quantised.weight_bytes() == 768 * (16 - 4.5) / 8


def test_a_step_reads_everything_but_the_embedding_table():
    assert DENSE.bytes_read_per_step() == DENSE.weight_bytes() - 1600
    tied = replace(DENSE, tied=True)
    assert tied.bytes_read_per_step() == tied.weight_bytes() == DENSE.weight_bytes() - 1600


def test_experts_are_read_in_proportion():
    every, two = MIXED.bytes_read_per_step(4), MIXED.bytes_read_per_step()
    assert every == MIXED.weight_bytes() - 1600
    assert every - two == MIXED.bytes_by_part()["routed"] / 2
    assert MIXED.bytes_read_per_step(2) == two
    assert MIXED.bytes_read_per_step(3.5) == pytest.approx(two + (every - two) * 0.75)


@pytest.mark.parametrize("distinct", [-0.1, 4.001, float("nan")])
def test_no_more_distinct_experts_than_there_are(distinct: float):
    with pytest.raises(UsageError, match="distinct experts"):
        MIXED.bytes_read_per_step(distinct)


def test_the_cache_of_sliding_layers_stops_at_their_window():
    full = DENSE.kv_bytes_per_token()
    assert full == 2 * (2 * 2 * 2) * 2
    assert DENSE.kv_bytes(1000) == 1000 * full
    sliding = replace(DENSE, sliding=Sliding(1, 100))
    assert sliding.kv_bytes(100) == 100 * full
    assert sliding.kv_bytes(1000) == (1000 + 100) * full / 2
    assert replace(DENSE, kv_bits=8).kv_bytes(1000) == 500 * full


def test_arithmetic_is_two_per_weight_and_attention_over_the_cache():
    assert DENSE.flops_per_token() == 2 * (DENSE.parameters_total() - 800)
    assert replace(DENSE, tied=True).flops_per_token() == DENSE.flops_per_token()
    assert DENSE.flops_per_token(10) - DENSE.flops_per_token() == 2 * 10 * 4 * 4 * 2
    assert MIXED.flops_per_token() == 2 * (MIXED.parameters_active() - 800)


def test_tensor_parallelism_of_the_seed_experiment():
    kimi = preset("kimi-k2.5")
    assert kimi.all_reduce_calls() == 122
    assert kimi.all_reduce_bytes() == 14_336
    assert kimi.all_reduce_bytes(6) == 6 * 14_336


def test_multi_token_prediction_is_kept_apart():
    more = replace(MIXED, mtp_layers=2)
    assert more.parameters_total() == MIXED.parameters_total()
    attention, experts = 8 * 8 + 8 * 4 + 8 * 4 + 8 * 8, 4 * 3 * 8 * 10 + 3 * 8 * 6 + 4 * 8
    assert more.parameters_mtp() == 2 * (attention + experts + 5 * 8 + 2 * 8 * 8)
    assert MIXED.parameters_mtp() == 0


@given(st.floats(0, 384), st.floats(0, 384))
def test_more_experts_are_more_bytes(a: float, b: float):
    kimi = preset("kimi-k2.5")
    low, high = sorted((a, b))
    assert kimi.bytes_read_per_step(low) <= kimi.bytes_read_per_step(high) <= kimi.weight_bytes()


@pytest.mark.parametrize("name", preset_names())
def test_parts_add_up(name: str):
    geometry = preset(name)
    assert tuple(geometry.parameters_by_part()) == PARTS == tuple(geometry.bytes_by_part())
    assert sum(geometry.bytes_by_part().values()) == pytest.approx(geometry.weight_bytes(), abs=len(PARTS))
    assert geometry.parameters_active() <= geometry.parameters_total()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"layers": 0}, "layers is 0"),
        ({"hidden": -8}, "hidden is -8"),
        ({"vocab": 1.5}, "vocab is 1.5"),
        ({"vocab": True}, "vocab is True"),
        ({"vocab": 10**10}, "vocab"),
        ({"layers": 1}, "2 dense of 1 layers"),
        ({"dense_layers": 1}, "no experts"),
        ({"dense_ff": 0}, "width 0"),
        ({"sliding": Sliding(3, 10)}, "3 sliding of 2 layers"),
        ({"kv_bits": 0}, "0 bits"),
        ({"hidden": 10**9, "vocab": 10**9}, "10¹⁵"),
    ],
)
def test_impossible_geometry(change: dict, said: str):
    with pytest.raises(UsageError, match=said):
        replace(DENSE, **change)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GroupedQuery(6, 4, 2),
        lambda: GroupedQuery(4, 0, 2),
        lambda: replace(LATENT, rope_dim=0),
        lambda: Experts(4, 5, 10),
        lambda: Experts(4, 0, 10),
        lambda: Experts(4, 2, 10, shared=1),
        lambda: Sliding(1, 0),
        lambda: Precision(0),
        lambda: Precision(float("nan")),
        lambda: Precision(4, 0, 16),
        lambda: Precision(4, None, 16),
        lambda: Precision(4, 32, -1),
    ],
)
def test_impossible_parts(make):
    with pytest.raises(UsageError, match="impossible geometry"):
        make()
