"""Whoever is told how a training goes."""

from __future__ import annotations

from breakeven.eagle.train.records import Step, Validation


class Watch:
    """Is told and does nothing; what shows progress overrides it."""

    def verifies(self, shards: int) -> None:
        """So many shards of states are compared with their checksums, before anything is learned."""

    def begins(self, steps: int, done: int) -> None:
        """There are `steps` in all, of which `done` were done before."""

    def stepped(self, step: Step) -> None:
        """An optimizer step is done."""

    def validated(self, found: Validation) -> None:
        """The validation prompts were looked at."""
