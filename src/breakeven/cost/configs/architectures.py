"""Hugging Face config.json, by architecture.

The names of the fields are those of the configuration classes in transformers (src/transformers/models/*/
configuration_*.py); where a field is absent, their default holds only if it is given here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakeven.cost.attention import Attention, GroupedQuery, Latent
from breakeven.cost.checks import whole
from breakeven.cost.configs.quantisation import kv_bits, precisions
from breakeven.cost.fields import BY_HAND, Fields
from breakeven.cost.geometry import Experts, Geometry, Sliding
from breakeven.errors import UsageError

_DENSE = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_EXPERTS = (
    *("MixtralForCausalLM", "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM", "OlmoeForCausalLM"),
    *("GptOssForCausalLM", "Glm4MoeForCausalLM", "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM"),
)
_WRAPPERS = {"KimiK25ForConditionalGeneration": "DeepseekV3ForCausalLM"}
"""Models whose text part is another architecture; what sees or hears is not counted."""
_MODEL_TYPES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "qwen2_moe": "Qwen2MoeForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "olmoe": "OlmoeForCausalLM",
    "gpt_oss": "GptOssForCausalLM",
    "glm4_moe": "Glm4MoeForCausalLM",
    "deepseek_v2": "DeepseekV2ForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
    "kimi_k2": "DeepseekV3ForCausalLM",
    "kimi_k25": "KimiK25ForConditionalGeneration",
}
"""For configs without `architectures`."""
KNOWN = (*_DENSE, *_EXPERTS, *_WRAPPERS)
_MOST_LAYERS = 10_000


def geometry_from_config(config: Mapping[str, Any], where: str) -> Geometry:
    """The text part of the model.

    Raises UsageError for an unknown architecture or quantisation, a field that is missing or no number, or an
    impossible geometry.
    """
    outer = Fields(config, where)
    text = outer.child("text_config")
    fields = Fields({**config, **text.values}, where) if text else outer
    architecture = _architecture(outer, text)
    layers = fields.count("num_hidden_layers", most=_MOST_LAYERS)
    attention = _attention(fields)
    experts = _experts(fields) if _WRAPPERS.get(architecture, architecture) in _EXPERTS else None
    dense_layers = _dense_layers(fields, layers) if experts else layers
    return Geometry(
        architecture=architecture,
        layers=layers,
        hidden=fields.count("hidden_size"),
        vocab=fields.count("vocab_size"),
        attention=attention,
        dense_layers=dense_layers,
        dense_ff=fields.count("intermediate_size") if dense_layers else 0,
        experts=experts,
        tied=fields.flag("tie_word_embeddings"),
        sliding=_sliding(fields, layers, architecture),
        mtp_layers=fields.count("num_nextn_predict_layers", default=0, least=0),
        weights=precisions(fields, attention, layers, dense_layers),
        kv_bits=kv_bits(fields),
        source=where,
    )


def _architecture(outer: Fields, text: Fields | None) -> str:
    """The first known of what the config calls itself and its text part."""
    named = [name for one in (outer, text) if one for name in _names(one)]
    found = next((name for name in named if name in KNOWN), None)
    if found is not None:
        return found
    if not named:
        raise UsageError(f"{outer.where} is no config.json of a model: it names no architecture")
    raise UsageError(
        f"{outer.where} has the architecture {named[0][:40]!r}, which is not known here: "
        f"known are {', '.join(KNOWN)}. {BY_HAND}"
    )


def _names(one: Fields) -> list[str]:
    named = one.texts("architectures")
    model_type = one.text("model_type")
    return named or ([_MODEL_TYPES.get(model_type, model_type)] if model_type else [])


def _attention(fields: Fields) -> Attention:
    heads = fields.count("num_attention_heads")
    if fields.get("kv_lora_rank") is not None:
        return Latent(
            heads=heads,
            q_rank=fields.maybe_count("q_lora_rank"),
            kv_rank=fields.count("kv_lora_rank"),
            nope_dim=fields.count("qk_nope_head_dim"),
            rope_dim=fields.count("qk_rope_head_dim"),
            v_dim=fields.count("v_head_dim"),
        )
    return GroupedQuery(heads, fields.count("num_key_value_heads", default=heads), _head_dim(fields, heads))


def _head_dim(fields: Fields, heads: int) -> int:
    hidden = fields.count("hidden_size")
    if fields.get("head_dim") is None and hidden % heads:
        raise UsageError(f"impossible geometry: hidden_size {hidden} is not divisible by {heads} heads")
    return fields.count("head_dim", default=hidden // heads)


def _experts(fields: Fields) -> Experts | None:
    """None for a model of a mixture's architecture without experts, as DeepSeek's may be."""
    if "n_routed_experts" in fields.values and fields.get("n_routed_experts") is None:
        return None
    ff = fields.count("moe_intermediate_size", "intermediate_size")
    one_shared = fields.count("shared_expert_intermediate_size", default=0, least=0)
    return Experts(
        count=fields.count("n_routed_experts", "num_local_experts", "num_experts"),
        top_k=fields.count("num_experts_per_tok", "experts_per_token"),
        ff=ff,
        shared=1 if one_shared else fields.count("n_shared_experts", default=0, least=0),
        shared_ff=one_shared or ff,
    )


def _dense_layers(fields: Fields, layers: int) -> int:
    """Layers without experts: the first ones (DeepSeek, GLM), every so many, or those listed (Qwen)."""
    first = fields.count("first_k_dense_replace", default=0, least=0)
    every = fields.count("moe_layer_freq", default=1)
    step = fields.count("decoder_sparse_step", default=1)
    listed = [whole(f"mlp_only_layers of {fields.where}", one, 0) for one in fields.items("mlp_only_layers")]
    return sum(
        layer < first or layer % every != 0 or (layer + 1) % step != 0 or layer in listed
        for layer in range(layers)
    )


def _sliding(fields: Fields, layers: int, architecture: str) -> Sliding | None:
    window = fields.maybe_count("sliding_window")
    if window is None or not fields.flag("use_sliding_window", default=not architecture.startswith("Qwen")):
        return None
    kinds = fields.texts("layer_types")
    unknown = sorted(set(kinds) - {"sliding_attention", "full_attention"})
    if unknown:
        raise UsageError(f"{fields.where} has layers of {unknown[0][:40]!r}, which is not known here")
    some = kinds.count("sliding_attention") if kinds else layers - _first_sliding(fields)
    return Sliding(some, window) if some > 0 else None


def _first_sliding(fields: Fields) -> int:
    """Qwen2's layers slide from this one on, where no list of layer types says more."""
    return fields.count("max_window_layers", default=0, least=0)
