"""The head that suits a target: its shape, and the configuration that head.json and checkpoints hold of it.

head.safetensors holds the tensors of the trainer library's model by its names, in float32: fc.weight,
layers.0.*, norm.weight, lm_head.weight, fc_norm.0.weight … in style eagle3.1, and d2t and t2d if the draft
vocabulary is smaller than the target's. The embedding is the target's own, and not among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from breakeven.eagle.shape import RMS_EPS, THETA, HeadShape, library_config
from breakeven.errors import UsageError

Style = Literal["eagle3", "eagle3.1"]
"""EAGLE-3.1 norms each of the three hidden states before `fc`, and what a step hands to the next. (One norm
over the three together, `norm_before_fc`, is how gpt-oss heads have it.)"""
WIDENING = 3
"""Width of the feed-forward layer over that of the hidden state, where a target has only experts."""


def head_config(
    target: Mapping[str, Any], layers: Sequence[int], draft_vocabulary: int, style: Style
) -> dict[str, Any]:
    """One decoder layer of the Llama kind that suits a target, by its config.json.

    Raises UsageError where that lacks what is needed, or the vocabulary is smaller than the draft's.
    """
    shape = _shape(target.get("text_config", target), layers, draft_vocabulary, style)
    if not 0 < draft_vocabulary <= shape.vocabulary:
        raise UsageError(
            f"the draft vocabulary has {draft_vocabulary:,} tokens, and the target's {shape.vocabulary:,}: "
            "write a smaller  draft_vocabulary  under [data] of the recipe, and make data again"
        )
    return library_config(shape)


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


def _shape(text: Mapping[str, Any], layers: Sequence[int], draft_vocabulary: int, style: Style) -> HeadShape:
    """Its rotary embedding is the plain one, whatever the target stretches its own with: engines differ in
    how they stretch, and a head looks back no further than it was trained to. Its activation is the one that
    engines have for heads."""
    hidden = _number(text, "hidden_size")
    heads, kv_heads, head_dim = _attention(text, hidden)
    return HeadShape(
        decoder="llama",
        hidden=hidden,
        intermediate=text.get("intermediate_size") or WIDENING * hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocabulary=_number(text, "vocab_size"),
        draft_vocabulary=draft_vocabulary,
        layers=tuple(layers),
        rms_norm_eps=text.get("rms_norm_eps") or RMS_EPS,
        max_positions=_number(text, "max_position_embeddings"),
        rope={"rope_type": "default", "rope_theta": _rope_theta(text)},
        fc_norm=style == "eagle3.1",
        norm_output=style == "eagle3.1",
    )


def _attention(text: Mapping[str, Any], hidden: int) -> tuple[int, int, int]:
    """Heads, those of keys and values, and their size: as the target has them; of one that compresses keys
    and values, plain ones as wide as its values. LlamaConfig wants `hidden` to be a multiple of the number of
    heads."""
    heads = _number(text, "num_attention_heads")
    compressed = text.get("kv_lora_rank") is not None
    key_value_heads = heads if compressed else text.get("num_key_value_heads") or heads
    size = text.get("v_head_dim" if compressed else "head_dim")
    if hidden % heads:
        heads = hidden // size if size and hidden % size == 0 else 1
        key_value_heads = key_value_heads if heads % key_value_heads == 0 else heads
    return heads, key_value_heads, size or hidden // heads


def _rope_theta(text: Mapping[str, Any]) -> float:
    """Where transformers 5 has it (one for all layers, or one for each kind of layer), or 4."""
    stated = text.get("rope_parameters") or {}
    of_kinds = [value for value in stated.values() if isinstance(value, Mapping)]
    for place in (text, stated, *of_kinds):
        if place.get("rope_theta"):
            return float(place["rope_theta"])
    return THETA


def _number(text: Mapping[str, Any], name: str) -> Any:
    value = text.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        raise UsageError(
            f"the target's configuration has {name} = {value!r}: a head can be trained for decoders with "
            "RMSNorm and attention, as Llama, Qwen, DeepSeek and Kimi are"
        )
    return value
