"""A head for SGLang: a flat Llama configuration and EAGLE's own tensor names, as SpecForge writes them.

Fields, names and defaults from SGLang's python/sglang/srt/models/llama_eagle3.py, which drops a tensor whose
name it does not know without a word, and model_executor/model_runner.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from breakeven.eagle.export.format import Format
from breakeven.eagle.export.source import Source
from breakeven.eagle.export.tensors import LAYER
from breakeven.eagle.layers import default_layers, written_as
from breakeven.eagle.shape import HeadShape, layer_sizes, older_rope, shape_of
from breakeven.errors import UsageError

MIDLAYER = "midlayer."
"""SGLang has the layer under this name; as `layers.0.` too since May 2026 (pull request 24663)."""
FIRST_DECIDES = frozenset({"deepseek_v2", "deepseek_v3", "glm4_moe_lite", "kimi_k2", "kimi_k25"})
"""Targets whose layer ids SGLang counts as SpecForge does if the first is 1, else as vLLM does: since May
2026 (pull request 25454). Before, and for all other targets but those below, it counts as SpecForge does."""
AS_VLLM = frozenset({"gpt_oss"})
"""Targets whose layer ids it counts as vLLM does, since July 2026 (pull request 32334)."""
FIRST = 2
"""SpecForge's layer 1, as vLLM counts."""
IDS = "eagle_aux_hidden_state_layer_ids"


class Sglang(Format):
    """`--speculative-algorithm EAGLE3 --speculative-draft-model-path FOLDER`. The embedding is the target's
    own in any case."""

    name: ClassVar[str] = "sglang"
    with_embedding: ClassVar[bool] = False

    def config(self, source: Source, k: int) -> dict[str, Any]:
        """With the rotary embedding as transformers 4 has it: 5 reads that too, and SGLang would take
        rope_parameters for a scaling."""
        shape = source.shape
        _refuse(shape)
        layers = layer_ids(source)
        return {
            "architectures": ["LlamaForCausalLMEagle3"],
            "model_type": "llama",
            **layer_sizes(shape),
            **older_rope(shape.rope),
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": False,
            "vocab_size": shape.vocabulary,
            "draft_vocab_size": shape.draft_vocabulary,
            "norm_before_fc": shape.norm_before_fc,
            "fc_norm": shape.fc_norm,
            "norm_output": shape.norm_output,
            "eagle_config": {"use_aux_hidden_state": True, **({} if layers is None else {IDS: layers})},
            "torch_dtype": source.weight_type,
        }

    def shape(self, config: Mapping[str, Any], source: Source) -> HeadShape:
        as_library = {
            **config,
            "speculators_model_type": "eagle3",
            "norm_before_residual": False,
            "transformer_layer_config": config,
        }
        return replace(shape_of(as_library), layers=_counted(config["eagle_config"].get(IDS), source))

    def named(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        return _renamed(tensors, LAYER, MIDLAYER)

    def library_names(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        return _renamed(tensors, MIDLAYER, LAYER)

    def notes(self, source: Source) -> Iterator[str]:
        kind, shape = source.target.get("model_type"), source.shape
        yield "SGLang takes EAGLE3 since March 2025 (pull request 4247); none was started with this folder"
        if not source.has_default_layers and kind in FIRST_DECIDES | AS_VLLM:
            since, request = ("July 2026", 32334) if kind in AS_VLLM else ("May 2026", 25454)
            yield (
                f"SGLang older than {since} (pull request {request}) counts the layers of a {kind} target "
                "otherwise, and reads others without a word"
            )
        if shape.norm_before_fc:
            yield _left_out("the norm before fc", "July 2026", 32334)
        if shape.fc_norm or shape.norm_output:
            yield _left_out("the norms of EAGLE-3.1", "May 2026", 24663)


def layer_ids(source: Source) -> list[int] | None:
    """As the current SGLang counts them for this target; None where it chooses the same ones by itself, which
    no version counts otherwise.

    Raises UsageError for layers that it cannot be told of.
    """
    if source.has_default_layers:
        return None
    layers, kind = source.shape.layers, source.target.get("model_type")
    if kind in FIRST_DECIDES and layers[0] < FIRST:
        raise UsageError(
            f"SGLang cannot be told to read layers {list(layers)} of a {kind} target, since it takes a first "
            '1 for the layer after it: write  engines = ["vllm"]  under [export] of the recipe'
        )
    plain = kind in AS_VLLM or (kind in FIRST_DECIDES and layers[0] != FIRST)
    return written_as(layers, "vllm" if plain else "sglang")


def _counted(ids: list[int] | None, source: Source) -> tuple[int, ...]:
    """The layers that the current SGLang reads by these ids, as vLLM counts."""
    if ids is None:
        return default_layers(source.target["num_hidden_layers"])
    kind = source.target.get("model_type")
    plain = kind in AS_VLLM or (kind in FIRST_DECIDES and ids[0] != 1)
    return tuple(one if plain else one + 1 for one in ids)


def _refuse(shape: HeadShape) -> None:
    """Raises UsageError for a head that no SGLang can serve."""
    lacks = {
        f"a {shape.decoder} layer": shape.decoder != "llama",
        "biases": shape.attention_bias or shape.mlp_bias,
        "its residual taken after the norm": shape.norm_before_residual,
    }
    for what in (what for what, is_there in lacks.items() if is_there):
        raise UsageError(
            f'the head has {what}, which SGLang\'s EAGLE-3 model has not: write  engines = ["vllm"]  under '
            "[export] of the recipe"
        )


def _renamed(tensors: Mapping[str, Any], before: str, after: str) -> dict[str, Any]:
    return {
        after + name.removeprefix(before) if name.startswith(before) else name: tensor
        for name, tensor in tensors.items()
    }


def _left_out(what: str, since: str, request: int) -> str:
    return (
        f"SGLang older than {since} (pull request {request}) leaves {what} out, without a word, and accepts "
        "less"
    )
