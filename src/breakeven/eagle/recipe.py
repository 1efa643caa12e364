"""recipe.toml as records: an EAGLE-3 head, from traffic to export. starter.toml shows every setting."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Target:
    """The model that the head drafts for."""

    model: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class DataSettings:
    """What is learned from."""

    sources: tuple[str, ...]
    regenerate: bool = True
    max_length: int = 2048
    max_tokens: int = 1024
    concurrency: int = 64
    temperature: float = 0.0
    held_out: float = 0.05
    draft_vocabulary: int = 32000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class StatesSettings:
    """What is kept of the target's passes."""

    source: Literal["transformers", "vllm"] = "transformers"
    layers: tuple[int, ...] | None = None
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    batch: int = 1
    top: int = 8
    tokens_per_shard: int = 65536


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How the head is trained."""

    style: Literal["eagle3", "eagle3.1"] = "eagle3"
    steps: int = 7
    decay: float = 0.8
    loss: Literal["ce", "kl"] = "kl"
    epochs: int = 10
    batch: int = 8
    learning_rate: float = 1e-4
    warmup: float = 0.01
    checkpoint_every: int = 500
    validate_every: int = 500
    validation: float = 0.05
    stop_at: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class EvaluateSettings:
    """What the trained head is tried on."""

    k: int = 5
    max_tokens: int = 256
    prompts: int = 200
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """For whom it is written."""

    engines: tuple[Literal["vllm", "sglang"], ...] = ("vllm", "sglang")


@dataclass(frozen=True, slots=True)
class Recipe:
    """The whole file; `path` is where it was read from, and what relative paths are relative to."""

    path: Path
    target: Target
    data: DataSettings
    folder: str = "eagle"
    states: StatesSettings = field(default_factory=StatesSettings)
    train: TrainSettings = field(default_factory=TrainSettings)
    evaluate: EvaluateSettings = field(default_factory=EvaluateSettings)
    export: ExportSettings = field(default_factory=ExportSettings)

    def stage(self, name: str) -> Path:
        """The folder of a stage: data, states, train, evaluation, export."""
        return self.beside(self.folder) / name

    def beside(self, path: str) -> Path:
        """A path of the recipe, which is relative to the recipe's own folder."""
        return self.path.parent / os.path.expanduser(path)  # noqa: PTH111  Path.expanduser raises for no such user
