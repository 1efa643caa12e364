"""The stage `train`: data/ and states/ in, train/ out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from breakeven.eagle.at_work import at_work
from breakeven.eagle.data.samples import SAMPLES, read_samples
from breakeven.eagle.data.vocabulary import VOCABULARY, read_vocabulary
from breakeven.eagle.earlier import earlier
from breakeven.eagle.extras import require
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.stage import Made, Stage, read_made, required, start_over
from breakeven.eagle.train.config import head_config
from breakeven.eagle.train.interrupts import heeded
from breakeven.eagle.train.log import PROGRESS, opened, read_progress
from breakeven.eagle.train.order import Order
from breakeven.eagle.train.split import Split, split
from breakeven.eagle.train.watch import Watch
from breakeven.errors import RunFormatError, UsageError

if TYPE_CHECKING:
    from breakeven.eagle.states.held import HeldStates
    from breakeven.eagle.train.checkpoint import Reached
    from breakeven.eagle.train.loop import Plan
    from breakeven.eagle.train.processes import Processes

STAGE = "train"
NEEDED = ("torch", "safetensors.torch", "transformers", "speculators.models.eagle3")


@dataclass(frozen=True, slots=True)
class Given:
    """What the stages before have made."""

    split: Split
    draft_ids: list[int]
    states: Path
    head: Mapping[str, Any]
    """The configuration of the head (config.py)."""
    inputs: Mapping[str, str]


def is_first() -> bool:
    """Whether this process is the one that tells, of those that torchrun started."""
    return os.environ.get("RANK", "0") == "0"


def train_head(
    recipe: Recipe, *, fresh: bool = False, watch: Watch | None = None, shuffled: bool = False
) -> Made:
    """Trains it, or goes on with that; what is whole already, and of what there is now, is left as it is
    unless `fresh`.

    `shuffled` trains a control instead, on states that are permuted over the tokens of each sample. Of the
    processes that train together the first keeps others out, for all of them. Raises UsageError,
    RunFormatError, MissingExtra, StorageError; KeyboardInterrupt with a checkpoint saved.
    """
    with at_work(recipe, STAGE, "data", "states") if is_first() else nullcontext():
        return _made(recipe, fresh, watch or Watch(), shuffled)


def _made(recipe: Recipe, fresh: bool, watch: Watch, shuffled: bool) -> Made:
    folder = recipe.stage(STAGE)
    given = _given(recipe)
    if not fresh and (made := read_made(folder)) is not None:
        _begun(recipe, given, shuffled, made.settings.get("k"))
        return made
    _check(recipe)
    require(*NEEDED)
    from breakeven.eagle.train.processes import joined

    with joined() as processes:
        stage = _stage(recipe, given, processes, fresh, shuffled)
        processes.wait()
        reached, plan = _train(recipe, given, processes, watch, shuffled)
        if stage is not None:
            _finish(stage, reached, plan, given)
        processes.wait()
    return required(folder, STAGE)


def _check(recipe: Recipe) -> None:
    settings, processes = recipe.train, int(os.environ.get("WORLD_SIZE", "1"))
    if settings.batch < processes:
        raise UsageError(
            f"there are {processes} processes and a batch of {settings.batch} samples: write  "
            f"batch = {processes}  or more under [train] of the recipe, so that each has one"
        )
    if settings.stop_at and not settings.validation:
        raise UsageError(
            "stop_at is compared with the acceptance on validation prompts, and there are none: write  "
            "validation = 0.05  under [train] of the recipe"
        )


def _given(recipe: Recipe) -> Given:
    """Raises UsageError where an earlier stage is not whole, or does not fit the target."""
    data, states = recipe.stage("data"), recipe.stage("states")
    made = {"data": earlier(recipe, "data"), "states": earlier(recipe, "states", {SAMPLES: data / SAMPLES})}
    target = _target(states / "target_config.json")
    vocabulary = read_vocabulary(data / VOCABULARY, target.get("vocab_size"))
    samples = [sample for sample in read_samples(data / SAMPLES) if sample.split == "train"]
    return Given(
        split(samples, recipe.train.validation, recipe.train.seed),
        vocabulary.draft_ids.tolist(),
        states,
        head_config(target, made["states"].found["layers"], vocabulary.size, recipe.train.style),
        {f"{stage}/{name}": sum_ for stage, one in made.items() for name, sum_ in one.outputs.items()},
    )


def _target(path: Path) -> dict[str, Any]:
    try:
        return dict(orjson.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise RunFormatError(
            f"{path} cannot be read ({error}): type  breakeven eagle states RECIPE --recheck"
        ) from error


def _stage(recipe: Recipe, given: Given, processes: Processes, fresh: bool, shuffled: bool) -> Stage | None:
    """The folder, begun by the first process; None in the others."""
    if not processes.first:
        return None
    if fresh:
        start_over(recipe.stage(STAGE))
    return _begun(recipe, given, shuffled, recipe.evaluate.k)


def _begun(recipe: Recipe, given: Given, shuffled: bool, k: object) -> Stage:
    """Raises UsageError for a folder that was begun with something else.

    The best head is chosen at `k` draft tokens; a whole training may be evaluated at others.
    """
    settings = {**asdict(recipe.train), "k": k, "shuffled": shuffled}
    return Stage(recipe.stage(STAGE), STAGE, settings, given.inputs)


def _train(
    recipe: Recipe, given: Given, processes: Processes, watch: Watch, shuffled: bool
) -> tuple[Reached, Plan]:
    from breakeven.eagle.train.checkpoint import Checkpoints
    from breakeven.eagle.train.loop import Loop
    from breakeven.eagle.train.model import new_head
    from breakeven.eagle.train.objective import Objective
    from breakeven.eagle.train.stepping import Stepper

    folder, settings = recipe.stage(STAGE), recipe.train
    states = _verified(given, processes, watch)
    head = new_head(given.head, given.draft_ids, given.states / "target.safetensors", settings.seed)
    stepper = Stepper(head, Objective(settings.steps, settings.decay, settings.loss), processes)
    plan, checkpoints = _plan(recipe, given, states, shuffled), Checkpoints(folder, given.head)
    reached = checkpoints.load(stepper.head, stepper.optimizer)
    processes.as_first(stepper.parameters.values())
    with ExitStack() as open_ones:
        interrupts = open_ones.enter_context(heeded())
        log = [open_ones.enter_context(opened(folder, reached.step)), watch] if processes.first else []
        loop = Loop(plan, stepper, checkpoints, processes, log)
        return loop.run(reached, interrupts), plan


def _verified(given: Given, processes: Processes, watch: Watch) -> HeldStates:
    """The states, once every shard that holds some of the samples was compared with its checksum: each by one
    process, and all before any is learned from."""
    from breakeven.eagle.states.held import HeldStates

    states = HeldStates(given.states)
    shards = states.shards_of(sample.id for sample in (*given.split.train, *given.split.validation))
    watch.verifies(len(shards))
    states.verify(shards[processes.rank :: processes.size])
    processes.wait()
    return states


def _plan(recipe: Recipe, given: Given, states: HeldStates, shuffled: bool) -> Plan:
    from breakeven.eagle.train.documents import Documents
    from breakeven.eagle.train.loop import Plan

    settings = recipe.train
    train, validation = (
        Documents(part, states, given.draft_ids, steps=settings.steps, shuffled=shuffled)
        for part in (given.split.train, given.split.validation)
    )
    order = Order(len(train), settings.batch, settings.epochs, settings.seed)
    return Plan(settings, order, min(recipe.evaluate.k, settings.steps), train, validation)


def _finish(stage: Stage, reached: Reached, plan: Plan, given: Given) -> None:
    best = reached.best
    steps = [line for line in read_progress(stage.folder) if "loss" in line]
    scores = steps[-1] if best is None else asdict(best.scores)
    found = {
        "steps": reached.step,
        "stopped_early": plan.is_met(reached),
        "best_step": reached.step if best is None else best.step,
        "k": plan.k,
        "acceptance_length": best and best.acceptance_length,
        **{name: scores[name] for name in ("loss", "loss_by_step", "acceptance")},
        "train_samples": len(given.split.train),
        "validation_samples": len(given.split.validation),
        "layers": given.head["eagle_aux_hidden_state_layer_ids"],
        "seconds": sum(line["seconds"] for line in steps),
    }
    folder = stage.folder
    stage.finish([folder / PROGRESS, *sorted((folder / "best").iterdir())], found)
