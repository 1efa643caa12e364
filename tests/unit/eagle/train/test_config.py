"""The configuration of a head suits its target, whatever that is built of."""

from __future__ import annotations

from typing import Any

import pytest

from breakeven.eagle.train.config import difference, head_config
from breakeven.errors import UsageError
from tests.unit.eagle.train.tiny import TARGET

KIMI = {
    "model_type": "kimi_k2",
    "vocab_size": 163_840,
    "hidden_size": 7168,
    "intermediate_size": 18_432,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "kv_lora_rank": 512,
    "v_head_dim": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 50_000.0,
    "rope_scaling": {"type": "yarn", "factor": 32.0},
    "max_position_embeddings": 262_144,
}


def layer(target: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = head_config(target, [2, 4, 5], 10, "eagle3")["transformer_layer_config"]
    return found


def test_plain_target_lends_its_own_sizes():
    found = layer(TARGET)
    for name in (
        "hidden_size",
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
    ):
        assert found[name] == TARGET[name]
    assert (found["model_type"], found["num_hidden_layers"]) == ("llama", 1)
    assert found["rope_parameters"] == {"rope_type": "default", "rope_theta": 10_000.0}


def test_compressed_attention_becomes_plain_heads():
    found = layer(KIMI)
    assert (found["num_attention_heads"], found["num_key_value_heads"], found["head_dim"]) == (64, 64, 128)
    assert found["rope_parameters"] == {"rope_type": "default", "rope_theta": 50_000.0}
    unsaid = layer({name: value for name, value in KIMI.items() if name != "v_head_dim"})
    assert unsaid["head_dim"] == 7168 // 64


def test_heads_that_do_not_divide_the_hidden_size():
    odd = {**TARGET, "hidden_size": 48, "num_attention_heads": 5, "num_key_value_heads": 5, "head_dim": 8}
    found = layer(odd)
    assert (found["num_attention_heads"], found["num_key_value_heads"], found["head_dim"]) == (6, 6, 8)


def test_experts_alone_leave_the_width_to_us():
    found = layer({name: value for name, value in TARGET.items() if name != "intermediate_size"})
    assert found["intermediate_size"] == 3 * TARGET["hidden_size"]


def test_text_of_a_model_with_several_modalities():
    assert layer({"text_config": TARGET, "vision_config": {}}) == layer(TARGET)


@pytest.mark.parametrize(
    "stated",
    [
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 5e5}},
        {
            "rope_parameters": {
                "full_attention": {"rope_theta": 5e5},
                "sliding_attention": {"rope_theta": 1e4},
            }
        },
    ],
)
def test_rope_theta_as_transformers_5_has_it(stated: dict[str, Any]):
    plain = {name: value for name, value in TARGET.items() if name != "rope_theta"}
    assert layer({**plain, **stated})["rope_parameters"]["rope_theta"] == 5e5


def test_styles():
    plain = head_config(TARGET, [2, 4, 5], 10, "eagle3")
    newer = head_config(TARGET, [2, 4, 5], 10, "eagle3.1")
    assert not any(
        plain[name] for name in ("norm_before_fc", "fc_norm", "norm_output", "norm_before_residual")
    )
    assert newer["fc_norm"] and newer["norm_output"] and not newer["norm_before_fc"]
    assert plain["eagle_aux_hidden_state_layer_ids"] == [2, 4, 5]


@pytest.mark.parametrize(
    "name", ["hidden_size", "num_attention_heads", "vocab_size", "max_position_embeddings"]
)
def test_target_that_lacks_something_is_refused(name: str):
    with pytest.raises(UsageError, match=name):
        layer({key: value for key, value in TARGET.items() if key != name})


def test_vocabulary_smaller_than_the_map_is_refused():
    with pytest.raises(UsageError, match="41 tokens, and the target's 40"):
        head_config(TARGET, [2, 4, 5], 41, "eagle3")


def test_difference_names_the_first():
    one = head_config(TARGET, [2, 4, 5], 10, "eagle3")
    assert difference(one, one) is None
    assert difference(one, head_config(TARGET, [2, 4, 6], 10, "eagle3")) == (
        "eagle_aux_hidden_state_layer_ids [2, 4, 5], not [2, 4, 6]"
    )
    wider = head_config({**TARGET, "hidden_size": 32}, [2, 4, 5], 10, "eagle3")
    assert difference(one, wider) == "hidden_size 16, not 32"
