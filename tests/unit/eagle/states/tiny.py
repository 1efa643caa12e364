"""Targets of random weights whose passes take milliseconds, and data for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.eagle.data.samples import SAMPLES, Sample, write_samples
from breakeven.eagle.data.vocabulary import VOCABULARY, choose, write_vocabulary
from breakeven.eagle.recipe import DataSettings, Recipe, StatesSettings, Target
from breakeven.eagle.stage import Stage
from breakeven.errors import UsageError

LAYERS, HIDDEN, VOCAB = 8, 32, 64
LENGTHS = (5, 17, 9, 30, 12, 3, 21, 8)
NOTHING: Mapping[str, str] = {}


def write_model(folder: Path, kind: str = "llama", **changes: Any) -> Path:
    """A Llama or a Qwen3 in the Hugging Face format; its norms scale, so that leaving one out shows."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(3)
    shape = {
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": 48,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "initializer_range": 0.3,
    }
    said = {key: value for key, value in {**shape, **changes}.items() if value is not None}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **said))
    for name, tensor in model.named_parameters():
        if "norm" in name:
            torch.nn.init.uniform_(tensor, 0.5, 1.5)
    model.save_pretrained(folder)
    return folder


def edit_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def make_recipe(folder: Path, model: Path, **states: Any) -> Recipe:
    """With states in float32 and a shard for every 20 tokens or more."""
    settings = StatesSettings(**{"dtype": "float32", "batch": 2, "top": 4, "tokens_per_shard": 20, **states})
    return Recipe(
        folder / "recipe.toml",
        Target(str(model), "http://127.0.0.1:1/v1"),
        DataSettings(("x",)),
        states=settings,
    )


def write_data(
    recipe: Recipe,
    lengths: Sequence[int] = LENGTHS,
    vocab: int = VOCAB,
    inputs: Mapping[str, str] = NOTHING,
) -> list[Sample]:
    """The data stage, finished: random tokens."""
    folder = recipe.stage("data")
    stage = Stage(folder, "data", {}, inputs)
    random = np.random.default_rng(5)
    samples = [
        Sample(
            f"{number:04x}",
            "random",
            "train" if number % 4 else "held_out",
            1,
            random.integers(0, vocab, length).astype(np.int32),
            np.arange(length) > 0,
        )
        for number, length in enumerate(lengths)
    ]
    write_samples(folder / SAMPLES, samples)
    write_vocabulary(folder / VOCABULARY, choose(np.ones(VOCAB, np.int64), 0, ()))
    stage.finish([folder / SAMPLES, folder / VOCABULARY], {"samples": len(samples)})
    return samples


class Counted:
    """A watch that counts."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0

    def set_total(self, total: int | None) -> None:
        self.total = total

    def advance(self, n: int = 1, note: str | None = None) -> None:
        self.done += n


def refused(recipe: Recipe, said: str, error: type[Exception] = UsageError) -> None:
    """Making its states is, and no shard is there."""
    from breakeven.eagle.states.run import make_states

    with pytest.raises(error, match=said):
        make_states(recipe, Counted())
    assert not list(recipe.stage("states").glob("shard*"))
