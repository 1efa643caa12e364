"""A head of random weights, small enough to be made in a moment, and the folder that training would make."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import torch
from safetensors.torch import save_file
from torch import Tensor

from breakeven.eagle.export.tensors import EMBEDDING, slots
from breakeven.eagle.head import Head
from breakeven.eagle.head_file import load_head
from breakeven.eagle.shape import HeadShape, library_config

LAYERS, DEPTH = (2, 4, 5), 8
TINY = HeadShape(
    decoder="llama",
    hidden=16,
    intermediate=24,
    heads=4,
    kv_heads=2,
    head_dim=4,
    vocabulary=40,
    draft_vocabulary=24,
    layers=LAYERS,
    rms_norm_eps=1e-5,
    max_positions=256,
    rope={"rope_type": "default", "rope_theta": 1000.0},
)
FULL = replace(TINY, draft_vocabulary=TINY.vocabulary)


def random_tensors(shape: HeadShape, seed: int = 0) -> dict[str, Tensor]:
    """Every tensor of such a head and its target's embedding; the draft vocabulary is drawn too."""
    random = torch.Generator().manual_seed(seed)
    ids = torch.randperm(shape.vocabulary, generator=random)[: shape.draft_vocabulary].sort().values
    mask = torch.zeros(shape.vocabulary, dtype=torch.bool)
    mask[ids] = True
    found = {}
    for name, slot in slots(shape, with_embedding=True).items():
        if slot.kind == "weight":
            mean = 1.0 if "norm" in name else 0.0
            found[name] = mean + 0.4 * torch.randn(slot.shape, generator=random)
        else:
            found[name] = ids - torch.arange(len(ids)) if slot.kind == "ids" else mask
    return found


def write_head(folder: Path, shape: HeadShape, tensors: dict[str, Tensor]) -> Path:
    """As training leaves it: without the embedding."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: one for name, one in tensors.items() if name != EMBEDDING}, folder / "head.safetensors")
    (folder / "head.json").write_bytes(orjson.dumps(library_config(shape)))
    return folder


def tiny_head(folder: Path, shape: HeadShape = TINY, seed: int = 0) -> Head:
    tensors = random_tensors(shape, seed)
    write_head(folder, shape, tensors)
    return load_head(folder, shape.layers, DEPTH, tensors[EMBEDDING], torch.device("cpu"))
