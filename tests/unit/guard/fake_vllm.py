"""The batch of a vLLM as its drafter sees it, of requests whose tokens are written down beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

WIDTH, ROWS = 2048, 8


@dataclass
class Playing:
    """A request in the batch, or one that was preempted."""

    text: list[int]
    """Prompt and output."""
    count: int
    """Tokens of it that there are."""
    chunks: int = 1
    """Steps that its prompt takes from now on; 0: it is decoded."""
    allowed: int | None = None
    """Tokens of a draft that its grammar lets through; None for all."""

    @property
    def ended(self) -> bool:
        return self.count >= len(self.text)


@dataclass
class FakeVllm:
    """Its batch is a list of requests in the order of their rows; what tests do to it, vLLM does as well."""

    batch: list[Playing] = field(default_factory=list)
    accepted: int = 0
    drafted: int = 0

    def start(self, prompt: Sequence[int], output: Sequence[int], chunks: int = 1) -> Playing:
        one = Playing([*prompt, *output], len(prompt), chunks)
        self.batch.append(one)
        return one

    def preempt(self, one: Playing) -> Playing:
        """Out of the batch; the last row takes its place. It comes back by `resume`."""
        self._take(one)
        one.chunks = 1
        return one

    def resume(self, one: Playing) -> None:
        self.batch.append(one)

    def swap(self, a: int, b: int) -> None:
        self.batch[a], self.batch[b] = self.batch[b], self.batch[a]

    def step(self, drafts: dict[int, list[int]]) -> tuple[list[list[int]], Any, Any]:
        """What a call of `propose` is given after a step that verified these drafts, by id of the request.

        Requests that ended are in their last call: they leave with the next `clear`.
        """
        ids, counts = np.full((ROWS, WIDTH), -7, np.int32), np.zeros(ROWS, np.int32)
        sampled = []
        for row, one in enumerate(self.batch):
            draft = drafts.get(id(one), [])[: one.allowed] if one.chunks == 0 else []
            ids[row, one.count : one.count + len(draft)] = draft
            sampled.append(self._emit(one, draft))
            ids[row, : one.count] = one.text[: one.count]
            counts[row] = one.count
        return sampled, counts, ids

    def clear(self) -> None:
        """Ended requests leave; the last rows take their places, as in vLLM's condense."""
        for one in [one for one in self.batch if one.ended]:
            self._take(one)

    def _take(self, one: Playing) -> None:
        row = next(row for row, other in enumerate(self.batch) if other is one)
        last = self.batch.pop()
        if last is not one:
            self.batch[row] = last

    def _emit(self, one: Playing, draft: list[int]) -> list[int]:
        if one.chunks > 1:
            one.chunks -= 1
            return []
        accepted = 0
        if one.chunks == 0:
            self.drafted += len(draft)
            rest = one.text[one.count :]
            while accepted < min(len(draft), len(rest)) and draft[accepted] == rest[accepted]:
                accepted += 1
            self.accepted += accepted
        one.chunks = 0
        begin, one.count = one.count, min(one.count + accepted + 1, len(one.text))
        return one.text[begin : one.count]


def serve(fake: FakeVllm, propose: Any, steps: int = 10_000) -> None:
    """Step after step, each with the drafts of the last call, until all have ended or so many were made."""
    drafts: dict[int, list[int]] = {}
    for _ in range(steps):
        fake.clear()
        if not fake.batch:
            return
        proposed = propose(*fake.step(drafts))
        drafts = {id(one): draft for one, draft in zip(fake.batch, proposed, strict=True)}


def vllm_config(k: int = 10, **changed: Any) -> SimpleNamespace:
    """What the guard reads of a VllmConfig."""
    values = {
        "max_model_len": WIDTH,
        "served_model_name": "tiny",
        "model": "models/tiny",
        "max_num_batched_tokens": 2048,
        "tensor_parallel_size": 1,
        "max_num_scheduled_tokens": None,
        "pipeline_parallel_size": 1,
        "data_parallel_index": 0,
        "rank": 0,
        **changed,
    }
    one = SimpleNamespace(**values)
    return SimpleNamespace(
        model_config=one,
        scheduler_config=one,
        parallel_config=one,
        speculative_config=SimpleNamespace(num_speculative_tokens=k),
    )
