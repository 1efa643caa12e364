"""Small heads: their shapes, and recipes whose `train` and `states` are whole, with random weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from breakeven.eagle.export.source import Source
from breakeven.eagle.recipe import (
    DataSettings,
    EvaluateSettings,
    ExportSettings,
    Recipe,
    Target,
    TrainSettings,
)
from breakeven.eagle.shape import HeadShape
from breakeven.eagle.stage import NOTHING, Stage
from breakeven.eagle.train.config import head_config

LAYERS_OF_TARGET, DRAFT_IDS = 8, tuple(range(3, 63, 2))
TARGET: Mapping[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": LAYERS_OF_TARGET,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 50_000.0,
}
SHAPE = HeadShape(
    decoder="llama",
    hidden=32,
    intermediate=48,
    heads=4,
    kv_heads=2,
    head_dim=8,
    vocabulary=64,
    draft_vocabulary=30,
    layers=(2, 4, 5),
    rms_norm_eps=1e-5,
    max_positions=256,
    rope={"rope_type": "default", "rope_theta": 50_000.0},
)


def source(shape: HeadShape = SHAPE, **target: Any) -> Source:
    """What configurations are made from, without files."""
    return Source(shape, Path("head"), Path("weights"), {**TARGET, **target}, "org/target", "bfloat16")


def of_layers(*layers: int) -> HeadShape:
    return replace(SHAPE, layers=layers)


def trained(
    folder: Path,
    *,
    style: Any = "eagle3",
    draft_ids: tuple[int, ...] = DRAFT_IDS,
    weight_type: str = "bfloat16",
    layers: tuple[int, ...] = (2, 4, 5),
    engines: Any = ("vllm", "sglang"),
    target: Mapping[str, Any] = TARGET,
    inputs: Mapping[str, str] = NOTHING,
) -> Recipe:
    """A recipe in the folder, whose head has other weights than a new one in every place; `inputs` are those
    of the states."""
    import torch
    from safetensors.torch import save_file

    from breakeven.eagle.train.model import new_head, stored

    recipe = Recipe(
        folder / "recipe.toml",
        Target("org/target"),
        DataSettings(("runs/monday",)),
        train=TrainSettings(style=style),
        evaluate=EvaluateSettings(k=3),
        export=ExportSettings(engines),
    )
    states, best = recipe.stage("states"), recipe.stage("train") / "best"
    stage = Stage(states, "states", {"layers": layers}, inputs)
    torch.manual_seed(7)
    kind = getattr(torch, weight_type)
    vocabulary, hidden = target["vocab_size"], target["hidden_size"]
    weights = {
        "embed_tokens.weight": torch.randn(vocabulary, hidden).to(kind),
        "norm.weight": torch.ones(hidden, dtype=kind),
        "lm_head.weight": torch.randn(vocabulary, hidden).to(kind),
    }
    save_file(weights, states / "target.safetensors")
    (states / "target_config.json").write_text(json.dumps(target))
    stage.finish([states / "target.safetensors", states / "target_config.json"], {"layers": layers})
    stage = Stage(recipe.stage("train"), "train", {"style": style}, {})
    best.mkdir()
    config = head_config(target, layers, len(draft_ids), style)
    head = new_head(config, draft_ids, states / "target.safetensors", seed=1)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    save_file(stored(head), best / "head.safetensors")
    (best / "head.json").write_text(json.dumps({**config, "trained": {"step": 5}}))
    stage.finish([best / "head.safetensors", best / "head.json"], {"loss": 1.5})
    return recipe
