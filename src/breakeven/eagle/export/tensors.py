"""Which tensors a head has, by the names of the `speculators` library, and whether a file has just those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from breakeven.eagle.shape import HeadShape
from breakeven.errors import UsageError

Kind = Literal["weight", "ids", "mask"]
Found = Mapping[str, tuple[tuple[int, ...], str]]
"""Shape and type (`float32`, `int64`, …) of each tensor of a file, by name."""
LAYER = "layers.0."
EMBEDDING = "embed_tokens.weight"
TO_TARGET, TO_DRAFT = "d2t", "t2d"
OF_TARGET = ("verifier_lm_head.", "verifier_norm.")
"""Begin the names of what the library holds of the target, for training only."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a tensor goes in."""

    shape: tuple[int, ...]
    kind: Kind = "weight"
    """`ids` is int64, `mask` bool; weights are all of one floating type."""

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return prod(self.shape)


def slots(shape: HeadShape, *, with_embedding: bool) -> dict[str, Slot]:
    """Where every tensor of a head goes, by its name."""
    found = {name: Slot(size) for name, size in _weights(shape)}
    if shape.maps_vocabulary:
        found[TO_TARGET] = Slot((shape.draft_vocabulary,), "ids")
        found[TO_DRAFT] = Slot((shape.vocabulary,), "mask")
    if with_embedding:
        found[EMBEDDING] = Slot((shape.vocabulary, shape.hidden))
    return found


def differences(found: Found, wanted: Mapping[str, Slot], weight_type: str) -> Iterator[str]:
    """What is wrong with the tensors of a file, a phrase for each."""
    types = {"weight": weight_type, "ids": "int64", "mask": "bool"}
    for name, slot in wanted.items():
        size, of = found.get(name, (None, ""))
        if size is None:
            yield f"{name} is missing"
        elif size != slot.shape:
            yield f"{name} is {list(size)} and should be {list(slot.shape)}"
        elif of != types[slot.kind]:
            yield f"{name} is {of} and should be {types[slot.kind]}"
    yield from (f"{name} is no tensor of this head" for name in found if name not in wanted)


def refuse_others(found: Found, wanted: Mapping[str, Slot], weight_type: str, where: str) -> None:
    """Raises UsageError, with the first of the differences, for a checkpoint of another architecture."""
    wrong = list(differences(found, wanted, weight_type))
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise UsageError(
            f"{where} is no head as its configuration has it: {wrong[0]}{more}; restore it from a copy, or "
            "train the head again"
        )


def _weights(shape: HeadShape) -> Iterator[tuple[str, tuple[int, ...]]]:
    read = len(shape.layers)
    if shape.norm_before_fc:
        yield "input_norm.weight", (read * shape.hidden,)
    if shape.fc_norm:
        yield from ((f"fc_norm.{i}.weight", (shape.hidden,)) for i in range(read))
    yield "fc.weight", (shape.hidden, read * shape.hidden)
    yield from ((f"{LAYER}{name}", size) for name, size in _layer(shape))
    yield "norm.weight", (shape.hidden,)
    yield "lm_head.weight", (shape.draft_vocabulary, shape.hidden)


def _layer(shape: HeadShape) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name in ("input_layernorm", "hidden_norm", "post_attention_layernorm"):
        yield f"{name}.weight", (shape.hidden,)
    if shape.decoder == "qwen3":
        yield from ((f"self_attn.{name}_norm.weight", (shape.head_dim,)) for name in "qk")
    for name, (rows, columns) in _matrices(shape).items():
        yield f"{name}.weight", (rows, columns)
        if shape.attention_bias if name.startswith("self_attn") else shape.mlp_bias:
            yield f"{name}.bias", (rows,)


def _matrices(shape: HeadShape) -> dict[str, tuple[int, int]]:
    hidden, query, key = shape.hidden, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    return {
        "self_attn.q_proj": (query, 2 * hidden),  # reads [norm(embedding); norm(hidden)]
        "self_attn.k_proj": (key, 2 * hidden),
        "self_attn.v_proj": (key, 2 * hidden),
        "self_attn.o_proj": (hidden, query),
        "mlp.gate_proj": (shape.intermediate, hidden),
        "mlp.up_proj": (shape.intermediate, hidden),
        "mlp.down_proj": (hidden, shape.intermediate),
    }
