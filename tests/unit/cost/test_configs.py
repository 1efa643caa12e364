from dataclasses import replace
from typing import Any

import pytest

from breakeven.cost.attention import Latent
from breakeven.cost.configs.architectures import geometry_from_config
from breakeven.cost.geometry import Geometry, Sliding
from breakeven.cost.presets import preset
from breakeven.errors import UsageError
from tests.unit.cost import hf_configs as configs


def read(config: dict[str, Any], **changes: Any) -> Geometry:
    return geometry_from_config({**config, **changes}, "config.json")


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("llama-3.1-8b", configs.LLAMA_8B),
        ("qwen3-1.7b", configs.QWEN3_1_7B),
        ("qwen3-30b-a3b", configs.QWEN3_30B),
        ("mixtral-8x7b", configs.MIXTRAL),
        ("olmoe-1b-7b", configs.OLMOE),
        ("gpt-oss-20b", configs.GPT_OSS_20B),
        ("glm-4.5", configs.GLM_4_5),
        ("deepseek-v3", configs.DEEPSEEK_V3),
        ("kimi-k2.5", configs.KIMI_K2_5),
    ],
)
def test_published_configs_are_the_presets(name: str, config: dict[str, Any]):
    assert replace(read(config), source="") == replace(preset(name), source="")


def test_queries_that_are_not_compressed():
    """DeepSeek-V2-Lite is published as 15.7 B parameters of which 2.4 B are active, embeddings left out."""
    lite = read(configs.DEEPSEEK_V2_LITE)
    assert isinstance(lite.attention, Latent) and lite.attention.q_rank is None
    assert lite.parameters_total() / 1e9 == pytest.approx(15.7, rel=0.002)
    assert (lite.parameters_active() - 2 * 102400 * 2048) / 1e9 == pytest.approx(2.4, rel=0.08)


def test_an_architecture_is_known_by_its_model_type_too():
    config = {key: value for key, value in configs.LLAMA_8B.items() if key != "architectures"}
    assert read(config).architecture == "LlamaForCausalLM"


def test_a_wrapper_that_is_not_known_around_a_text_part_that_is():
    wrapped = {"architectures": ["SomethingThatSees"], "text_config": configs.DEEPSEEK_V3}
    assert read(wrapped).parameters_total() == read(configs.DEEPSEEK_V3).parameters_total()


def test_layers_without_experts():
    assert read(configs.QWEN3_30B, mlp_only_layers=[0, 5]).dense_layers == 2
    assert read(configs.QWEN3_30B, decoder_sparse_step=2).dense_layers == 24
    assert read(configs.DEEPSEEK_V3, moe_layer_freq=2).dense_layers == 3 + 29
    assert read(configs.DEEPSEEK_V3, n_routed_experts=None).experts is None


def test_sliding_windows():
    assert read(configs.GPT_OSS_20B).sliding == Sliding(12, 128)
    mistral = {**configs.LLAMA_8B, "architectures": ["MistralForCausalLM"], "sliding_window": 4096}
    assert read(mistral).sliding == Sliding(32, 4096)
    qwen = {**configs.QWEN3_1_7B, "sliding_window": 4096, "max_window_layers": 20}
    assert read(qwen).sliding is None
    assert read(qwen, use_sliding_window=True).sliding == Sliding(8, 4096)


def test_a_head_dimension_of_its_own():
    assert read(configs.LLAMA_8B).attention.kv_values() == 2 * 8 * 128
    assert read(configs.LLAMA_8B, head_dim=64).attention.kv_values() == 2 * 8 * 64


def test_full_precision_of_the_config():
    assert (
        read(configs.LLAMA_8B, torch_dtype="float32").weight_bytes()
        == 2 * read(configs.LLAMA_8B).weight_bytes()
    )


def test_an_unknown_architecture_is_named_with_the_known_and_a_way_out():
    with pytest.raises(UsageError) as raised:
        read(configs.LLAMA_8B, architectures=["MambaForCausalLM"])
    for said in ("config.json", "MambaForCausalLM", "Qwen3MoeForCausalLM", "--geometry FILE"):
        assert said in str(raised.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hidden_size": None}, "config.json has no hidden_size"),
        ({"hidden_size": "4096"}, "hidden_size of config.json is '4096'"),
        ({"hidden_size": 4096.5}, "4096.5, not a whole number"),
        ({"hidden_size": 0}, "hidden_size of config.json is 0"),
        ({"hidden_size": 4095}, "4095 is not divisible by 32 heads"),
        ({"num_key_value_heads": 5}, "32 heads cannot share 5 KV heads"),
        ({"num_hidden_layers": 10**8}, "num_hidden_layers"),
        ({"vocab_size": -1}, "vocab_size of config.json is -1"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings"),
        ({"architectures": "LlamaForCausalLM"}, "architectures of config.json"),
        ({"architectures": [], "model_type": None}, "names no architecture"),
        ({"text_config": 3}, "text_config of config.json is 3, not an object"),
    ],
)
def test_bad_configs(change: dict[str, Any], said: str):
    with pytest.raises(UsageError, match=said):
        read(configs.LLAMA_8B, **change)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_experts_per_tok": 129}, "top_k 129 of 128 experts"),
        ({"mlp_only_layers": [[1]]}, "mlp_only_layers of config.json is "),
        ({"architectures": ["x" * 10_000], "model_type": None}, "the architecture 'x{40}', which"),
        ({"num_experts": None}, "n_routed_experts or num_local_experts or num_experts"),
        (
            {"layer_types": ["linear_attention"], "sliding_window": 5, "use_sliding_window": True},
            "linear_attention",
        ),
    ],
)
def test_bad_configs_of_mixtures(change: dict[str, Any], said: str):
    with pytest.raises(UsageError, match=said):
        read(configs.QWEN3_30B, **change)
