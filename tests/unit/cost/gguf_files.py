"""GGUF files to read, written by hand so that they can be as small, and as wrong, as a test needs."""

import struct
from pathlib import Path
from typing import Any

F32, Q4_1, Q8_0 = 0, 3, 8
BLOCK = {F32: (1, 4), Q4_1: (32, 20), Q8_0: (32, 34)}
Tensors = dict[str, tuple[tuple[int, ...], int]]


def string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(item: Any) -> bytes:
    if isinstance(item, str):
        return struct.pack("<I", 8) + string(item)
    if isinstance(item, list):
        kind = 8 if item and isinstance(item[0], str) else 4
        body = b"".join(string(x) if kind == 8 else struct.pack("<I", x) for x in item)
        return struct.pack("<IIQ", 9, kind, len(item)) + body
    if isinstance(item, float):
        return struct.pack("<If", 6, item)
    return struct.pack("<II", 4, item)


def write(path: Path, metadata: dict[str, Any], tensors: Tensors) -> Path:
    """A whole file: header, padding to 32, zeros for data."""
    infos, offset = [], 0
    for name, (shape, kind) in tensors.items():
        infos.append(string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset))
        weights, n_bytes = BLOCK[kind]
        size = 1
        for n in shape:
            size *= n
        offset += -(-size // weights * n_bytes // 32) * 32
    pairs = b"".join(string(key) + value(item) for key, item in metadata.items())
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + pairs + b"".join(infos)
    path.write_bytes(header + bytes(-len(header) % 32) + bytes(offset))
    return path


def tiny_metadata(arch: str = "llama", **more: Any) -> dict[str, Any]:
    own = {
        "block_count": 2,
        "embedding_length": 64,
        "feed_forward_length": 96,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        **more,
    }
    tokens = [f"t{n}" for n in range(256)]
    keys = {f"{arch}.{key}": item for key, item in own.items()}
    return {"general.architecture": arch, **keys, "tokenizer.ggml.tokens": tokens, "x.epsilon": 1e-5}


def tiny_tensors(layers: int = 2, kind: int = Q8_0, experts: int = 0) -> Tensors:
    found: Tensors = {"token_embd.weight": ((64, 256), kind), "output_norm.weight": ((64,), F32)}
    for n in range(layers):
        found |= {
            f"blk.{n}.attn_norm.weight": ((64,), F32),
            f"blk.{n}.attn_q.weight": ((64, 64), kind),
            f"blk.{n}.attn_k.weight": ((64, 32), kind),
            f"blk.{n}.attn_v.weight": ((64, 32), kind),
            f"blk.{n}.attn_output.weight": ((64, 64), kind),
            f"blk.{n}.ffn_norm.weight": ((64,), F32),
        }
        found |= _experts(n, kind, experts) if experts else _dense(n, kind)
    return found


def _dense(n: int, kind: int) -> Tensors:
    return {
        f"blk.{n}.ffn_gate.weight": ((64, 96), kind),
        f"blk.{n}.ffn_up.weight": ((64, 96), kind),
        f"blk.{n}.ffn_down.weight": ((96, 64), kind),
    }


def _experts(n: int, kind: int, experts: int) -> Tensors:
    return {
        f"blk.{n}.ffn_gate_inp.weight": ((64, experts), F32),
        f"blk.{n}.ffn_gate_exps.weight": ((64, 96, experts), kind),
        f"blk.{n}.ffn_up_exps.weight": ((64, 96, experts), kind),
        f"blk.{n}.ffn_down_exps.weight": ((96, 64, experts), kind),
    }
