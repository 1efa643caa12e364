"""A geometry out of a GGUF header: sizes from its metadata, bytes from its tensors, exactly.

The keys are those of docs/gguf.md in the ggml repository and gguf-py/gguf/constants.py of llama.cpp.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from breakeven.cost.attention import Attention, GroupedQuery, Latent
from breakeven.cost.fields import BY_HAND, Fields
from breakeven.cost.geometry import Experts, Geometry, Sliding
from breakeven.cost.gguf_header import Header, TensorInfo, read_header
from breakeven.cost.precision import PARTS, Precision, Precisions
from breakeven.errors import UsageError

KNOWN = ("llama", "qwen2", "qwen3", "qwen2moe", "qwen3moe", "olmoe", "gpt-oss", "glm4moe", "deepseek2")
_MOST_LAYERS = 10_000
_EVERY_OTHER = "gpt-oss"
"""Layers 0, 2, 4, … of this one slide (llama.cpp, src/llama-model.cpp)."""
_UNEXPLAINED = 0.01
"""Share of the weights by which tensors may differ from the metadata: biases, copies of projections."""
_BLOCK = re.compile(r"blk\.(\d+)\.")
_SPLIT = re.compile(r"-\d{5}-of-(\d{5})\.gguf$")
_PART_OF = (
    (re.compile(r"token_embd\."), "embedding"),
    (re.compile(r"output\.weight"), "output"),
    (re.compile(r"blk\.\d+\.ffn_(gate|up|down|gate_up)_exps\."), "routed"),
    (re.compile(r"blk\.\d+\.ffn_(gate|up|down)_shexp\."), "shared"),
    (re.compile(r"blk\.\d+\.ffn_(gate|up|down)\."), "dense"),
    (re.compile(r"blk\.\d+\.attn_(?!norm|post_norm)"), "attention"),
)


def geometry_from_gguf(path: Path) -> Geometry:
    """Of a file, or of all parts of one that is split.

    Raises UsageError for an unknown architecture, a file that is damaged or not whole, and tensors that do
    not fit the metadata.
    """
    header = _joined(path)
    arch = Fields(header.metadata, str(path)).text("general.architecture")
    if arch not in KNOWN:
        raise UsageError(
            f"{path} has the architecture {arch[:40]!r}, which is not known here: "
            f"known are {', '.join(KNOWN)}. {BY_HAND}"
        )
    prefix = f"{arch}."
    values = {
        key.removeprefix(prefix): value for key, value in header.metadata.items() if key.startswith(prefix)
    }
    shape = _shape(Fields(values, str(path)), arch, header)
    return replace(shape, weights=_precisions(shape, header, path))


def _shape(fields: Fields, arch: str, header: Header) -> Geometry:
    """With weights in BF16 for now."""
    tensors = {tensor.name: tensor for tensor in header.tensors}
    mtp_layers = fields.count("nextn_predict_layers", default=0, least=0)
    layers = _layers(fields, mtp_layers)
    experts = _experts(fields)
    dense_layers = sum(f"blk.{layer}.ffn_gate_inp.weight" not in tensors for layer in range(layers))
    table = _matrix(tensors, "token_embd.weight", fields.where)
    window = fields.maybe_count("attention.sliding_window") if arch == _EVERY_OTHER else None
    return Geometry(
        architecture=arch,
        layers=layers,
        hidden=fields.count("embedding_length"),
        vocab=table.shape[1],
        attention=_attention(fields),
        dense_layers=dense_layers if experts else layers,
        dense_ff=_one(fields, "feed_forward_length") if dense_layers or experts is None else 0,
        experts=experts,
        tied="output.weight" not in tensors,
        sliding=Sliding((layers + 1) // 2, window) if window else None,
        mtp_layers=mtp_layers,
        source=fields.where,
    )


def _layers(fields: Fields, mtp_layers: int) -> int:
    """GGUF counts the layers for multi-token prediction among the blocks."""
    blocks = fields.count("block_count", most=_MOST_LAYERS)
    if mtp_layers >= blocks:
        raise UsageError(
            f"impossible geometry: {mtp_layers} layers of {blocks} in {fields.where} predict ahead"
        )
    return blocks - mtp_layers


def _attention(fields: Fields) -> Attention:
    heads = _one(fields, "attention.head_count")
    if fields.get("attention.kv_lora_rank") is not None:
        rope = fields.count("rope.dimension_count")
        key = fields.count("attention.key_length_mla", "attention.key_length")
        return Latent(
            heads=heads,
            q_rank=fields.maybe_count("attention.q_lora_rank"),
            kv_rank=fields.count("attention.kv_lora_rank"),
            nope_dim=key - rope,
            rope_dim=rope,
            v_dim=fields.count("attention.value_length_mla", "attention.value_length"),
        )
    hidden = fields.count("embedding_length")
    head_dim = fields.count("attention.key_length", default=hidden // heads)
    return GroupedQuery(heads, _one(fields, "attention.head_count_kv", heads), head_dim)


def _experts(fields: Fields) -> Experts | None:
    if not fields.count("expert_count", default=0, least=0):
        return None
    wide = "expert_feed_forward_length" in fields.values
    ff = _one(fields, "expert_feed_forward_length" if wide else "feed_forward_length")
    one_shared = fields.count("expert_shared_feed_forward_length", default=0, least=0)
    return Experts(
        count=fields.count("expert_count"),
        top_k=fields.count("expert_used_count"),
        ff=ff,
        shared=fields.count("expert_shared_count", default=1 if one_shared else 0, least=0),
        shared_ff=one_shared or ff,
    )


def _one(fields: Fields, name: str, default: int | None = None) -> int:
    """A count, which may be listed for each layer as long as all layers have the same."""
    value = fields.get(name, default=default)
    if isinstance(value, list) and len(set(map(str, value))) == 1:
        return Fields({name: value[0]}, fields.where).count(name)
    if isinstance(value, list):
        raise UsageError(f"{fields.where} has another {name} in each layer, which is not known here")
    return fields.count(name) if default is None else fields.count(name, default=default)


def _matrix(tensors: dict[str, TensorInfo], name: str, where: str) -> TensorInfo:
    found = tensors.get(name)
    if found is None or len(found.shape) != 2:
        raise UsageError(f"{where} has no matrix {name}: it is not a whole model")
    return found


def _precisions(shape: Geometry, header: Header, path: Path) -> Precisions:
    """Bits per weight such that bytes come out as they are in the file.

    Biases and the like, which a Geometry does not count, weigh in with the part that they stand by.
    """
    n_bytes: Counter[str] = Counter()
    n_weights: Counter[str] = Counter()
    for tensor in _in_layers(header.tensors, shape.layers):
        part = part_of(tensor.name)
        n_bytes[part] += tensor.n_bytes
        n_weights[part] += tensor.n_weights
    sizes = shape.parameters_by_part()
    off = sum(abs(n_weights[part] - sizes[part]) for part in PARTS)
    if off > _UNEXPLAINED * sum(sizes.values()) or any(n_weights[part] and not sizes[part] for part in PARTS):
        raise UsageError(
            f"{path} has tensors of {n_weights.total():,} weights, and metadata for {sum(sizes.values()):,}: "
            "it is damaged, or of a kind that is not known here"
        )
    return Precisions(**{part: Precision(8 * n_bytes[part] / sizes[part]) for part in PARTS if n_bytes[part]})


def _in_layers(tensors: Iterable[TensorInfo], layers: int) -> Iterable[TensorInfo]:
    """Without the layers for multi-token prediction, which come last."""
    for tensor in tensors:
        block = _BLOCK.match(tensor.name)
        if block is None or int(block[1]) < layers:
            yield tensor


def part_of(name: str) -> str:
    """Which of PARTS a tensor belongs to, by its name."""
    return next((part for pattern, part in _PART_OF if pattern.match(name)), "other")


def _joined(path: Path) -> Header:
    """The header of a file; of one that is split, with the tensors of all its parts."""
    header = read_header(path)
    split = _SPLIT.search(path.name)
    if split is None:
        return header
    parts = [_SPLIT.sub(f"-{n:05d}-of-{split[1]}.gguf", path.name) for n in range(1, int(split[1]) + 1)]
    if path.name not in parts:
        raise UsageError(f"{path} is named as part of {split[1]}, which it is not: fetch all parts again")
    missing = [name for name in parts if not (path.parent / name).is_file()]
    if missing:
        raise UsageError(
            f"{path} is one part of {split[1]}, and {missing[0]} is not beside it: fetch all of them"
        )
    headers = [read_header(path.parent / name) for name in parts]
    tensors = tuple(tensor for one in headers for tensor in one.tensors)
    return Header(headers[0].metadata, tensors)
