"""A llama model small enough to build in a test: 2 layers, 64 wide, one token per byte, random weights."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

LAYERS, WIDTH, HEADS, FF, CONTEXT = 2, 64, 2, 96, 512
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
TOKENS = ["<unk>", "<s>", "</s>", *BYTES]
TYPES = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]


def write_tiny(
    path: Path, quantise: str = "F32", arch: str = "llama", vocabulary: int = len(TOKENS), **extra: int
) -> Path:
    """Write the model; `extra` are further integer metadata keys, with `__` for a dot. A larger `vocabulary`
    has more tokens of which none is ever said.
    """
    unsaid = [f"<unsaid{number}>" for number in range(vocabulary - len(TOKENS))]
    writer = gguf.GGUFWriter(path, arch)
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FF)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([*TOKENS, *unsaid])
    writer.add_token_scores([0.0] * vocabulary)
    writer.add_token_types([*TYPES, *[gguf.TokenType.UNUSED] * len(unsaid)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for key, value in extra.items():
        writer.add_uint32(key.replace("__", "."), value)
    for name, data in _tensors(len(unsaid)).items():
        kind = gguf.GGMLQuantizationType[quantise if data.ndim == 2 else "F32"]
        writer.add_tensor(name, gguf.quants.quantize(data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _tensors(unsaid: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)

    def weight(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)

    norm = np.ones(WIDTH, np.float32)
    none = np.zeros((unsaid, WIDTH), np.float32)
    embedding = np.concatenate((weight(len(TOKENS), WIDTH), none))
    tensors = {"token_embd.weight": embedding, "output_norm.weight": norm}
    tensors["output.weight"] = np.concatenate((weight(len(TOKENS), WIDTH) * 4, none))
    for layer in range(LAYERS):
        tensors |= {f"blk.{layer}.{part}_norm.weight": norm for part in ("attn", "ffn")}
        for part in ("q", "k", "v", "output"):
            tensors[f"blk.{layer}.attn_{part}.weight"] = weight(WIDTH, WIDTH)
        tensors |= {f"blk.{layer}.ffn_{part}.weight": weight(FF, WIDTH) for part in ("gate", "up")}
        tensors[f"blk.{layer}.ffn_down.weight"] = weight(WIDTH, FF)
    return tensors
