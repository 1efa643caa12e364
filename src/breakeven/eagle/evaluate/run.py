"""The stage: every held-out reply drafted, each kept as it is done; then the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import orjson

from breakeven.eagle.at_work import at_work
from breakeven.eagle.data import SAMPLES
from breakeven.eagle.earlier import earlier
from breakeven.eagle.evaluate import journal
from breakeven.eagle.evaluate.as_json import evaluation_json
from breakeven.eagle.evaluate.doubts import doubts
from breakeven.eagle.evaluate.drafted import Drafted
from breakeven.eagle.evaluate.part import parts
from breakeven.eagle.evaluate.records import Evaluation
from breakeven.eagle.evaluate.replies import Reply, held_out
from breakeven.eagle.evaluate.rivals import combined, ranked, replayed, rivals
from breakeven.eagle.extras import require
from breakeven.eagle.head_shape import config_of, names_layers, weights_of
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.stage import Made, Stage, checksum, read_made, start_over
from breakeven.errors import RunFormatError, UsageError
from breakeven.replay.sources import open_source
from breakeven.trace.files import storing, write_bytes_atomically

if TYPE_CHECKING:
    from breakeven.eagle.evaluate.drafting import Drafting
    from breakeven.eagle.states.held import HeldStates

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


@dataclass(frozen=True, slots=True)
class _Given:
    """What is there before it begins."""

    head: Path
    layers: tuple[int, ...]
    """Whose states there are."""


def evaluate(recipe: Recipe, watch: Watch, head: Path | None = None, *, fresh: bool = False) -> Evaluation:
    """The head of the recipe, or the one in the folder `head`, on the recipe's held-out replies.

    Goes on with the first reply that has no line yet; with `fresh` all are drafted anew, once the head and
    what it needs are found to fit. Raises UsageError where an earlier stage is not whole, nothing is held
    out, the head is of another architecture, target or layers, or another process is at work there;
    RunFormatError for damaged files; MissingExtra; StorageError.
    """
    trained = ("train",) if head is None else ()
    with at_work(recipe, FOLDER, "data", "states", *trained):
        return _evaluated(recipe, watch, head, fresh)


def _evaluated(recipe: Recipe, watch: Watch, head: Path | None, fresh: bool) -> Evaluation:
    require(*NEEDS)
    given, folder = _given(recipe, head), recipe.stage(FOLDER)
    if not fresh and (whole := read_made(folder)) is not None:
        _begun(recipe, given.head)
        _refuse_changed(folder / journal.FILE, whole)
        return _evaluation(recipe, given)
    work = _work(recipe, given)
    if fresh:
        start_over(folder)
    stage = _begun(recipe, given.head)
    work.draft(folder / journal.FILE, watch)
    found = _evaluation(recipe, given)
    _finish(stage, found)
    return found


def _given(recipe: Recipe, head: Path | None) -> _Given:
    if head is None:
        earlier(recipe, "train")
    elif not head.is_dir():
        raise UsageError(f"there is no folder {head}: name the folder of an EAGLE-3 head")
    earlier(recipe, "data")
    states = earlier(recipe, "states", {SAMPLES: recipe.stage("data") / SAMPLES})
    return _Given(head or recipe.stage("train") / "best", tuple(states.found["layers"]))


def _begun(recipe: Recipe, head: Path) -> Stage:
    """Raises UsageError for a folder that was begun with something else."""
    files = {
        "head": weights_of(head),
        "head configuration": config_of(head),
        SAMPLES: recipe.stage("data") / SAMPLES,
        SHARDS: recipe.stage("states") / SHARDS,
    }
    inputs = {name: checksum(file) for name, file in files.items()}
    return Stage(recipe.stage(FOLDER), NAME, asdict(recipe.evaluate), inputs)


@dataclass(frozen=True, slots=True)
class _Work:
    """What there is to draft, and what drafts it."""

    replies: Sequence[Reply]
    states: HeldStates
    drafting: Drafting

    def draft(self, path: Path, watch: Watch) -> None:
        """Those replies that have no line in the journal yet."""
        from breakeven.eagle.states.passes import STATES

        with journal.opened(path) as lines:
            watch.set_total(len(self.replies))
            watch.advance(len(lines.done))
            todo = [reply for reply in self.replies if reply.id not in lines.done]
            self.states.verify(self.states.shards_of(reply.sample for reply in todo))
            for reply in todo:
                (found,) = self.states.read(reply.sample, len(reply.ids), STATES)
                lines.append(reply, self.drafting(reply, found))
                watch.advance()


def _work(recipe: Recipe, given: _Given) -> _Work:
    import torch

    from breakeven.eagle.evaluate.drafting import Drafting
    from breakeven.eagle.evaluate.held_target import held_target
    from breakeven.eagle.head_file import load_head
    from breakeven.eagle.states.held import HeldStates

    settings, states = recipe.evaluate, recipe.stage("states")
    replies = held_out(recipe.stage("data") / SAMPLES, settings.prompts, settings.max_tokens)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    target = held_target(states, device)
    head = load_head(given.head, given.layers, target.depth, target.embedding, device)
    drafting = Drafting(head, target.head, settings.k, _temperature(recipe))
    return _Work(replies, HeldStates(states), drafting)


def _refuse_changed(path: Path, whole: Made) -> None:
    if not path.is_file() or checksum(path) != whole.outputs[journal.FILE]:
        raise RunFormatError(
            f"{path} is gone, or it has changed since it was evaluated: type  breakeven eagle evaluate "
            "RECIPE --fresh"
        )


def _evaluation(recipe: Recipe, given: _Given) -> Evaluation:
    """From the lines of every reply."""
    path = recipe.stage(FOLDER) / journal.FILE
    k, temperature, written_at = recipe.evaluate.k, _temperature(recipe), _written_at(recipe)
    drafted = [Drafted(**line[journal.COUNTS]) for line in journal.lines(path)]
    source = open_source(path)
    own, others = replayed(source, k), rivals(source, k)
    total, by_category = parts(own, drafted, written_at == temperature)
    greedy_share = sum(one.greedy for one in drafted) / sum(one.contexts[0] for one in drafted)
    unnamed = None if names_layers(given.head) else given.layers
    notes = doubts(total.chained.acceptance.counters.drafts or 0, greedy_share, written_at, unnamed)
    return Evaluation(
        head=str(given.head),
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


def _finish(stage: Stage, found: Evaluation) -> None:
    path = stage.folder / FILE
    data = orjson.dumps(evaluation_json(found), option=orjson.OPT_INDENT_2)
    with storing(stage.folder):
        write_bytes_atomically(path, data)
    counters, length = found.total.chained.acceptance.counters, found.total.chained.acceptance_length
    stage.finish(
        [path, stage.folder / journal.FILE],
        {
            "replies": found.total.replies,
            "output_tokens": found.total.output_tokens,
            "drafts": counters.drafts,
            "accepted_per_position": counters.accepted_per_position,
            "acceptance_length": length and length.estimate,
            "tokens_per_step": found.total.chained.acceptance.tokens_per_step,
        },
    )
