from typing import Any

import pytest

from breakeven.cost.configs.architectures import geometry_from_config
from breakeven.cost.configs.quantisation import listed
from breakeven.cost.precision import PARTS
from breakeven.errors import UsageError
from tests.unit.cost import hf_configs as configs

FULL = dict.fromkeys(PARTS, 16.0)


def bits(block: dict[str, Any], config: dict[str, Any] = configs.GLM_4_5) -> dict[str, float]:
    weights = geometry_from_config({**config, "quantization_config": block}, "config.json").weights
    return {part: weights.of(part).bits_per_weight for part in PARTS}


def linear(n: float, *but: str) -> dict[str, float]:
    """Every linear layer at n bits; head, table and routers stay, and what is named."""
    quantised = {"attention", "dense", "routed", "shared"} - set(but)
    return FULL | dict.fromkeys(quantised, n)


GROUP = {
    "targets": ["Linear"],
    "weights": {"num_bits": 4, "group_size": 128, "type": "int", "symmetric": True},
}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, linear(8 + 32 / 16384)),
        ({"quant_method": "fp8"}, linear(8)),
        (
            {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.45.mlp.gate", "lm_head"]},
            linear(8),
        ),
        ({"quant_method": "fp8", "ignored_layers": ["self_attn"]}, linear(8, "attention")),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, linear(4 + 20 / 128)),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, linear(8)),
        (
            {"quant_method": "gptq", "bits": 4, "lm_head": True},
            linear(4 + 20 / 128) | {"output": 4 + 20 / 128},
        ),
        ({"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True}, linear(4 + 20 / 64)),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64, "zero_point": False}, linear(4 + 16 / 64)),
        ({"quant_method": "awq", "bits": 4, "modules_to_not_convert": ["gate"]}, linear(4 + 20 / 128)),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, linear(4.5)),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
            linear(4 + (8 + 32 / 256) / 64),
        ),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, linear(8)),
        ({"quant_method": "mxfp4"}, FULL | {"routed": 4.25}),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}, linear(4.5)),
        ({"quant_algo": "FP8"}, linear(8)),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": GROUP}, "ignore": ["lm_head"]},
            linear(4 + 16 / 128),
        ),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": GROUP}},
            linear(4 + 16 / 128) | {"output": 4 + 16 / 128},
        ),
    ],
)
def test_methods(block: dict[str, Any], expected: dict[str, float]):
    assert bits(block) == pytest.approx(expected)


def test_groups_with_targets_of_their_own():
    eight = {
        "targets": ["re:.*self_attn.*"],
        "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
    }
    four = {"targets": ["re:.*experts.*"], "weights": {"num_bits": 4, "type": "float", "group_size": 16}}
    block = {"quant_method": "compressed-tensors", "config_groups": {"a": eight, "b": four}}
    assert bits(block) == FULL | {"attention": 8, "routed": 4.5, "shared": 4.5}


def test_attention_quantised_in_part_is_a_mean_over_its_weights():
    skipped = [f"model.layers.{n}.self_attn.{name}" for n in range(61) for name in ("q_b_proj", "kv_b_proj")]
    block = {"quant_algo": "NVFP4", "exclude_modules": ["lm_head", *skipped]}
    sizes = geometry_from_config(configs.DEEPSEEK_V3, "x").attention.modules(7168)
    full = sizes["q_b_proj"] + sizes["kv_b_proj"]
    expected = 4.5 + 11.5 * full / sum(sizes.values())
    assert bits(block, configs.DEEPSEEK_V3)["attention"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, 8),
        ({"quant_method": "fp8", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, 8),
        ({"quant_method": "fp8", "kv_cache_scheme": None}, 16),
    ],
)
def test_bits_of_the_cache(block: dict[str, Any], expected: int):
    config = {**configs.GLM_4_5, "quantization_config": block}
    assert geometry_from_config(config, "x").kv_bits == expected


@pytest.mark.parametrize(
    ("pattern", "module", "expected"),
    [
        ("re:.*mlp\\.gate_proj", "model.layers.0.mlp.gate_proj", True),
        ("re:.*layers\\.(1?[0-9]|2[0-3])\\.(?!mlp).*", "model.layers.17.self_attn.q_proj", True),
        ("re:mlp", "model.layers.0.mlp.gate_proj", False),
        ("model.layers.*.self_attn", "model.layers.7.self_attn.q_proj", True),
        ("model.layers.1.self_attn*", "model.layers.1.self_attn.q_proj", True),
        ("model.layers.1", "model.layers.10.mlp", False),
        ("gate", "model.layers.0.mlp.gate_proj", False),
        ("language_model.lm_head", "lm_head", True),
    ],
)
def test_ways_to_name_modules(pattern: str, module: str, expected: bool):
    assert listed([pattern], module) is expected


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"quant_method": "exl2"}, "quant_method 'exl2': known are fp8, gptq"),
        ({}, "quant_method ''"),
        ({"quant_algo": "W4A8"}, "quant_algo 'W4A8'"),
        ({"quant_method": "gptq", "bits": 40}, "bits of quantization_config of config.json is 40"),
        ({"quant_method": "gptq", "bits": 4, "group_size": "big"}, "group_size"),
        ({"quant_method": "fp8", "weight_block_size": [128, 0]}, "no sizes"),
        ({"quant_method": "fp8", "ignored_layers": [3]}, "ignored_layers"),
        ({"quant_method": "fp8", "ignored_layers": ["re:("]}, "no regular expression"),
        ({"quant_method": "fp8", "ignored_layers": ["re:" + "(.*)*" * 12 + "!"]}, "may take hours"),
        ({"quant_method": "fp8", "ignored_layers": ["re:(a|aa)+!"]}, "may take hours"),
        ({"quant_method": "fp8", "ignored_layers": ["re:" + ".?" * 60 + "!"]}, "may take hours"),
        ({"quant_method": "x" * 10_000}, "quant_method 'x{40}'"),
    ],
)
def test_bad_blocks(block: dict[str, Any], said: str):
    with pytest.raises(UsageError, match=said):
        bits(block)
