"""What two starts were not made of alike is listed beside what their logs tell apart."""

from __future__ import annotations

import asyncio

import pytest

from breakeven.errors import ServerError
from breakeven.servers.fake.lifecycle import FakeLifecycle
from breakeven.servers.lifecycle import MadeOf
from breakeven.trial import confounded
from breakeven.trial.confounded import made_of, made_otherwise
from breakeven.trial.start_facts import StartFacts

OLD: MadeOf = {"image": "sha256:a", "environment file /etc/x.env": "0123456789ab"}


class Made(FakeLifecycle):
    """A server of which it is known what it was made of, or why not."""

    def __init__(self, made: MadeOf | Exception) -> None:
        super().__init__()
        self.made = made

    async def made_of(self) -> MadeOf:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


class Slow(FakeLifecycle):
    async def made_of(self) -> MadeOf:
        await asyncio.sleep(60)
        return OLD


async def test_what_cannot_be_asked_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await made_of(Made(OLD)) == OLD
    assert await made_of(Made(ServerError("gone"))) == {}
    assert await made_of(FakeLifecycle()) == {}
    monkeypatch.setattr(confounded, "MOST_S", 0.05)
    assert await made_of(Slow()) == {}


def test_only_what_differs_is_listed() -> None:
    assert made_otherwise("the sides differ in", OLD, OLD) == ()
    assert made_otherwise("the sides differ in", OLD, {**OLD, "image": "sha256:b"}) == (
        "the sides differ in image: sha256:a → sha256:b",
    )
    assert made_otherwise("the sides differ in", OLD, {"image": "sha256:a"}) == (
        "the sides differ in environment file /etc/x.env: 0123456789ab → not said",
    )


def test_what_is_not_known_of_a_side_is_said() -> None:
    said = "whether the sides differ in image is not known"
    assert made_otherwise("the sides differ in", OLD, {**OLD, "image": None}) == (said,)
    assert made_otherwise("the sides differ in", {"image": None}, {"image": None}) == (said,)


def test_a_side_that_could_not_be_asked_is_no_difference() -> None:
    assert (
        made_otherwise("the sides differ in", {}, OLD) == made_otherwise("the sides differ in", OLD, {}) == ()
    )


def test_sentences_of_both_kinds_and_both_ways() -> None:
    first = StartFacts({"version": "0.32"}, OLD)
    second = StartFacts({"version": "0.33"}, {**OLD, "image": "sha256:b"})
    assert first.against(second) == (
        "the sides' logs differ in engine version: 0.32 → 0.33",
        "the sides differ in image: sha256:a → sha256:b",
    )
    assert first.before(second) == (
        "the baseline came back with other engine version: 0.32 → 0.33",
        "the baseline came back with other image: sha256:a → sha256:b",
    )


def test_what_is_kept_is_read_again_and_older_runs_have_less() -> None:
    facts = StartFacts({"version": "0.32"}, OLD)
    assert StartFacts.kept(facts.to_json()) == facts
    assert StartFacts.kept({"log_facts": {"version": "0.32"}}) == StartFacts({"version": "0.32"}, {})
    assert StartFacts.kept({}) == StartFacts({}, {})
