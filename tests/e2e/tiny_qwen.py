"""A Qwen3 model of a few hundred kilobytes, written with numpy alone, whose greedy text repeats itself."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LAYERS, WIDTH, HEADS, KV_HEADS, HEAD_DIM, FF, CONTEXT = 2, 64, 2, 1, 32, 96, 1024
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
EOS, BYTE_0 = 2, 3
"""Ids: the end of a sequence, and the first of the 256 bytes."""
PRINTABLE = range(0x20, 0x7F)
TEMPLATE = "{% for message in messages %}<|im_start|>{{ message['content'] }}{% endfor %}<|im_end|>"
Weights = dict[str, NDArray[np.float32]]


def write_tiny_qwen(folder: Path) -> Path:
    """Config, tokenizer (one token per byte) and weights in float32.

    Each token has two successors that score alike; attention over the text so far decides
    between them. So n-grams recur with continuations that sometimes differ, as a drafter meets them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = _vocabulary()
    _write_json(folder / "config.json", _config(len(vocabulary)))
    _write_json(folder / "tokenizer.json", _tokenizer(vocabulary))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config())
    write_safetensors(folder / "model.safetensors", _weights(vocabulary))
    return folder


def prompt_ids(text: str) -> tuple[int, ...]:
    """What the chat template and the tokenizer make of one user message."""
    return (SPECIAL.index("<|im_start|>"), *(BYTE_0 + byte for byte in text.encode()), EOS)


def text_of(ids: Sequence[int]) -> str:
    """Without special tokens."""
    return bytes(token - BYTE_0 for token in ids if token >= BYTE_0).decode()


def write_safetensors(path: Path, tensors: Weights) -> None:
    """https://huggingface.co/docs/safetensors: length of the header, header as JSON, data."""
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor, np.float32).tobytes())


def _vocabulary() -> dict[str, int]:
    """The special tokens, then a token per byte under the printable name that byte-level BPE gives it."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    names = {byte: chr(byte) for byte in plain} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    return {name: i for i, name in enumerate((*SPECIAL, *(names[byte] for byte in range(256))))}


def _config(vocabulary: int) -> dict[str, Any]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": vocabulary,
        "hidden_size": WIDTH,
        "intermediate_size": FF,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "bos_token_id": None,
        "eos_token_id": EOS,
        "torch_dtype": "float32",
    }


def _tokenizer(vocabulary: dict[str, int]) -> dict[str, Any]:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": name} | flags for i, name in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }


def _tokenizer_config() -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": SPECIAL[EOS],
        "pad_token": SPECIAL[0],
        "model_max_length": CONTEXT,
        "chat_template": TEMPLATE,
    }


def _weights(vocabulary: dict[str, int]) -> Weights:
    random = np.random.default_rng(11)

    def weight(rows: int, columns: int, scale: float = 1.0) -> NDArray[np.float32]:
        return (random.standard_normal((rows, columns)) * scale / columns**0.5).astype(np.float32)

    embedding = weight(len(vocabulary), WIDTH, WIDTH**0.5)
    weights = {
        "model.embed_tokens.weight": embedding,
        "model.norm.weight": np.ones(WIDTH, np.float32),
        "lm_head.weight": _successors(random, embedding),
    }
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        weights |= {
            f"{prefix}input_layernorm.weight": np.ones(WIDTH, np.float32),
            f"{prefix}post_attention_layernorm.weight": np.ones(WIDTH, np.float32),
            f"{prefix}self_attn.q_proj.weight": weight(HEADS * HEAD_DIM, WIDTH),
            f"{prefix}self_attn.k_proj.weight": weight(KV_HEADS * HEAD_DIM, WIDTH),
            f"{prefix}self_attn.v_proj.weight": weight(KV_HEADS * HEAD_DIM, WIDTH),
            f"{prefix}self_attn.o_proj.weight": weight(WIDTH, HEADS * HEAD_DIM),
            f"{prefix}self_attn.q_norm.weight": np.ones(HEAD_DIM, np.float32),
            f"{prefix}self_attn.k_norm.weight": np.ones(HEAD_DIM, np.float32),
            f"{prefix}mlp.gate_proj.weight": weight(FF, WIDTH),
            f"{prefix}mlp.up_proj.weight": weight(FF, WIDTH),
            f"{prefix}mlp.down_proj.weight": weight(WIDTH, FF, 0.1),
        }
    return weights


def _successors(random: np.random.Generator, embedding: NDArray[np.float32]) -> NDArray[np.float32]:
    """An output matrix under which two printable tokens score high after each token, EOS after a few."""
    head = np.zeros_like(embedding)
    printable = np.array(PRINTABLE) + len(SPECIAL)
    for token in range(len(embedding)):
        for successor in random.choice(printable, 2, replace=False):
            head[successor] += embedding[token]
    for token in random.choice(printable, 6, replace=False):
        head[EOS] += 0.9 * embedding[token]
    return head / WIDTH**0.5


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value))
