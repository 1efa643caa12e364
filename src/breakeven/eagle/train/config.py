"""The architecture of a head as head.json and checkpoints say it: the trainer library's own configuration.

    {"speculators_model_type": "eagle3", "architectures": ["Eagle3Speculator"],
     "draft_vocab_size": 32000, "eagle_aux_hidden_state_layer_ids": [2, 16, 29],   as vLLM counts
     "norm_before_fc": false, "fc_norm": false, "norm_output": false, "norm_before_residual": false,
     "transformer_layer_config": {"model_type": "llama", "hidden_size": 4096, …}}

head.safetensors holds the tensors of that model by the library's names, in float32: fc.weight, layers.0.*,
norm.weight, lm_head.weight, fc_norm.0.weight … in style eagle3.1, and d2t and t2d if the draft vocabulary is
smaller than the target's. The embedding is the target's own, and not among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from breakeven.errors import UsageError

Style = Literal["eagle3", "eagle3.1"]
NORMS = ("norm_before_fc", "fc_norm", "norm_output", "norm_before_residual")
STYLES: Mapping[Style, Sequence[str]] = {"eagle3": (), "eagle3.1": ("fc_norm", "norm_output")}
"""Which of NORMS are on. EAGLE-3.1 norms each of the three hidden states before `fc`, and what a step hands
to the next; `norm_before_fc`, one norm over the three together, is how gpt-oss heads have it."""
WIDENING = 3
"""Width of the feed-forward layer over that of the hidden state, where a target has only experts."""
ROPE_THETA, EPSILON = 10_000.0, 1e-6
"""Where a configuration names none, as transformers has them."""


def head_config(
    target: Mapping[str, Any], layers: Sequence[int], draft_vocabulary: int, style: Style
) -> dict[str, Any]:
    """One decoder layer of the Llama kind that suits a target, by its config.json.

    Raises UsageError where that lacks what is needed, or the vocabulary is smaller than the draft's.
    """
    text = target.get("text_config", target)
    layer = _layer(text)
    if not 0 < draft_vocabulary <= layer["vocab_size"]:
        raise UsageError(
            f"the draft vocabulary has {draft_vocabulary:,} tokens, and the target's "
            f"{layer['vocab_size']:,}: write a smaller  draft_vocabulary  under [data] of the recipe, "
            "and make data again"
        )
    return {
        "speculators_model_type": "eagle3",
        "architectures": ["Eagle3Speculator"],
        "draft_vocab_size": draft_vocabulary,
        "eagle_aux_hidden_state_layer_ids": list(layers),
        **{norm: norm in STYLES[style] for norm in NORMS},
        "transformer_layer_config": layer,
    }


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first setting that differs between two configurations, in words; None if none does."""
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            if (inner := difference(old, new)) is not None:
                return inner
        elif old != new:
            return f"{name} {old}, not {new}"
    return None


def _layer(text: Mapping[str, Any]) -> dict[str, Any]:
    """A LlamaConfig. Its rotary embedding is the plain one, whatever the target stretches its own with:
    engines differ in how they stretch, and a head looks back no further than it was trained to. Its
    activation is the one that engines have for heads."""
    hidden = _number(text, "hidden_size")
    return {
        "model_type": "llama",
        "vocab_size": _number(text, "vocab_size"),
        "hidden_size": hidden,
        "intermediate_size": text.get("intermediate_size") or WIDENING * hidden,
        "num_hidden_layers": 1,
        **_attention(text, hidden),
        "hidden_act": "silu",
        "max_position_embeddings": _number(text, "max_position_embeddings"),
        "rms_norm_eps": text.get("rms_norm_eps") or EPSILON,
        "rope_parameters": {"rope_type": "default", "rope_theta": _rope_theta(text)},
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
    }


def _attention(text: Mapping[str, Any], hidden: int) -> dict[str, int]:
    """Heads as the target has them; of one that compresses keys and values, plain ones. LlamaConfig wants
    `hidden` to be a multiple of the number of heads."""
    heads = _number(text, "num_attention_heads")
    compressed = text.get("kv_lora_rank") is not None
    key_value_heads = heads if compressed else text.get("num_key_value_heads") or heads
    size = None if compressed else text.get("head_dim")
    if hidden % heads:
        heads = hidden // size if size and hidden % size == 0 else 1
        key_value_heads = key_value_heads if heads % key_value_heads == 0 else heads
    return {
        "num_attention_heads": heads,
        "num_key_value_heads": key_value_heads,
        "head_dim": size or hidden // heads,
    }


def _rope_theta(text: Mapping[str, Any]) -> float:
    """Where transformers 5 has it (one for all layers, or one for each kind of layer), or 4."""
    stated = text.get("rope_parameters") or {}
    of_kinds = [value for value in stated.values() if isinstance(value, Mapping)]
    for place in (text, stated, *of_kinds):
        if place.get("rope_theta"):
            return float(place["rope_theta"])
    return ROPE_THETA


def _number(text: Mapping[str, Any], name: str) -> Any:
    value = text.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        raise UsageError(
            f"the target's configuration has {name} = {value!r}: a head can be trained for decoders with "
            "RMSNorm and attention, as Llama, Qwen, DeepSeek and Kimi are"
        )
    return value
