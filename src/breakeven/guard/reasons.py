"""Reason: why a step drafts for a request, or does not."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Reason(IntEnum):
    """The numbers are those of the compiled loops; names are what metrics and tables show."""

    DRAFTED = 0
    NO_MATCH = 1
    UNLIKELY = 2
    HIGH_LOAD = 3
    LEDGER = 4
    COST_UNKNOWN = 5
    PROBE = 6
    KILLED = 7
    FAILED = 8

    @property
    def sentence(self) -> str:
        """What it means, for a person."""
        return SENTENCES[self]


SENTENCES: Mapping[Reason, str] = {
    Reason.DRAFTED: "the draft is likely to save more time than its verification takes",
    Reason.NO_MATCH: "the last tokens of the context did not occur before: there is nothing to draft from",
    Reason.UNLIKELY: "no draft is likely enough to be accepted to pay for its verification",
    Reason.HIGH_LOAD: "a draft would pay for this request, but not for the batch, which it would delay",
    Reason.LEDGER: "a draft should pay, but if it fails a request of the batch would lose more than epsilon",
    Reason.COST_UNKNOWN: "it is not known yet what a step with drafts takes",
    Reason.PROBE: "a draft that may not pay is verified to learn what a step with drafts takes",
    Reason.KILLED: "speculation was switched off by hand",
    Reason.FAILED: "the guard failed, and the server goes on without speculation",
}
