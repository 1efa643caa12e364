"""The stage: every sample of the data through the target, shard by shard, however often it is stopped."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save

from breakeven.client.apikey import ApiKey
from breakeven.eagle.at_work import at_work
from breakeven.eagle.data import SAMPLES, VOCABULARY, Sample, read_samples, read_vocabulary
from breakeven.eagle.data.target import OF_TARGET, places
from breakeven.eagle.earlier import earlier
from breakeven.eagle.layers import check_layers, default_layers
from breakeven.eagle.recipe import Recipe, StatesSettings
from breakeven.eagle.stage import Made, Stage, checksum, required, start_over
from breakeven.eagle.states.passes import Passed, Source, Wanted
from breakeven.eagle.states.plan import Shard, batches, plan_shards
from breakeven.eagle.states.shards import Index, put
from breakeven.eagle.states.target import (
    CONFIG,
    TEXT_CONFIG,
    WEIGHTS,
    TargetWeights,
    config_file,
    open_weights,
    read_weights,
    weights_file,
)
from breakeven.eagle.states.target_head import TargetHead
from breakeven.errors import StorageError, UsageError
from breakeven.units import size

NAME = "states"
SHARED = "served"
"""Folder that is proposed for what a vLLM server hands out, inside the stage's."""
CHECKED_TOKENS = 64
"""Of the first sample, on which the target's logits are compared before the first shard."""
TOP_BYTES = 8
"""Of one of the top tokens: its id and the logarithm of its probability."""


class Watch(Protocol):
    """Who is told how far it is, in tokens."""

    def set_total(self, total: int | None) -> None: ...

    def advance(self, n: int = 1, note: str | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done: checked, and nothing of it begun."""

    settings: StatesSettings
    samples: Sequence[Sample]
    lengths: NDArray[np.int64]
    target: TargetWeights
    layers: tuple[int, ...]

    def shards(self) -> list[Shard]:
        return plan_shards(self.lengths, self.settings.tokens_per_shard)

    def bytes_of(self, shards: Sequence[Shard]) -> int:
        """On the disk, but for headers of a few kilobytes."""
        each: int = getattr(torch, self.settings.dtype).itemsize * (len(self.layers) + 1) * self.target.hidden
        return self.tokens_of(shards) * (each + TOP_BYTES * self.settings.top)

    def tokens_of(self, shards: Sequence[Shard]) -> int:
        return sum(int(self.lengths[one.samples.start : one.samples.stop].sum()) for one in shards)


def make_states(
    recipe: Recipe,
    watch: Watch,
    key: ApiKey | None = None,
    *,
    recheck: bool = False,
    fresh: bool = False,
) -> Made:
    """Makes the shards that are not in place yet; with `recheck` also those whose checksum is another by now,
    with `fresh` all, once data and target are found to fit.

    `key` is for the server, where states come from one. Raises UsageError for a target that does not suit
    the data or the recipe, and while another process is at work there; StorageError for a disk without room,
    EndpointError for a server that fails. Shards that are in place stay, whatever happens.
    """
    with at_work(recipe, NAME, "data"):
        return _made(recipe, watch, key, recheck, fresh)


def _made(recipe: Recipe, watch: Watch, key: ApiKey | None, recheck: bool, fresh: bool) -> Made:
    _refuse_other_target(recipe)
    work = plan_work(recipe)
    weights = read_weights(work.target)
    if fresh:
        start_over(recipe.stage(NAME))
    stage = _begin(recipe, work, weights, recheck)
    index = Index(stage.folder, recheck)
    todo = [shard for shard in work.shards() if shard.file not in index.lines]
    if (made := stage.made) is not None and not todo:
        return made
    _refuse_too_large(stage.folder, work.bytes_of(todo))
    watch.set_total(work.tokens_of(todo))
    if todo:
        with _in_memory(work.settings):
            source = _source(recipe, work, TargetHead.of(weights, work.target.eps), key)
            source.check(work.samples[0].input_ids[:CHECKED_TOKENS].tolist())
            for shard in todo:
                names = [work.samples[number].id for number in shard.samples]
                data = save(_tensors(source, work, shard, watch))
                index.add(shard.file, data, names, work.tokens_of([shard]))
    index.sort([shard.file for shard in work.shards()])
    return stage.finish([index.path, stage.folder / WEIGHTS, stage.folder / TEXT_CONFIG], _found(work))


def _refuse_other_target(recipe: Recipe) -> None:
    """Raises UsageError where its configuration or tokenizer is another than the data were made with."""
    made = earlier(recipe, "data")
    required(recipe.stage("data"), "data", places(made.inputs, recipe.beside(recipe.target.model)))


def plan_work(recipe: Recipe) -> Work:
    """Raises UsageError where data, target and recipe do not go together."""
    samples = list(read_samples(recipe.stage("data") / SAMPLES))
    lengths = np.array([len(sample.input_ids) for sample in samples], np.int64)
    target = open_weights(recipe.beside(recipe.target.model))
    chosen = recipe.states.layers
    layers = default_layers(target.layers) if chosen is None else check_layers(chosen, target.layers)
    _refuse_misfits(samples, lengths, target)
    read_vocabulary(recipe.stage("data") / VOCABULARY, target.vocab)
    if recipe.states.top > target.vocab:
        raise UsageError(f"top = {recipe.states.top} under [states]: the target has {target.vocab} tokens")
    return Work(recipe.states, samples, lengths, target, layers)


def _refuse_misfits(samples: Sequence[Sample], lengths: NDArray[np.int64], target: TargetWeights) -> None:
    if not samples:
        raise UsageError("the data hold no sample: give [data] of the recipe other sources")
    for sample in samples:
        outside = sample.input_ids[(sample.input_ids < 0) | (sample.input_ids >= target.vocab)]
        if len(outside):
            raise UsageError(
                f"sample {sample.id} has token {outside[0]}, and {target.folder} has {target.vocab:,} "
                "tokens: the data were made for another model, make them again with the target of the recipe"
            )
    if target.positions is not None and lengths.max() > target.positions:
        raise UsageError(
            f"a sample has {lengths.max():,} tokens, and {target.folder} takes {target.positions:,}: write "
            f" max_length = {target.positions}  under [data], and make the data again"
        )


def _begin(recipe: Recipe, work: Work, weights: Mapping[str, torch.Tensor], recheck: bool) -> Stage:
    """The stage's folder, with what training needs of the target in it.

    What the states depend on is its input. Of the target's weights those three tensors speak for all.
    """
    kept = weights_file(weights)
    inputs = {
        SAMPLES: checksum(recipe.stage("data") / SAMPLES),
        f"{OF_TARGET}{CONFIG}": checksum(work.target.folder / CONFIG),
        f"{OF_TARGET}{WEIGHTS}": hashlib.sha256(kept).hexdigest(),
    }
    stage = Stage(recipe.stage(NAME), NAME, {**asdict(recipe.states), "layers": work.layers}, inputs)
    for name, data in ((WEIGHTS, kept), (TEXT_CONFIG, config_file(work.target))):
        if recheck or not (stage.folder / name).exists():
            put(stage.folder / name, data)
    return stage


def _refuse_too_large(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise StorageError(
            f"the states that are to be made take {size(needed)}, and {folder} has {size(free)} free: name a "
            "larger disk as  folder  in the recipe, or take fewer samples or a smaller max_length"
        )


@contextmanager
def _in_memory(settings: StatesSettings) -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise UsageError(
            f"the GPU has too little memory for the target with batch = {settings.batch} under [states]: "
            "write a smaller one, spread the target over all GPUs and the CPU (pip install accelerate), or "
            'have vLLM serve it (source = "vllm")'
        ) from error


def _source(recipe: Recipe, work: Work, head: TargetHead, key: ApiKey | None) -> Source:
    wanted = Wanted(work.target, head, work.layers, work.settings.dtype, work.settings.top)
    if work.settings.source == "transformers":
        from breakeven.eagle.states.loaded import Loaded

        return Loaded(wanted)
    if recipe.target.url is None:
        raise UsageError(
            'states come from a server, and [target] has none: write  url = "http://HOST:PORT/v1"  there'
        )
    from breakeven.eagle.states.served import Served

    served = Served(wanted, recipe.target.url, (recipe.stage(NAME) / SHARED).absolute(), key)
    served.check_room(int(work.lengths.max()))
    return served


def _tensors(source: Source, work: Work, shard: Shard, watch: Watch) -> Mapping[str, torch.Tensor]:
    tensors: dict[str, torch.Tensor] = {}
    for numbers in batches(work.lengths, shard.samples, work.settings.batch):
        batch = [work.samples[number] for number in numbers]
        for sample, passed in zip(
            batch, source.passes([one.input_ids.tolist() for one in batch]), strict=True
        ):
            _refuse_infinite(sample, passed, work.settings.dtype)
            tensors |= passed.named(sample.id)
        watch.advance(int(work.lengths[numbers].sum()), shard.file)
    return tensors


def _refuse_infinite(sample: Sample, passed: Passed, dtype: str) -> None:
    if not bool(torch.isfinite(passed.hidden_states).all()):
        wider = "float32" if dtype == "bfloat16" else "bfloat16"
        raise UsageError(
            f"the target's states of sample {sample.id} are not finite in {dtype}: write  dtype = "
            f'"{wider}"  under [states]'
        )


def _found(work: Work) -> dict[str, Any]:
    shards = work.shards()
    return {
        "layers": work.layers,
        "hidden": work.target.hidden,
        "vocab": work.target.vocab,
        "samples": len(work.samples),
        "tokens": work.tokens_of(shards),
        "shards": len(shards),
        "bytes": work.bytes_of(shards),
        "dtype": work.settings.dtype,
    }
