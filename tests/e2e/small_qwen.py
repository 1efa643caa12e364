"""Qwen3 models whose steps take milliseconds: dense, and with experts; written with numpy alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.e2e.tiny_qwen import BYTE_0, EOS, PRINTABLE, Weights, write_safetensors, write_tiny_qwen

LAYERS, WIDTH, HEADS, KV_HEADS, HEAD_DIM = 6, 512, 4, 2, 128
DENSE_FF = 4096
EXPERTS, TOP_K, EXPERT_FF = 32, 4, 256
SUCCESSORS, FREE_SUCCESSORS = 2, 10
BOUND_WEIGHT = 1.5
"""Against that of free ones: what adds up over their many successors must not win over it."""
ATTENTION, FEED_FORWARD = 1.0, 0.3
"""Scales of what a layer adds: small, so that mostly the last token decides on the next one."""
SHARPNESS = 4.0
Matrix = Callable[..., NDArray[np.float32]]


def write_small_qwen(folder: Path, *, moe: bool, ff: int | None = None, free: Sequence[int] = ()) -> Path:
    """With the tokenizer of write_tiny_qwen; some 50 M parameters dense, 80 M with experts.

    `ff` is the width of the feed-forward blocks, with experts of each of them, instead of ours. `free` are
    printable bytes whose successors are free ones too, and many: what followed an n-gram before seldom
    follows again, as in text that copies nothing.
    """
    ff = ff or (EXPERT_FF if moe else DENSE_FF)
    write_tiny_qwen(folder)
    file = folder / "config.json"
    config = json.loads(file.read_text()) | _shape(ff) | (_experts(ff) if moe else {})
    file.write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", _weights(config["vocab_size"], moe, ff, free))
    return folder


def _shape(ff: int) -> dict[str, Any]:
    return {
        "hidden_size": WIDTH,
        "intermediate_size": ff,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
    }


def _experts(ff: int) -> dict[str, Any]:
    return {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "num_experts": EXPERTS,
        "num_experts_per_tok": TOP_K,
        "moe_intermediate_size": ff,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def _weights(vocabulary: int, moe: bool, ff: int, free: Sequence[int]) -> Weights:
    random = np.random.default_rng(11)

    def matrix(rows: int, columns: int, scale: float = 1.0) -> NDArray[np.float32]:
        values = random.standard_normal((rows, columns), np.float32)
        values *= np.float32(scale / columns**0.5)
        return values

    embedding = matrix(vocabulary, WIDTH, WIDTH**0.5)
    weights = {
        "model.embed_tokens.weight": embedding,
        "model.norm.weight": np.ones(WIDTH, np.float32),
        "lm_head.weight": _successors(random, embedding, free),
    }
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        weights |= {f"{prefix}{name}": value for name, value in _attention(matrix).items()}
        blocks = (_mixture if moe else _dense)(matrix, ff)
        weights |= {f"{prefix}mlp.{name}": value for name, value in blocks.items()}
    return weights


def _attention(matrix: Matrix) -> Weights:
    return {
        "input_layernorm.weight": np.ones(WIDTH, np.float32),
        "post_attention_layernorm.weight": np.ones(WIDTH, np.float32),
        "self_attn.q_proj.weight": matrix(HEADS * HEAD_DIM, WIDTH),
        "self_attn.k_proj.weight": matrix(KV_HEADS * HEAD_DIM, WIDTH),
        "self_attn.v_proj.weight": matrix(KV_HEADS * HEAD_DIM, WIDTH),
        "self_attn.o_proj.weight": matrix(WIDTH, HEADS * HEAD_DIM, ATTENTION),
        "self_attn.q_norm.weight": np.full(HEAD_DIM, SHARPNESS, np.float32),
        "self_attn.k_norm.weight": np.ones(HEAD_DIM, np.float32),
    }


def _dense(matrix: Matrix, ff: int) -> Weights:
    return {
        "gate_proj.weight": matrix(ff, WIDTH),
        "up_proj.weight": matrix(ff, WIDTH),
        "down_proj.weight": matrix(WIDTH, ff, FEED_FORWARD),
    }


def _mixture(matrix: Matrix, ff: int) -> Weights:
    weights = {"gate.weight": matrix(EXPERTS, WIDTH)}
    for expert in range(EXPERTS):
        weights |= {f"experts.{expert}.{name}": value for name, value in _dense(matrix, ff).items()}
    return weights


def _successors(
    random: np.random.Generator, embedding: NDArray[np.float32], free: Sequence[int]
) -> NDArray[np.float32]:
    """An output matrix under which some printable tokens score alike after each token, and EOS after none."""
    head = np.zeros_like(embedding)
    freed = np.array(free, int) + BYTE_0
    bound = np.setdiff1d(np.array(PRINTABLE) + BYTE_0, freed)
    for token in [*bound, *freed] if free else range(len(embedding)):
        if token in freed:
            among, count, weight = freed, FREE_SUCCESSORS, 1.0
        else:
            among, count, weight = bound, SUCCESSORS, BOUND_WEIGHT
        for successor in random.choice(among, count, replace=False):
            head[successor] += weight * embedding[token]
    head[EOS] = 0
    return head / np.float32(WIDTH**0.5)
