"""Which request is in which row: through all that vLLM does with its batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest

from breakeven.guard import vllm_rows
from breakeven.guard.vllm_rows import Batch, Rows
from tests.unit.guard.fake_vllm import FakeVllm, Playing


@dataclass
class Watched:
    """Rows whose states are numbers, by the order in which the requests began."""

    fake: FakeVllm = field(default_factory=FakeVllm)
    begun: int = 0
    ended: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rows = Rows(self.begin, self.ended.append, 2, 8)

    def begin(self) -> Any:
        self.begun += 1
        return self.begun

    def step(self, drafts: dict[int, list[int]] | None = None) -> Batch:
        batch = self.rows.take(*self.fake.step(drafts or {}))
        for one, row in zip(self.fake.batch, batch.rows, strict=True):
            if row is not None:
                assert row.index.tokens.tolist() == one.text[: one.count]
        return batch


def states(batch: Batch) -> list[Any]:
    return [None if row is None else row.state for row in batch.rows]


def text(seed: int, tokens: int = 200) -> list[int]:
    return np.random.default_rng(seed).integers(0, 50, tokens).tolist()


def begun(watched: Watched, *seeds: int) -> list[Playing]:
    return [watched.fake.start(text(seed), text(seed + 100)) for seed in seeds]


def test_a_request_goes_on() -> None:
    watched = Watched()
    begun(watched, 1, 2)
    first = watched.step()
    assert states(first) == [1, 2] and first.prefill
    assert [row.continued for row in first.rows if row] == [False, False]
    second = watched.step()
    assert states(second) == [1, 2] and not second.prefill
    assert [row.continued for row in second.rows if row] == [True, True]
    assert watched.begun == 2


def test_the_last_tokens_are_those_of_the_step() -> None:
    watched = Watched()
    (one,) = begun(watched, 1)
    watched.step()
    batch = watched.step({id(one): one.text[one.count : one.count + 3]})
    assert batch.rows[0] is not None
    assert batch.rows[0].last.tolist() == one.text[one.count - 4 : one.count]


def test_rows_move() -> None:
    watched = Watched()
    a, *_ = begun(watched, 1, 2, 3)
    watched.step()
    watched.fake.swap(0, 1)
    assert states(watched.step()) == [2, 1, 3]
    del a.text[a.count + 1 :]
    assert states(watched.step()) == [2, 1, 3]
    watched.fake.clear()
    batch = watched.step()
    assert states(batch) == [2, 3] and not batch.prefill
    assert watched.begun == 3


def test_a_new_request_in_the_row_of_one_that_ended() -> None:
    watched = Watched()
    a, _ = begun(watched, 1, 2)
    watched.step()
    del a.text[a.count + 1 :]
    watched.step()
    watched.fake.clear()
    begun(watched, 3)
    batch = watched.step()
    assert states(batch) == [2, 3] and batch.prefill


def test_a_prompt_in_chunks_has_no_row_yet() -> None:
    watched = Watched()
    begun(watched, 1)
    watched.step()
    watched.fake.start(text(2), text(3), chunks=3)
    for _ in range(2):
        batch = watched.step()
        assert states(batch) == [1, None] and batch.prefill
    assert states(watched.step()) == [1, 2]
    assert not watched.step().prefill


def test_a_preempted_request_comes_back_as_itself() -> None:
    watched = Watched()
    a, _ = begun(watched, 1, 2)
    for _ in range(5):
        watched.step()
    watched.fake.preempt(a)
    assert states(watched.step()) == [2]
    watched.fake.resume(a)
    batch = watched.step()
    assert states(batch) == [2, 1] and batch.prefill
    assert batch.rows[1] is not None and not batch.rows[1].continued
    assert states(watched.step()) == [2, 1]
    assert watched.begun == 2 and watched.ended == []


def test_steps_without_a_call_are_told_and_accounts_begin_again() -> None:
    """vLLM calls no drafter while one of the batch is near the end of max_model_len."""
    watched = Watched()
    begun(watched, 1, 2)
    known = [row.index for row in watched.step().rows if row]
    for _ in range(3):
        watched.fake.step({})
    batch = watched.step()
    assert states(batch) == [3, 4] and batch.prefill and watched.ended == [1, 2]
    assert [row.continued for row in batch.rows if row] == [False, False]
    assert [row.index for row in batch.rows if row] == known
    assert not watched.step().prefill


def test_the_next_turn_of_a_conversation_has_an_account_of_its_own() -> None:
    """Its prompt is the request before it, and what the user says."""
    watched = Watched()
    (one,) = begun(watched, 1)
    for _ in range(5):
        watched.step()
    watched.fake.preempt(one)
    watched.fake.start([*one.text[: one.count], *text(3, 20)], text(4))
    assert states(watched.step()) == [2] and watched.ended == [1]


def test_a_draft_that_was_cut_is_told() -> None:
    """vLLM drops what a grammar does not allow."""
    watched = Watched()
    (one,) = begun(watched, 1)
    watched.step()
    for allowed, prefill in ((None, False), (2, True), (0, True), (None, False)):
        (row,) = watched.rows._rows
        assert row is not None
        one.allowed, row.draft = allowed, (61, 62, 63)
        batch = watched.step({id(one): [61, 62, 63]})
        assert batch.prefill == prefill and row.continued and row.emitted == 1
    one.allowed, row.draft = 0, (61,)
    assert watched.step({id(one): [61]}).prefill, "it shows nothing, and drafts of it were cut before"
    one.allowed = None
    row.draft = tuple(one.text[one.count : one.count + 3])
    assert not watched.step({id(one): list(row.draft)}).prefill and row.emitted == 4


def test_requests_with_the_same_tokens() -> None:
    watched = Watched()
    for _ in range(3):
        watched.fake.start(text(1), text(2))
    assert states(watched.step()) == [1, 2, 3]
    watched.fake.preempt(watched.fake.batch[0])
    assert len(set(states(watched.step()))) == 2
    assert watched.begun == 3


def test_what_is_parked_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_rows, "MOST_PARKED", 4)
    watched = Watched()
    for seed in range(10):
        one = watched.fake.start(text(seed), text(seed, 3))
        watched.step()
        watched.fake.preempt(one)
    watched.step()
    assert watched.ended == [1, 2, 3, 4, 5, 6]
    watched.rows.forget()
    assert sorted(watched.ended) == list(range(1, 11))


def test_another_prompt_of_the_same_length_is_another_request() -> None:
    watched = Watched()
    a = watched.fake.start(text(1), text(2))
    watched.step()
    watched.fake.preempt(a)
    other = text(1)
    other[100] += 1
    watched.fake.start(other, text(2))
    assert states(watched.step()) == [2]


@pytest.mark.parametrize("seed", range(20))
def test_through_anything_at_once(seed: int) -> None:
    """Each request has one state for as long as it lives, whatever happens between two calls."""
    random, watched = Random(seed), Watched()
    of: dict[int, Any] = {}
    preempted: list[Playing] = []
    every: list[Playing] = []
    for _ in range(150):
        watched.fake.clear()
        if len(watched.fake.batch) < 7 and random.random() < 0.3:
            every.append(watched.fake.start(text(random.randrange(10**6)), text(1, random.randint(1, 60))))
        if preempted and len(watched.fake.batch) < 7 and random.random() < 0.4:
            watched.fake.resume(preempted.pop())
        if len(watched.fake.batch) > 1 and random.random() < 0.2:
            preempted.append(watched.fake.preempt(random.choice(watched.fake.batch)))
        if len(watched.fake.batch) > 1 and random.random() < 0.2:
            watched.fake.swap(*random.sample(range(len(watched.fake.batch)), 2))
        drafts = {
            id(one): one.text[one.count : one.count + random.randint(0, 5)] for one in watched.fake.batch
        }
        for one, state in zip(watched.fake.batch, states(watched.step(drafts)), strict=True):
            assert of.setdefault(id(one), state) == state
    assert watched.begun == len(of) > 10
