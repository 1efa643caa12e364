import json
from typing import Any

import pytest

from breakeven.cost.geometry_json import geometry_from_json, geometry_to_json
from breakeven.cost.presets import preset, preset_names
from breakeven.errors import UsageError

DENSE: dict[str, Any] = {
    "layers": 2,
    "hidden": 8,
    "vocab": 100,
    "attention": {"heads": 4, "kv_heads": 2, "head_dim": 2},
    "dense_ff": 16,
}
EXPERTS: dict[str, Any] = {**DENSE, "experts": {"count": 4, "top_k": 2, "ff": 10}}


@pytest.mark.parametrize("name", preset_names())
def test_what_is_written_is_read(name: str):
    geometry = preset(name)
    assert geometry_from_json(json.loads(json.dumps(geometry_to_json(geometry))), "x") == geometry


def test_defaults():
    dense, experts = geometry_from_json(DENSE, "x"), geometry_from_json(EXPERTS, "x")
    assert (dense.dense_layers, experts.dense_layers) == (2, 0)
    assert (dense.tied, dense.kv_bits, dense.weights.dense.bits_per_weight) == (False, 16, 16)
    assert dense.source == "x"


def test_bits_are_a_number_or_a_group():
    bits = {"dense": 8, "attention": {"bits": 4, "group": 128, "scale_bits": 20}}
    weights = geometry_from_json({**DENSE, "bits": bits}, "x").weights
    assert (weights.dense.bits_per_weight, weights.attention.bits_per_weight) == (8, 4 + 20 / 128)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"layers": None}, "x has no layers"),
        ({"layers": "2"}, "layers of x is '2', not a whole number"),
        ({"layers": 2.0}, "layers of x is 2.0"),
        ({"hidden": -1}, "hidden of x is -1"),
        ({"hiden": 8}, "'hiden', which no geometry has"),
        ({"attention": None}, "x has no attention"),
        ({"attention": [4]}, "attention of x is .4., not an object"),
        ({"attention": {"heads": 4, "kv_heads": 3, "head_dim": 2}}, "4 heads cannot share 3 KV heads"),
        ({"attention": {"heads": 4, "kv_rank": 2}}, "nope_dim"),
        ({"experts": {"count": 4, "top_k": 8, "ff": 1}}, "top_k 8 of 4 experts"),
        ({"bits": {"experts": 4}}, "'experts': it knows attention, dense"),
        ({"bits": {"dense": "four"}}, "dense of bits of x is 'four'"),
        ({"bits": {"dense": {"bits": 4, "group": -1}}}, "group"),
        ({"kv_bits": float("inf")}, "kv_bits"),
        ({"tied": 1}, "tied of x is 1, not true or false"),
        ({"source": 3}, "source of x is 3, not text"),
    ],
)
def test_bad_input(change: dict[str, Any], said: str):
    with pytest.raises(UsageError, match=said):
        geometry_from_json({**DENSE, **change}, "x")
