"""The stage: every held-out reply drafted, each kept as it is done; then the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import orjson

from breakeven.eagle.data import SAMPLES
from breakeven.eagle.evaluate import journal
from breakeven.eagle.evaluate.as_json import evaluation_json
from breakeven.eagle.evaluate.doubts import doubts
from breakeven.eagle.evaluate.drafted import Drafted
from breakeven.eagle.evaluate.part import parts
from breakeven.eagle.evaluate.records import Evaluation
from breakeven.eagle.evaluate.replies import Reply, held_out
from breakeven.eagle.evaluate.rivals import combined, ranked, replayed, rivals
from breakeven.eagle.extras import require
from breakeven.eagle.head_shape import config_of, weights_of
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.stage import Stage, checksum, required
from breakeven.errors import UsageError
from breakeven.replay.sources import open_source
from breakeven.trace.files import storing, write_bytes_atomically

NAME, FOLDER = "evaluate", "evaluation"
FILE = "evaluation.json"
SHARDS = "shards.jsonl"
NEEDS = ("torch", "safetensors")
SAMPLED = 1.0
"""Temperature of the figures under sampling where the recipe's own is 0."""


class Watch(Protocol):
    """Who is told how far it is, in replies."""

    def set_total(self, total: int | None) -> None: ...

    def advance(self, n: int = 1, note: str | None = None) -> None: ...


def evaluate(recipe: Recipe, watch: Watch, head: Path | None = None) -> Evaluation:
    """The head of the recipe, or the one in the folder `head`, on the recipe's held-out replies.

    Goes on with the first reply that has no line yet. Raises UsageError where an earlier stage is not whole,
    nothing is held out, or the head is of another architecture or target; MissingExtra; StorageError.
    """
    require(*NEEDS)
    folder = _head(recipe, head)
    required(recipe.stage("data"), "data")
    required(recipe.stage("states"), "states", {SAMPLES: recipe.stage("data") / SAMPLES})
    stage = Stage(recipe.stage(FOLDER), NAME, asdict(recipe.evaluate), _inputs(recipe, folder))
    path = stage.folder / journal.FILE
    if stage.made is None:
        replies = held_out(
            recipe.stage("data") / SAMPLES, recipe.evaluate.prompts, recipe.evaluate.max_tokens
        )
        _draft(recipe, folder, replies, path, watch)
    made = _evaluation(recipe, folder, path)
    if stage.made is None:
        _finish(stage, made)
    return made


def _head(recipe: Recipe, head: Path | None) -> Path:
    if head is None:
        required(recipe.stage("train"), "train")
        return recipe.stage("train") / "best"
    if not head.is_dir():
        raise UsageError(f"there is no folder {head}: name the folder of an EAGLE-3 head")
    return head


def _inputs(recipe: Recipe, folder: Path) -> dict[str, str]:
    files = {
        "head": weights_of(folder),
        "head configuration": config_of(folder),
        SAMPLES: recipe.stage("data") / SAMPLES,
        SHARDS: recipe.stage("states") / SHARDS,
    }
    return {name: checksum(file) for name, file in files.items()}


def _draft(recipe: Recipe, folder: Path, replies: Sequence[Reply], path: Path, watch: Watch) -> None:
    """Those replies that have no line yet."""
    import torch

    from breakeven.eagle.evaluate.drafting import Drafting
    from breakeven.eagle.evaluate.held_target import held_target
    from breakeven.eagle.head_file import load_head
    from breakeven.eagle.states.held import HeldStates
    from breakeven.eagle.states.passes import STATES

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    states = recipe.stage("states")
    held, target = HeldStates(states), held_target(states, device)
    layers = tuple(required(states, "states").found["layers"])
    head = load_head(folder, layers, target.embedding, device)
    drafting = Drafting(head, target.head, recipe.evaluate.k, _temperature(recipe))
    with journal.opened(path) as lines:
        watch.set_total(len(replies))
        watch.advance(len(lines.done))
        todo = [reply for reply in replies if reply.id not in lines.done]
        held.verify(held.shards_of(reply.sample for reply in todo))
        for reply in todo:
            (found,) = held.read(reply.sample, len(reply.ids), STATES)
            lines.append(reply, drafting(reply, found))
            watch.advance()


def _evaluation(recipe: Recipe, folder: Path, path: Path) -> Evaluation:
    """From the lines of every reply."""
    k, temperature, written_at = recipe.evaluate.k, _temperature(recipe), _written_at(recipe)
    drafted = [Drafted(**line[journal.COUNTS]) for line in journal.lines(path)]
    source = open_source(path)
    own, others = replayed(source, k), rivals(source, k)
    total, by_category = parts(own, drafted, written_at == temperature)
    greedy_share = sum(one.greedy for one in drafted) / sum(one.contexts[0] for one in drafted)
    notes = doubts(total.chained.acceptance.counters.drafts or 0, greedy_share, written_at)
    return Evaluation(
        head=str(folder),
        k=k,
        temperature=temperature,
        reply_temperature=written_at,
        greedy_share=greedy_share,
        total=total,
        by_category=by_category,
        rivals=ranked([own, *others]),
        combined=combined([own, *others]),
        warnings=tuple(notes),
    )


def _temperature(recipe: Recipe) -> float:
    return recipe.evaluate.temperature or SAMPLED


def _written_at(recipe: Recipe) -> float | None:
    return recipe.data.temperature if recipe.data.regenerate else None


def _finish(stage: Stage, made: Evaluation) -> None:
    path = stage.folder / FILE
    data = orjson.dumps(evaluation_json(made), option=orjson.OPT_INDENT_2)
    with storing(stage.folder):
        write_bytes_atomically(path, data)
    counters, length = made.total.chained.acceptance.counters, made.total.chained.acceptance_length
    stage.finish(
        [path, stage.folder / journal.FILE],
        {
            "replies": made.total.replies,
            "output_tokens": made.total.output_tokens,
            "drafts": counters.drafts,
            "accepted_per_position": counters.accepted_per_position,
            "acceptance_length": length and length.estimate,
            "tokens_per_step": made.total.chained.acceptance.tokens_per_step,
        },
    )
