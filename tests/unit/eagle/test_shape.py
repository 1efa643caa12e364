from dataclasses import replace
from typing import Any

import pytest

from breakeven.eagle.shape import library_config, older_rope, rope_of, shape_of
from breakeven.eagle.train.config import head_config
from breakeven.errors import UsageError
from tests.unit.eagle.export.heads import SHAPE, TARGET


def config(**layer: Any) -> dict[str, Any]:
    found = head_config(TARGET, (2, 4, 5), 30, "eagle3")
    return {**found, "transformer_layer_config": {**found["transformer_layer_config"], **layer}}


def test_a_configuration_of_train():
    assert shape_of(config()) == SHAPE


def test_norms_of_a_style():
    shape = shape_of(head_config(TARGET, (2, 4, 5), 64, "eagle3.1"))
    assert (shape.fc_norm, shape.norm_output, shape.norm_before_fc) == (True, True, False)
    assert not shape.maps_vocabulary


def test_what_the_layer_leaves_out():
    said = config()
    layer = {
        name: value
        for name, value in said["transformer_layer_config"].items()
        if name not in ("num_key_value_heads", "head_dim", "rope_parameters", "hidden_act")
    }
    shape = shape_of({**said, "transformer_layer_config": layer})
    assert (shape.kv_heads, shape.head_dim, shape.activation) == (4, 8, "silu")
    assert shape.rope == {"rope_type": "default", "rope_theta": 10_000.0}


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        ({"model_type": "gpt2"}, "gpt2 layer"),
        ({"num_hidden_layers": 2}, "has 2 layers"),
        ({"hidden_act": "gelu"}, "activation is gelu"),
        ({"rms_norm_eps": None}, "lacks rms_norm_eps"),
    ],
)
def test_a_head_of_another_kind(layer: dict[str, Any], says: str):
    with pytest.raises(UsageError, match=says):
        shape_of(config(**layer))


def test_no_head_at_all():
    with pytest.raises(UsageError, match="no EAGLE-3 head"):
        shape_of({"speculators_model_type": "dflash", "transformer_layer_config": {}})


@pytest.mark.parametrize(
    "layer",
    [
        {"rope_theta": 5e5, "rope_scaling": {"type": "llama3", "factor": 8.0}},
        {"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0}},
    ],
)
def test_rotary_embeddings_of_both_spellings(layer: dict[str, Any]):
    found = rope_of(layer)
    assert found == {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0}
    assert rope_of(older_rope(found)) == found


def test_the_plain_rotary_embedding_has_no_scaling():
    assert older_rope(SHAPE.rope) == {"rope_theta": 50_000.0, "rope_scaling": None}


@pytest.mark.parametrize("changes", [{}, {"fc_norm": True, "decoder": "qwen3"}, {"attention_bias": True}])
def test_a_configuration_says_all_of_a_shape(changes: dict[str, Any]):
    shape = replace(SHAPE, **changes)
    assert shape_of(library_config(shape)) == shape
