"""HeadShape: all that says how a head computes; from and to a configuration of the trainer's library.

{"speculators_model_type": "eagle3", "architectures": ["Eagle3Speculator"],
 "draft_vocab_size": 32000, "eagle_aux_hidden_state_layer_ids": [2, 16, 29],   as vLLM counts
 "norm_before_fc": false, "fc_norm": false, "norm_output": false, "norm_before_residual": false,
 "transformer_layer_config": {"model_type": "llama", "hidden_size": 4096, …}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from breakeven.errors import UsageError

OF_LAYER = "transformer_layer_config"
"""Where the trainer's library keeps the decoder layer; engines have it beside everything else."""
LAYER_IDS = "eagle_aux_hidden_state_layer_ids"
NEEDED = ("hidden_size", "intermediate_size", "num_attention_heads", "vocab_size", "rms_norm_eps")
DECODERS = ("llama", "qwen3")
"""Layers that vLLM and the trainer's library have in a head; Qwen3's has norms on queries and keys."""
NORMS = ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output")
THETA = 10_000.0
"""Base of the rotary embedding where a configuration names none, as transformers has it."""
RMS_EPS = 1e-6
"""Of a target's norms where its configuration says none: what transformers takes for Llama and Qwen3."""


@dataclass(frozen=True, slots=True)
class HeadShape:
    """One decoder layer over [norm(embedding); norm(hidden)], behind `fc` over the target's hidden states."""

    decoder: Literal["llama", "qwen3"]
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    """Of the target; `draft_vocabulary` of its ids can be drafted."""
    draft_vocabulary: int
    layers: tuple[int, ...]
    """Layers of the target whose inputs are read, as vLLM counts; () where the configuration names none."""
    rms_norm_eps: float
    max_positions: int
    rope: Mapping[str, Any]
    """`rope_theta`, `rope_type`, and what that type needs, as transformers 5 has them."""
    activation: str = "silu"
    attention_bias: bool = False
    mlp_bias: bool = False
    norm_before_residual: bool = False
    """The residual is taken after hidden_norm instead of before it."""
    norm_before_fc: bool = False
    """EAGLE-3.1: one norm over the three hidden states together, before `fc`."""
    fc_norm: bool = False
    """EAGLE-3.1: a norm for each of the three instead."""
    norm_output: bool = False
    """EAGLE-3.1: what a step hands to the next is normed."""

    @property
    def maps_vocabulary(self) -> bool:
        """Whether draft ids differ from the target's, so that d2t and t2d are there."""
        return self.draft_vocabulary != self.vocabulary


def shape_of(config: Mapping[str, Any]) -> HeadShape:
    """From a configuration of the `speculators` library, as its config.json and head.json have it.

    Raises UsageError for a head of another kind, naming the field.
    """
    layer = config.get(OF_LAYER)
    if config.get("speculators_model_type") != "eagle3" or not isinstance(layer, Mapping):
        raise UsageError("this is no EAGLE-3 head: its configuration has no speculators_model_type = eagle3")
    for name in NEEDED:
        if layer.get(name) is None:
            raise UsageError(f"the head's configuration lacks {name}: name the folder of an EAGLE-3 head")
    decoder = _decoder(layer)
    return HeadShape(
        decoder=decoder,
        hidden=layer["hidden_size"],
        intermediate=layer["intermediate_size"],
        heads=layer["num_attention_heads"],
        kv_heads=layer.get("num_key_value_heads") or layer["num_attention_heads"],
        head_dim=layer.get("head_dim") or layer["hidden_size"] // layer["num_attention_heads"],
        vocabulary=layer["vocab_size"],
        draft_vocabulary=config.get("draft_vocab_size") or layer["vocab_size"],
        layers=tuple(config.get(LAYER_IDS) or ()),
        rms_norm_eps=layer["rms_norm_eps"],
        max_positions=layer.get("max_position_embeddings") or 0,
        rope=rope_of(layer),
        activation=layer.get("hidden_act", "silu"),
        attention_bias=bool(layer.get("attention_bias", False)),
        mlp_bias=bool(layer.get("mlp_bias", False)),
        **{name: bool(config.get(name, False)) for name in NORMS},
    )


def library_config(shape: HeadShape) -> dict[str, Any]:
    """What `shape_of` reads: of the library's config.json, that which says how a head computes."""
    return {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "draft_vocab_size": shape.draft_vocabulary,
        LAYER_IDS: list(shape.layers),
        **{name: getattr(shape, name) for name in NORMS},
        OF_LAYER: {
            "model_type": shape.decoder,
            **layer_sizes(shape),
            "rope_parameters": dict(shape.rope),
            "attention_bias": shape.attention_bias,
            "mlp_bias": shape.mlp_bias,
            "tie_word_embeddings": False,
            "vocab_size": shape.vocabulary,
        },
    }


def rope_of(layer: Mapping[str, Any]) -> dict[str, Any]:
    """The rotary embedding, from a configuration of transformers 5 (rope_parameters) or 4 (rope_theta beside
    rope_scaling)."""
    found = dict(layer.get("rope_parameters") or layer.get("rope_scaling") or {})
    kind = found.pop("type", None)
    found.setdefault("rope_type", kind or "default")
    found.setdefault("rope_theta", layer.get("rope_theta") or THETA)
    return found


def layer_sizes(shape: HeadShape) -> dict[str, Any]:
    """How large the head's layer is, as every configuration of one says it."""
    return {
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": 1,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": shape.activation,
        "max_position_embeddings": shape.max_positions,
        "rms_norm_eps": shape.rms_norm_eps,
    }


def older_rope(rope: Mapping[str, Any]) -> dict[str, Any]:
    """The same as transformers 4 has it, which older engines read: without it they take base 10,000."""
    scaling = {name: value for name, value in rope.items() if name != "rope_theta"}
    return {
        "rope_theta": rope["rope_theta"],
        "rope_scaling": None if rope["rope_type"] == "default" else scaling,
    }


def _decoder(layer: Mapping[str, Any]) -> Literal["llama", "qwen3"]:
    """Raises UsageError for a layer that no engine has as a head."""
    if layer.get("num_hidden_layers", 1) != 1:
        raise UsageError(f"the head has {layer['num_hidden_layers']} layers: engines take one")
    if layer.get("hidden_act", "silu") != "silu":
        raise UsageError(f"the head's activation is {layer['hidden_act']}: engines have silu only")
    decoder = layer.get("model_type")
    if decoder == "llama":
        return "llama"
    if decoder == "qwen3":
        return "qwen3"
    raise UsageError(f"the head's layer is a {decoder} layer: engines take {' or '.join(DECODERS)}")
