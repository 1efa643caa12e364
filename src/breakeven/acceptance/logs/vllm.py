"""vLLM's lines of speculation and of its state."""

from __future__ import annotations

import re
from dataclasses import dataclass

from breakeven.acceptance.logs.report import LogReport, LogState
from breakeven.acceptance.logs.rounding import HALF_SHARE, counts_by_position, drafts_between, shares_in

ENGINE = "vllm"
SOURCE = "vLLM log"
SPECULATION = re.compile(r"(?:SpecDecoding|Speculative) metrics: ")
STATUS = re.compile(r"Avg prompt throughput: ")
_STATE = re.compile(
    r"Avg generation throughput: (\d{1,9}(?:\.\d{1,3})?) tokens/s, Running: (\d{1,9}) req.{0,60}?"
    r"(?:Waiting|Pending): (\d{1,9}) req(?:.{0,80}?KV cache usage: (\d{1,3}(?:\.\d{1,3})?)%)?"
    r"(?:.{0,200}?[^l] [Pp]refix cache hit rate: (\d{1,3}(?:\.\d{1,3})?)%)?",
    re.ASCII,
)
_RANK = re.compile(r"Engine (\d{1,6}): $", re.ASCII)
_FIELD = re.compile(r"([A-Z][\w -]{0,40}): \[?((?:nan|[\d.])[\d., ]*%?)")
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?", re.ASCII)
_MOST_READ = 4000
_APART = 0.01
"""More than a mean length, rounded, differs from itself."""


@dataclass(frozen=True, slots=True)
class Totals:
    """A running total of vLLM V0: all since the server's start."""

    at: str | None
    window: int | None
    drafted: int | None
    matched: int | None
    """What V0 calls accepted: every draft token that the target would have chosen at its place, those after a
    first rejected one too (vllm#9565)."""
    emitted: int | None
    efficiency: float | None
    """emitted / (drafts × (window + 1)), to 3 decimals."""

    @property
    def drafts(self) -> int | None:
        """V0's drafts all fill the window."""
        if not self.window or self.drafted is None or self.drafted % self.window:
            return None
        return self.drafted // self.window

    def has_fallen_since(self, before: Totals) -> bool:
        """Whether the server started anew between the two."""
        pairs = (
            (self.drafted, before.drafted),
            (self.matched, before.matched),
            (self.emitted, before.emitted),
        )
        return any(now is not None and then is not None and now < then for now, then in pairs)

    def since(self, before: Totals | None) -> LogReport:
        """What was counted after `before`; each draft emits the tokens that were accepted and one more."""
        drafts, drafted = _less(self, before, "drafts"), _less(self, before, "drafted")
        emitted = _less(self, before, "emitted")
        accepted = emitted - drafts if emitted is not None and drafts is not None else None
        if accepted is not None and not 0 <= accepted <= (drafted or 0):
            accepted = drafts = None
        return LogReport(
            ENGINE,
            "vLLM V0",
            self.at,
            drafted,
            accepted,
            None if drafts is None else (drafts, drafts),
            reported=self._reported(),
        )

    def _reported(self) -> dict[str, float]:
        """The mean length that the efficiency gives; every draft emits one token at least."""
        if self.efficiency is None or not self.window:
            return {}
        length = self.efficiency * (self.window + 1)
        can_be = length + HALF_SHARE * (self.window + 1) >= 1
        return {"mean_acceptance_length": max(1.0, length)} if can_be else {}


def fields(text: str) -> dict[str, str]:
    """The named numbers of a line: `Accepted` → `1097`."""
    return {
        name.replace("tokens tokens", "tokens"): value.strip(" ,.")
        for name, value in _FIELD.findall(text[:_MOST_READ])
    }


def state(text: str) -> LogState | None:
    """What a line `Avg prompt throughput: …` tells."""
    found = _STATE.search(text)
    if found is None:
        return None
    output, running, waiting, usage, hits = found.groups()
    return LogState(int(running), int(waiting), _share(usage), float(output), _share(hits))


def rank(prefix: str) -> str:
    """Which engine a line is of, by what stands before it; empty where there is one, or all are meant."""
    found = _RANK.search(prefix)
    return found[1] if found else ""


def totals(named: dict[str, str], at: str | None) -> Totals | None:
    """The running total that a line of V0 gives; None for every later format."""
    if "System efficiency" not in named:
        return None
    return Totals(
        at,
        count(named.get("Number of speculative tokens")),
        count(named.get("Number of draft tokens")),
        count(named.get("Number of accepted tokens")),
        count(named.get("Number of emitted tokens")),
        number(named.get("System efficiency")),
    )


def period(named: dict[str, str], at: str | None) -> LogReport | None:
    """What a line of V1 counts since the one before; None where it gives no counts that can be.

    A line that was cut, as in an issue or a write-up, may give the rate alone.
    """
    accepted = count(named.get("Accepted", named.get("Number of accepted tokens")))
    drafted = count(named.get("Drafted", named.get("Number of draft tokens")))
    if accepted is None and drafted is None and (rate := _reported(named, None)):
        return LogReport(ENGINE, _format(named), at, reported=rate)
    if accepted is None or drafted is None or accepted > drafted:
        return None
    shares = shares_in(named.get("Per-position acceptance rate", ""))
    report = LogReport(ENGINE, _format(named), at, drafted, accepted, shares=shares)
    length = _mean_length(number(named.get("Mean acceptance length")), shares)
    return _with_drafts(report._replace(reported=_reported(named, length)), length)


def count(text: str | None) -> int | None:
    """A whole number, of at most 15 digits."""
    value = number(text)
    return int(value) if value is not None and value.is_integer() else None


def number(text: str | None) -> float | None:
    """A number, none below 0."""
    text = (text or "").strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def _format(named: dict[str, str]) -> str:
    if "Accepted throughput" in named or "Avg Draft acceptance rate" in named:
        return "vLLM 0.11 or later"
    return "vLLM 0.9 or 0.10" if "Mean acceptance length" in named else "vLLM 0.8"


def _mean_length(printed: float | None, shares: tuple[float, ...]) -> float | None:
    """With the step's own token, which vLLM leaves out of it before 0.9 (vllm#17908): the shares tell."""
    if printed is None or not shares:
        return printed
    is_without = abs(sum(shares) - printed) < _APART + 0.0005 * len(shares)
    return printed + 1 if is_without else printed


def _reported(named: dict[str, str], length: float | None) -> dict[str, float]:
    printed = named.get("Avg Draft acceptance rate", named.get("Draft acceptance rate", ""))
    rate = number(printed.removesuffix("%"))
    if rate is not None and printed.endswith("%"):
        rate /= 100
    is_rate = rate is not None and rate <= 1
    found = {"acceptance_rate": rate if is_rate else None, "mean_acceptance_length": length}
    return {name: value for name, value in found.items() if value is not None}


def _with_drafts(report: LogReport, length: float | None) -> LogReport:
    accepted, drafted = report.accepted or 0, report.drafted or 0
    drafts = drafts_between(accepted, drafted, length, report.shares)
    exact = drafts is not None and drafts[0] == drafts[1]
    positions = counts_by_position(drafts[0], accepted, report.shares) if drafts and exact else None
    return report._replace(drafts=drafts, per_position=positions)


def _less(now: Totals, before: Totals | None, name: str) -> int | None:
    value: int | None = getattr(now, name)
    if before is None or value is None:
        return value
    earlier: int | None = getattr(before, name)
    return None if earlier is None else value - earlier


def _share(per_cent: str | None) -> float | None:
    return None if per_cent is None else min(float(per_cent) / 100, 1.0)
