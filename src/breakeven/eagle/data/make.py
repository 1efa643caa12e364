"""The data stage: sources, and replies of the target itself where the recipe asks for them, into samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from breakeven.client.endpoint import ApiKey, Endpoint
from breakeven.client.loop import run as run_loop
from breakeven.eagle.at_work import at_work
from breakeven.eagle.data.asking import Asking, distinct
from breakeven.eagle.data.chats import Chat
from breakeven.eagle.data.collect import Collection, count_ids
from breakeven.eagle.data.enough import too_few
from breakeven.eagle.data.of_runs import chats_of
from breakeven.eagle.data.replies import left_to_ask, reach, replies
from breakeven.eagle.data.samples import SAMPLES, Sample, write_samples
from breakeven.eagle.data.sources import ChatSource, open_sources
from breakeven.eagle.data.spelling import Spelling
from breakeven.eagle.data.target import Decode, TargetFolder, open_target
from breakeven.eagle.data.vocabulary import (
    VOCABULARY,
    Vocabulary,
    check_size,
    choose,
    share_in,
    write_vocabulary,
)
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.stage import Made, Stage, start_over
from breakeven.errors import UsageError
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import Run
from breakeven.units import count

STAGE = "data"
REPLIES = "replies"
"""The run's folder, in that of the stage."""
MANY = 0.1
"""Share of the replies that are no answer, from which on it is worth a word."""


@dataclass(frozen=True, slots=True)
class Access:
    """How the target's server is reached, beside the recipe's URL."""

    model: str | None = None
    """Its name there; needed only where the server has several."""
    api_key: ApiKey | None = None


class Watch:
    """Told of the progress. This one says nothing."""

    def asks(self, prompts: int) -> None:
        """So many prompts are left to be answered."""

    def answered(self, trace: RequestTrace) -> None:
        """One of them is, or failed."""

    def tokenises(self) -> None:
        """All replies are there."""


@dataclass(slots=True)
class _Work:
    """What one call knows."""

    recipe: Recipe
    target: TargetFolder
    decode: Decode | None
    sources: Sequence[ChatSource]
    left_out: Counter[str] = field(default_factory=Counter)
    read: dict[str, int] = field(default_factory=dict)
    """Chats of each source."""

    @property
    def folder(self) -> Path:
        return self.recipe.stage(STAGE)

    def spelling(self) -> Spelling:
        """One that has looked at nothing yet."""
        return Spelling(self.decode, str(self.target.path), self.target.vocabulary)

    def chats(self, with_replies: bool) -> Iterator[Chat]:
        for source in self.sources:
            self.read[source.name] = 0
            for chat in source.chats(with_replies, self.left_out):
                self.read[source.name] += 1
                yield chat


def make_data(
    recipe: Recipe,
    access: Access | None = None,
    watch: Watch | None = None,
    *,
    fresh: bool = False,
    ask_again: bool = False,
) -> Made:
    """Make what is not made yet; what the target has answered already is not asked again.

    With `fresh` the samples are made anew, with `ask_again` the replies too: once recipe, target and sources
    are found to be there, and a server that answers.

    Raises UsageError for what the recipe, the sources or the target's folder have wrong, and while another
    process is at work there; EndpointError and its like of the server, after which the next call goes on;
    StorageError.
    """
    with at_work(recipe, STAGE):
        return _made(recipe, access or Access(), watch or Watch(), fresh, ask_again)


def _made(recipe: Recipe, access: Access, watch: Watch, fresh: bool, ask_again: bool) -> Made:
    target = open_target(recipe.beside(recipe.target.model))
    work = _Work(recipe, target, target.decoder(), open_sources(recipe))
    check_size(recipe.data.draft_vocabulary, target.special, target.vocabulary)
    endpoint = _endpoint(recipe, access) if recipe.data.regenerate else None
    inputs = target.inputs() | {name: sum_ for one in work.sources for name, sum_ in one.inputs.items()}
    if fresh or ask_again:
        if ask_again and endpoint is not None:
            run_loop(reach(endpoint, recipe.data))
        start_over(work.folder, keep=() if ask_again else (REPLIES,))
    stage = Stage(work.folder, STAGE, asdict(recipe.data), inputs)
    if stage.made is not None:
        return stage.made
    found = Collection(target, recipe.data, work.spelling(), work.left_out)
    if endpoint is None:
        watch.tokenises()
        found.take(work.chats(with_replies=True))
        run, duplicates = None, found.duplicates
    else:
        asking = distinct(work.chats(with_replies=False), work.left_out)
        run = _regenerate(work, endpoint, asking, watch)
        watch.tokenises()
        found.take(chats_of(run, REPLIES, work.left_out))
        duplicates = asking.duplicates
    return _finish(stage, work, found, run, duplicates)


def _endpoint(recipe: Recipe, access: Access) -> Endpoint:
    """Raises UsageError for a URL that is missing or cannot be used."""
    if recipe.target.url is None:
        raise UsageError(
            f'{recipe.path}: regenerate = true asks the target itself: write  url = "http://HOST:PORT"  '
            "under "
            "[target], or  regenerate = false  under [data] to learn from recorded replies"
        )
    return Endpoint(recipe.target.url, model=access.model, api_key=access.api_key)


def _regenerate(work: _Work, endpoint: Endpoint, asking: Asking, watch: Watch) -> Run:
    folder = work.folder / REPLIES
    spelling = work.spelling()

    def on_trace(trace: RequestTrace) -> None:
        if trace.output_token_ids and trace.error is None:
            ids = np.array(trace.output_token_ids, np.int64)
            spelling.in_range(trace.id, ids)
            spelling.see(trace.id, ids, trace.text, trace.reasoning)
        watch.answered(trace)

    watch.asks(left_to_ask(folder, asking))
    endpoint = replace(endpoint, api="completions" if asking.raw else "chat")
    return run_loop(replies(folder, endpoint, asking, work.recipe.data, on_trace))


def _finish(stage: Stage, work: _Work, found: Collection, run: Run | None, duplicates: int) -> Made:
    samples = found.samples()
    trained = count_ids(samples, "train", work.target.vocabulary)
    vocabulary = choose(trained, work.recipe.data.draft_vocabulary, work.target.special)
    figures = _figures(samples, work, vocabulary) | {
        "duplicates": duplicates,
        "cut": found.cut,
        "left_out": {reason: n for reason, n in sorted(work.left_out.items()) if n},
        "sources": work.read,
        "replies": None if run is None else _of_run(run),
        "warnings": list(_warnings(samples, work, found)),
    }
    write_samples(work.folder / SAMPLES, samples)
    write_vocabulary(work.folder / VOCABULARY, vocabulary)
    return stage.finish([work.folder / SAMPLES, work.folder / VOCABULARY], figures)


def _figures(samples: Sequence[Sample], work: _Work, vocabulary: Vocabulary) -> dict[str, Any]:
    apart = count_ids(samples, "held_out", work.target.vocabulary)
    return {
        "model": work.recipe.target.model,
        "samples": len(samples),
        "held_out": sum(one.split == "held_out" for one in samples),
        "tokens": sum(len(one.input_ids) for one in samples),
        "loss_tokens": sum(int(one.loss_mask.sum()) for one in samples),
        "target_vocabulary": vocabulary.target_size,
        "draft_vocabulary": vocabulary.size,
        "coverage": vocabulary.coverage,
        "coverage_held_out": share_in(apart, vocabulary.draft_ids),
    }


def _of_run(run: Run) -> dict[str, Any]:
    meta = run.meta
    return {
        "model": meta.model,
        "engine": meta.server.engine,
        "engine_version": meta.server.version,
        "requests": len(run),
        "max_tokens": meta.sampling.max_tokens,
        "temperature": meta.sampling.temperature,
    }


def _warnings(samples: Sequence[Sample], work: _Work, found: Collection) -> Iterator[str]:
    few = too_few(sum(one.split == "train" for one in samples))
    if few is not None:
        yield few
    if work.recipe.data.held_out and not any(one.split == "held_out" for one in samples):
        yield "one conversation alone cannot be split: evaluate has nothing to look at; add prompts"
    if found.thoughts >= MANY * len(samples):
        yield (
            f"in {found.thoughts:,} of {count(len(samples), 'sample')} max_tokens cut the reply before an "
            "answer began, and what is not there is not learned: write a larger  max_tokens  under [data], "
            "and type  breakeven eagle data RECIPE --ask-again, or record longer replies"
        )
    if found.from_text:
        yield (
            f"{count(found.from_text, 'sample')} were made into tokens again from text: they may differ from "
            "what the target wrote; a server that tells token ids (vLLM) leaves no doubt"
        )
    if work.decode is None:
        yield (
            f"{work.target.path} has no tokenizer.json: whether its tokenizer is the server's could not be "
            "looked at"
        )
