"""A recipe whose data/ and states/ are whole: a made-up target, whose next token follows from the last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson

from breakeven.eagle.data.samples import SAMPLES, Sample, write_samples
from breakeven.eagle.data.vocabulary import VOCABULARY, Vocabulary, write_vocabulary
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.recipe_file import read_recipe
from breakeven.eagle.stage import Stage, checksum

TOKENS, DRAFTED, HIDDEN, PROMPT = 40, 30, 16, 4
LAYERS = [2, 4, 5]
TARGET: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": TOKENS,
    "hidden_size": HIDDEN,
    "intermediate_size": 32,
    "num_hidden_layers": 8,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 256,
    "rope_theta": 10_000.0,
}
RECIPE = """
[target]
model = "target"
[data]
sources = ["traffic.jsonl"]
draft_vocabulary = {drafted}
[train]
{train}
[evaluate]
k = 3
"""
TRAIN = """
steps = 3
epochs = 2
batch = 4
learning_rate = 3e-3
warmup = 0.1
checkpoint_every = 2
validate_every = 3
validation = 0.25
"""


def tiny_recipe(folder: Path, *, samples: int = 16, train: str = TRAIN, drafted: int = DRAFTED) -> Recipe:
    """Of that many training samples, and two that are held out."""
    recipe, made, successor = tiny_data(folder, samples=samples, train=train, drafted=drafted)
    _write_states(recipe.stage("states"), made, np.random.default_rng(8), successor)
    return recipe


def tiny_data(
    folder: Path, *, samples: int = 16, train: str = TRAIN, drafted: int = DRAFTED
) -> tuple[Recipe, list[Sample], Any]:
    """Without states/, and so without torch."""
    rng = np.random.default_rng(7)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.toml").write_text(RECIPE.format(train=train, drafted=drafted))
    recipe = read_recipe(folder / "recipe.toml")
    successor = rng.permutation(TOKENS)
    made = [_sample(number, rng, successor, "train") for number in range(samples)]
    made += [_sample(samples + number, rng, successor, "held_out") for number in range(2)]
    _write_data(recipe.stage("data"), made, drafted, rng)
    return recipe, made, successor


def _sample(number: int, rng: np.random.Generator, successor: Any, split: Any) -> Sample:
    """Of 10 to 30 tokens; after the prompt, each follows from the one before."""
    ids = rng.integers(TOKENS, size=PROMPT).tolist()
    for _ in range(int(rng.integers(10 - PROMPT, 30 - PROMPT))):
        ids.append(int(successor[ids[-1]]))
    mask = np.arange(len(ids)) >= PROMPT
    return Sample(f"sample{number:03d}", "prose", split, PROMPT, np.array(ids, np.int32), mask)


def _write_data(folder: Path, samples: list[Sample], drafted: int, rng: np.random.Generator) -> None:
    stage = Stage(folder, "data", {}, {})
    write_samples(folder / SAMPLES, samples)
    ids = np.sort(rng.permutation(TOKENS)[:drafted]).astype(np.int64)
    write_vocabulary(folder / VOCABULARY, Vocabulary(TOKENS, ids, 0.75))
    stage.finish([folder / SAMPLES, folder / VOCABULARY], {"samples": len(samples)})


def _write_states(folder: Path, samples: list[Sample], rng: np.random.Generator, successor: Any) -> None:
    """In two shards; the last of a token's states points at what the target says next."""
    import torch
    from safetensors.torch import save

    from breakeven.eagle.states.passes import Passed
    from breakeven.eagle.states.shards import Index

    stage = Stage(folder, "states", {}, {SAMPLES: checksum(folder.parent / "data" / SAMPLES)})
    embedding, lm_head = (
        torch.from_numpy(rng.normal(size=(TOKENS, HIDDEN)).astype(np.float32)) for _ in range(2)
    )
    norm = torch.from_numpy(rng.uniform(0.5, 1.5, HIDDEN).astype(np.float32))
    index = Index(folder)
    for number, part in enumerate((samples[: len(samples) // 2], samples[len(samples) // 2 :])):
        tensors = {}
        for sample in part:
            read = torch.from_numpy(sample.input_ids.astype(np.int64))
            says = torch.from_numpy(successor[sample.input_ids].astype(np.int64))
            states = torch.stack([embedding[read], embedding[says], lm_head[read], lm_head[says]], dim=1)
            states = states + 0.1 * torch.from_numpy(rng.normal(size=states.shape).astype(np.float32))
            top = says[:, None].to(torch.int32)
            tensors |= Passed(states, top, torch.zeros(top.shape)).named(sample.id)
        lengths = sum(len(sample.input_ids) for sample in part)
        index.add(f"shard-{number:05d}.safetensors", save(tensors), [one.id for one in part], lengths)
    target = {"embed_tokens.weight": embedding, "norm.weight": norm, "lm_head.weight": lm_head}
    (folder / "target.safetensors").write_bytes(save(target))
    (folder / "target_config.json").write_bytes(orjson.dumps(TARGET))
    stage.finish([index.path], {"layers": LAYERS})
