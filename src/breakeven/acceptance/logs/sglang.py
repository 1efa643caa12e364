"""SGLang's lines of decode batches, which give ratios only."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.acceptance.logs.report import LogReport, LogState
from breakeven.acceptance.stated import Stated
from breakeven.interval import Interval

ENGINE = "sglang"
SOURCE = "SGLang log"
FORMAT = "SGLang"

LINE = re.compile(r"(Decode|Prefill) batch")
_N = r"(\d{1,9}(?:\.\d{1,6})?)"
_DECODE = re.compile(
    rf"(?:.{{0,40}}?#running-req: (\d{{1,9}}))?(?:.{{0,200}}?token usage: {_N})?"
    rf"(?:.{{0,200}}?accept len: {_N}(?:, accept rate: {_N})?)?"
    rf"(?:.{{0,300}}?[a-z]{{3,4}} graph: (True|False))?(?:.{{0,60}}?gen throughput \(token/s\): {_N})?"
    rf"(?:.{{0,60}}?#queue-req: (\d{{1,9}}))?",
    re.ASCII,
)
"""Every version prints these in this order, some of them, with others between."""
_PREFILL = re.compile(r"#new-token: (\d{1,9}), #cached-token: (\d{1,9})", re.ASCII)
_RANK = re.compile(r"\bDP(\d{1,6})\b", re.ASCII)
_HALF = 0.005 + 1e-9
"""Both ratios are printed to 2 decimals."""
_WINDOWS = tuple(
    (with_own, divisor) for with_own in (True, False) for divisor in range(2 if with_own else 1, 129)
)
"""What a rate may be: whether the step's own token is in both of its counts, and the divisor."""
RATES = (
    "SGLang's accept rate counts the step's own token in some versions and not in others, and these lines do "
    "not tell which"
)


def decode(text: str, at: str | None) -> tuple[LogState | None, LogReport | None, bool]:
    """What follows `Decode batch`: the state, the ratios where there are any that can be, and whether the
    batch ran without a graph. Of two caches the first counts."""
    found = _DECODE.match(text)
    if found is None:
        return None, None, False
    running, usage, length, rate, graph, output, waiting = found.groups()
    requests = int(running or 0)
    state = LogState(requests, int(waiting or 0), _share(usage), None if output is None else float(output))
    ratios = {} if length is None else {"mean_acceptance_length": float(length)}
    if rate is not None:
        ratios["acceptance_rate"] = float(rate)
    can_be = ratios.get("mean_acceptance_length", 0) >= 1
    report = LogReport(ENGINE, FORMAT, at, reported=ratios, weight=requests or 1) if can_be else None
    return state if running is not None else None, report, graph == "False"


def prefill(text: str) -> tuple[int, int]:
    """Of a line of a prefill: tokens computed, and tokens found in the prefix cache."""
    found = _PREFILL.search(text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def rank(prefix: str) -> str:
    """Which data-parallel rank a line is of, by what stands before it; empty where there is one."""
    found = _RANK.search(prefix) if "DP" in prefix else None
    return found[1] if found else ""


@dataclass(slots=True)
class Ratios:
    """What the lines allow to state. Every line is over so many decode batches (40, unless it was set), hence
    its weight is its requests."""

    _weight: int = 0
    _length: float = 0.0
    _lengths: tuple[float, float] = (math.inf, -math.inf)
    _rated: int = 0
    _windows: Sequence[tuple[bool, int]] = _WINDOWS
    """Those that fit every line so far."""

    def add(self, report: LogReport) -> None:
        """Takes a line in."""
        length = report.reported["mean_acceptance_length"]
        self._weight += report.weight
        self._length += report.weight * length
        self._lengths = min(self._lengths[0], length), max(self._lengths[1], length)
        rate = report.reported.get("acceptance_rate")
        if rate is not None:
            self._rated += 1
            self._windows = [one for one in self._windows if _fits(*one, length, rate)]

    def stated(self, name: str, source: str) -> Stated | None:
        """The ratio of that name with its bounds, or why there is none; None where the lines say nothing."""
        if not self._weight or name not in ("mean_acceptance_length", "acceptance_rate"):
            return None
        mean = Interval(
            self._length / self._weight, max(1.0, self._lengths[0] - _HALF), self._lengths[1] + _HALF
        )
        if name == "mean_acceptance_length":
            return Stated(name, mean, source)
        drafted = self.drafted
        if drafted is None:
            return Stated(
                name, None, source, f"not derivable: {RATES if self._rated else 'no rate is printed'}"
            )
        rates = (min(1.0, (value - 1) / drafted) for value in (mean.estimate, mean.low, mean.high))
        return Stated(name, Interval(*rates), source)

    @property
    def drafted(self) -> int | None:
        """Tokens of each draft, where one number fits; a divisor counts the own token if the rate does."""
        drafted = {divisor - 1 if with_own else divisor for with_own, divisor in self._windows}
        return drafted.pop() if len(drafted) == 1 else None


def _fits(with_own: bool, divisor: int, length: float, rate: float) -> bool:
    """Whether both ratios, before they were rounded, may have been of the same tokens."""
    top = length if with_own else length - 1
    return abs(top - rate * divisor) <= _HALF * (1 + divisor)


def _share(printed: str | None) -> float | None:
    return None if printed is None else min(float(printed), 1.0)
