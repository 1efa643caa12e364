from dataclasses import replace
from typing import Any

import pytest

from breakeven.eagle.export.sglang import Sglang, layer_ids
from breakeven.errors import UsageError
from tests.unit.eagle.export.heads import SHAPE, of_layers, source

MADE = Sglang()
IDS = "eagle_aux_hidden_state_layer_ids"


def test_the_default_layers_are_left_to_sglang():
    assert layer_ids(source()) is None
    assert IDS not in MADE.config(source(), 3)["eagle_config"]


@pytest.mark.parametrize(
    ("kind", "layers", "written"),
    [
        ("llama", (1, 4, 6), [0, 3, 5]),
        ("llama", (3, 4, 6), [2, 3, 5]),
        ("deepseek_v3", (2, 4, 6), [1, 3, 5]),
        ("deepseek_v3", (3, 4, 6), [3, 4, 6]),
        ("kimi_k2", (5, 6, 7), [5, 6, 7]),
        ("gpt_oss", (2, 4, 6), [2, 4, 6]),
        ("gpt_oss", (1, 4, 6), [1, 4, 6]),
    ],
)
def test_layers_as_sglang_counts_those_of_a_target(kind: str, layers: tuple[int, ...], written: list[int]):
    given = source(of_layers(*layers), model_type=kind)
    config = MADE.config(given, 3)
    assert config["eagle_config"][IDS] == written
    assert MADE.shape(config, given).layers == layers


def test_layers_that_sglang_cannot_be_told_of():
    with pytest.raises(UsageError, match=r"first 1 for the layer after it: write  engines = \[\"vllm\"\]"):
        layer_ids(source(of_layers(1, 4, 6), model_type="deepseek_v3"))


def test_a_target_without_default_layers_has_them_written():
    assert layer_ids(source(of_layers(2, 3, 4), num_hidden_layers=6)) == [1, 2, 3]


@pytest.mark.parametrize(
    "change",
    [{}, {"fc_norm": True, "norm_output": True}, {"norm_before_fc": True}, {"draft_vocabulary": 64}],
)
def test_sglang_builds_what_was_trained(change: dict[str, Any]):
    given = source(replace(SHAPE, **change))
    assert MADE.shape(MADE.config(given, 3), given) == given.shape


def test_the_configuration():
    config = MADE.config(source(), 3)
    assert config["architectures"] == ["LlamaForCausalLMEagle3"]
    assert (config["rope_theta"], config["rope_scaling"]) == (50_000.0, None)
    assert "rope_parameters" not in config
    assert (config["vocab_size"], config["draft_vocab_size"], config["torch_dtype"]) == (64, 30, "bfloat16")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"decoder": "qwen3"}, "a qwen3 layer"),
        ({"attention_bias": True}, "biases"),
        ({"mlp_bias": True}, "biases"),
        ({"norm_before_residual": True}, "its residual taken after the norm"),
    ],
)
def test_heads_that_no_sglang_serves(change: dict[str, Any], says: str):
    with pytest.raises(UsageError, match=says):
        MADE.config(source(replace(SHAPE, **change)), 3)


def test_names_go_there_and_back():
    given = {"layers.0.mlp.up_proj.weight": 1, "fc.weight": 2, "d2t": 3}
    named = MADE.named(given)
    assert named == {"midlayer.mlp.up_proj.weight": 1, "fc.weight": 2, "d2t": 3}
    assert MADE.library_names(named) == given


def test_versions_are_named_only_where_they_matter():
    assert len(list(MADE.notes(source()))) == 1
    newer = " ".join(MADE.notes(source(replace(SHAPE, fc_norm=True))))
    assert "May 2026" in newer and "24663" in newer
    one = " ".join(MADE.notes(source(replace(SHAPE, norm_before_fc=True))))
    assert "July 2026" in one
    other = " ".join(MADE.notes(source(of_layers(3, 4, 6), model_type="kimi_k2")))
    assert "25454" in other
