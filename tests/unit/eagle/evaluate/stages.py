"""Finished stages of a tiny recipe: states at random, and a head whose drafts the replies follow."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import orjson
import torch
from safetensors.torch import save, save_file

from breakeven.eagle.data.samples import SAMPLES, Sample, write_samples
from breakeven.eagle.export.tensors import EMBEDDING
from breakeven.eagle.head_file import load_head
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.recipe_file import read_recipe
from breakeven.eagle.stage import Stage, checksum
from breakeven.eagle.states.shards import Index
from tests.unit.eagle.tiny_head import DEPTH, LAYERS, TINY, random_tensors, write_head

RECIPE = """
[target]
model = "target"
[data]
sources = ["none"]
[evaluate]
k = 3
prompts = 12
max_tokens = 24
"""
TARGET = {"rms_norm_eps": 1e-5, "num_hidden_layers": DEPTH}
SAMPLED = "[data]\ntemperature = 1.0"
"""In place of RECIPE's [data], for replies that were sampled."""


def write_stages(folder: Path, recipe: str = RECIPE, samples: int = 12, held_out: int = 9) -> Recipe:
    """data, states and train of a recipe in the folder, of which `held_out` samples are."""
    path = folder / "recipe.toml"
    path.write_text(recipe)
    said = read_recipe(path)
    tensors = random_tensors(TINY)
    _train(said, tensors)
    head = load_head(said.stage("train") / "best", LAYERS, DEPTH, tensors[EMBEDDING], torch.device("cpu"))
    made = [_sample(head, number, "held_out" if number < held_out else "train") for number in range(samples)]
    _data(said, [sample for sample, _ in made])
    _states(said, made, tensors)
    return said


def _sample(head, number: int, split: str):
    rng, random = np.random.default_rng(number), torch.Generator().manual_seed(number)
    tokens, prompt = 20 + number, 5
    states = torch.randn(tokens, 4, TINY.hidden, generator=random)
    ids = rng.integers(TINY.vocabulary, size=prompt).tolist()
    while len(ids) < tokens:
        entries = head.entries(torch.tensor(ids[1:]), states[: len(ids) - 1, :3])
        chain = head.chains(entries, torch.tensor([len(entries) - 1]), 3)
        drafts = [int(head.drafted(one)[0]) for one in chain]
        ids += [*drafts[: rng.integers(4)], int(rng.integers(TINY.vocabulary))]
    mask = np.arange(tokens) >= prompt
    sample = Sample(f"s{number:02d}", "ab"[number % 2], split, prompt, np.array(ids[:tokens], np.int32), mask)
    return sample, states


def _data(said: Recipe, samples: list[Sample]) -> None:
    stage = Stage(said.stage("data"), "data", asdict(said.data), {})
    write_samples(stage.folder / SAMPLES, samples)
    stage.finish([stage.folder / SAMPLES], {"samples": len(samples)})


def _states(said: Recipe, made, tensors) -> None:
    stage = Stage(said.stage("states"), "states", {}, {SAMPLES: checksum(said.stage("data") / SAMPLES)})
    index = Index(stage.folder)
    for start in range(0, len(made), 4):
        some = made[start : start + 4]
        shard = {f"{sample.id}.hidden_states": states.to(torch.bfloat16) for sample, states in some}
        tokens = sum(len(states) for _, states in some)
        index.add(f"shard-{start:05d}.safetensors", save(shard), [sample.id for sample, _ in some], tokens)
    head = 0.5 * torch.randn(TINY.vocabulary, TINY.hidden, generator=torch.Generator().manual_seed(3))
    target = {
        "embed_tokens.weight": tensors[EMBEDDING],
        "norm.weight": torch.ones(TINY.hidden),
        "lm_head.weight": head,
    }
    save_file(target, stage.folder / "target.safetensors")
    (stage.folder / "target_config.json").write_bytes(orjson.dumps(TARGET))
    found = {"layers": LAYERS, "hidden": TINY.hidden, "vocab": TINY.vocabulary}
    stage.finish([index.path], found)


def _train(said: Recipe, tensors) -> None:
    stage = Stage(said.stage("train"), "train", {}, {})
    best = write_head(stage.folder / "best", TINY, tensors)
    stage.finish([best / "head.safetensors"], {})
