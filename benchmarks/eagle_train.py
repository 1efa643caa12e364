"""Seconds of an optimizer step: our loop beside the trainer library's Trainer, on the same head and samples.

    python benchmarks/eagle_train.py [--steps N] [--tokens N] [--hidden N] [--vocabulary N]

One sample is one batch for both, since the library makes one row of a batch. Both train a head of the same
shape, from the same first weights, with the library's forward and eager loss in float32, AdamW, and gradients
clipped; ours reads each sample from a states shard, the library's is handed it in memory. They take turns,
STEPS steps each, ROUNDS times; a row is the median over all steps but the first of each turn. Losses of the
first step are printed beside each other: they are of the same sample by the same weights.

On a CPU the library's Trainer would move its model to device 0, which there is none: it is told the CPU,
and its timer is left off. Needs the eagle extra. Prints each row and writes results/eagle_train.json.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson
import torch
from safetensors.torch import save
from speculators.losses import resolve_loss_config
from speculators.train import trainer as library

from breakeven.eagle.data.samples import Sample
from breakeven.eagle.stage import packages
from breakeven.eagle.states.held import HeldStates
from breakeven.eagle.states.passes import Passed
from breakeven.eagle.states.shards import Index
from breakeven.eagle.train.config import head_config
from breakeven.eagle.train.documents import Documents
from breakeven.eagle.train.model import new_head
from breakeven.eagle.train.objective import Objective
from breakeven.eagle.train.processes import Processes
from breakeven.eagle.train.stepping import Stepper

RESULT = Path(__file__).parent / "results" / "eagle_train.json"
TTT_STEPS, DECAY, RATE, ROUNDS, SAMPLES = 7, 0.8, 1e-4, 3, 8
LAYERS = [2, 4, 5]


@dataclass(frozen=True)
class Row:
    """Who took how long for a step."""

    name: str
    median_s: float
    low_s: float
    high_s: float
    steps: int
    first_loss: float


class World:
    """Made-up states of a made-up target, in a folder."""

    def __init__(self, folder: Path, tokens: int, hidden: int, vocabulary: int) -> None:
        rng = np.random.default_rng(0)
        self.draft_ids = list(range(0, vocabulary, 2))
        self.states = folder
        self.config = head_config(_target(hidden, vocabulary), LAYERS, len(self.draft_ids), "eagle3")
        self.samples = [_sample(f"{number}", rng, tokens, vocabulary) for number in range(SAMPLES)]
        tensors: dict[str, Any] = {}
        for sample in self.samples:
            states = torch.from_numpy(rng.normal(size=(tokens, 4, hidden)).astype(np.float32))
            top = torch.from_numpy(rng.choice(self.draft_ids, size=(tokens, 1)).astype(np.int32))
            tensors |= Passed(states, top, torch.zeros(top.shape)).named(sample.id)
        Index(folder).add("shard-00000.safetensors", save(tensors), [one.id for one in self.samples], tokens)
        of_target = {
            "embed_tokens.weight": torch.randn(vocabulary, hidden),
            "norm.weight": torch.ones(hidden),
            "lm_head.weight": torch.randn(vocabulary, hidden) / hidden**0.5,
        }
        (folder / "target.safetensors").write_bytes(save(of_target))

    def head(self) -> Any:
        return new_head(self.config, self.draft_ids, self.states / "target.safetensors", 0)

    def documents(self) -> Documents:
        return Documents(self.samples, HeldStates(self.states), self.draft_ids, steps=TTT_STEPS)


def _target(hidden: int, vocabulary: int) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": 3 * hidden,
        "num_attention_heads": hidden // 64,
        "num_key_value_heads": hidden // 128,
        "head_dim": 64,
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 8192,
        "rope_theta": 10_000.0,
    }


def _sample(name: str, rng: np.random.Generator, tokens: int, vocabulary: int) -> Sample:
    ids = rng.integers(vocabulary, size=tokens).astype(np.int32)
    return Sample(name, "prose", "train", tokens // 4, ids, np.arange(tokens) >= tokens // 4)


class Ours:
    """Our loop: states from their shard, and what a step does with them."""

    name = "breakeven"

    def __init__(self, world: World) -> None:
        processes = Processes(0, 1, torch.device("cpu"))
        self._stepper = Stepper(world.head(), Objective(TTT_STEPS, DECAY, "ce"), processes)
        self._documents = world.documents()

    def turn(self, steps: int) -> Iterator[tuple[float, float]]:
        """Seconds and loss of each step."""
        began = time.perf_counter()
        places = (step % SAMPLES for step in range(steps))
        for document in self._documents.ahead(places):
            taken = self._stepper.step([document], RATE)
            now = time.perf_counter()
            yield now - began, taken.scores.loss
            began = now


class Theirs:
    """The library's Trainer, fed as its own loader feeds it."""

    name = "speculators"

    def __init__(self, world: World) -> None:
        documents = world.documents()
        self._batches = [_batch(documents.load(place)) for place in range(SAMPLES)]
        config = library.TrainerConfig(
            lr=RATE,
            num_epochs=1,
            save_path=str(world.states / "library"),
            train_call_kwargs={
                "ttt_steps": TTT_STEPS,
                "ttt_step_loss_decay": DECAY,
                "loss_config": resolve_loss_config("ce", "eager"),
            },
            weight_decay=0.0,
            scheduler_type="none",
            hidden_states_dtype=torch.float32,
            log_freq=1 << 30,
        )
        self._loader = _Loader(self._batches)
        with on_cpu():
            self._trainer = library.Trainer(world.head(), config, self._loader)
        self._trainer.global_step = 1  # its timer is for GPUs, and on at multiples of log_freq
        self._losses: list[float] = []
        self._trainer.model.register_forward_hook(
            lambda *given: self._losses.append(float(given[-1][1].detach()))
        )

    def turn(self, steps: int) -> Iterator[tuple[float, float]]:
        """Seconds and loss of each step."""
        self._loader.steps = steps
        ends: list[float] = [time.perf_counter()]
        self._losses.clear()
        self._trainer.train_epoch(0, step_callback=lambda: ends.append(time.perf_counter()))
        seconds = np.diff(ends).tolist()
        yield from zip(seconds, self._losses, strict=True)


class _Loader:
    """As much of a DataLoader as the Trainer asks for."""

    batch_sampler = None

    def __init__(self, batches: Sequence[Mapping[str, Any]]) -> None:
        self._batches, self.steps = batches, len(batches)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(self._batches[step % SAMPLES]) for step in range(self.steps))


def _batch(document: Any) -> dict[str, Any]:
    length = document.input_ids.shape[1]
    return {
        "hidden_states": document.hidden,
        "input_ids": document.input_ids,
        "verifier_last_hidden_states": document.last,
        "loss_mask": document.learned,
        "document_ids": document.document_ids,
        "position_ids": torch.arange(1, length + 1)[None],
        "error_records": 0,
    }


@contextmanager
def on_cpu() -> Iterator[None]:
    """The Trainer takes its device from get_local_rank."""
    before = library.get_local_rank
    library.get_local_rank = lambda: torch.device("cpu")
    try:
        yield
    finally:
        library.get_local_rank = before


def measure(world: World, steps: int) -> list[Row]:
    sides = [Ours(world), Theirs(world)]
    seconds: dict[str, list[float]] = {side.name: [] for side in sides}
    first: dict[str, float] = {}
    for turn in range(ROUNDS):
        for side in sides if turn % 2 == 0 else reversed(sides):
            found = list(side.turn(steps))
            seconds[side.name] += [one for one, _ in found[1:]]
            first.setdefault(side.name, found[0][1])
    return [
        Row(name, median(taken), min(taken), max(taken), len(taken), first[name])
        for name, taken in seconds.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--vocabulary", type=int, default=8192)
    asked = parser.parse_args()
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), asked.tokens, asked.hidden, asked.vocabulary)
        rows = measure(world, asked.steps)
    for row in rows:
        print(
            f"{row.name:<12} {1e3 * row.median_s:8.1f} ms a step ({1e3 * row.low_s:.1f} to "
            f"{1e3 * row.high_s:.1f}, {row.steps} steps), first loss {row.first_loss:.6f}"
        )
    RESULT.write_bytes(orjson.dumps(_record(rows, vars(asked)), option=orjson.OPT_INDENT_2) + b"\n")


def _record(rows: Sequence[Row], asked: Mapping[str, int]) -> dict[str, Any]:
    return {
        "rows": [asdict(row) for row in rows],
        "settings": {**asked, "ttt_steps": TTT_STEPS, "rounds": ROUNDS},
        "versions": packages(),
        "machine": {"cpus": os.cpu_count(), "processor": platform.processor() or platform.machine()},
        "threads": torch.get_num_threads(),
    }


if __name__ == "__main__":
    main()
