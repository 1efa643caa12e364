"""llama.cpp's lines of a finished request, and the running totals of its drafters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.logs.report import NOTHING, LogReport
from breakeven.acceptance.logs.rounding import counts_by_position, drafts_between, shares_in
from breakeven.acceptance.steps import emitted_of, steps_of

ENGINE = "llama.cpp"
SOURCE = "llama.cpp log"
ACCEPTANCE = re.compile(
    r"draft acceptance(?: rate)? = +(?:-?nan|[\d.]{1,12}) \( *(\d{1,15}) accepted / *(\d{1,15}) generated\)"
    r"(?:, mean (?:acceptance length|len) = +(\d{1,9}\.\d\d))?"
    r"(?:, acc\w*(?: rate)? per pos\w* = \(([\d., ]{0,4000})\))?",
    re.ASCII,
)
OUTPUT = re.compile(r"  eval time = +[\d.]{1,15} ms / +(\d{1,15}) tokens", re.ASCII)
STATISTICS = re.compile(
    r"statistics +([\w-]{1,40}): +#calls(?:\(b,g,a\))? = +[\d ]{1,60}, +#gen drafts = +(\d{1,15})"
    r", +#acc drafts = +\d{1,15}, +#gen tokens = +(\d{1,15}), +#acc tokens = +(\d{1,15})",
    re.ASCII,
)
LOADED = re.compile(r"adding speculative implementation|speculative decoding context initialized")
"""A start with speculation."""
LINE = re.compile(
    r"draft acceptance(?: rate)? =|  eval time =|statistics +[\w-]{1,40}: +#calls|" + LOADED.pattern
)
"""What Requests reads."""
_MOST_DRAFTERS = 64


@dataclass(slots=True)
class Requests:
    """The lines of one server, put together to one report for each request that drafted.

    A request's lines come together: its output (`eval time`), its acceptance, then the drafters' totals.
    """

    _is_on: bool = False
    """Whether a line tells of speculation."""
    _plain_steps: int = 0
    """Decode steps of the requests that drafted nothing."""
    _output: int | None = None
    _open: LogReport | None = None
    _totals: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """By drafter: drafts, drafted and accepted tokens since the start, …"""
    _before: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """… as they stood at the request before."""

    def read(self, text: str, at: str | None) -> Iterator[LogReport]:
        """Takes a line in; gives the request before it, once it is whole."""
        if found := OUTPUT.search(text):
            yield from self.close()
            self._output = int(found[1])
        elif found := ACCEPTANCE.search(text):
            output, self._output = self._output, None
            yield from self.close()
            self._is_on = True
            self._open = _request(found, at, output)
        elif found := STATISTICS.search(text):
            self._is_on = True
            if len(self._totals) < _MOST_DRAFTERS or found[1] in self._totals:
                self._totals[found[1]] = (int(found[2]), int(found[3]), int(found[4]))
        elif LOADED.search(text):
            self._is_on = True

    def close(self) -> Iterator[LogReport]:
        """Gives the last request, if it drafted."""
        if self._output is not None:
            self._plain_steps += emitted_of(self._output) or 0
            self._output = None
        if self._open is not None:
            yield self._with_totals(self._open)
            self._open = None
        self._before = dict(self._totals)

    def plain(self) -> SpecCounters | None:
        """The counts of the requests that drafted nothing; None for a server without speculation."""
        steps = self._plain_steps
        return SpecCounters(steps, 0, 0, 0, (), SOURCE, steps) if self._is_on else None

    @property
    def drafters(self) -> tuple[str, ...]:
        """Of the last start, the one that drafted most tokens first."""
        return tuple(sorted(self._totals, key=lambda name: -self._totals[name][1]))

    def restart(self) -> None:
        """Forgets the totals: they begin anew."""
        self._totals, self._before = {}, {}

    def _with_totals(self, request: LogReport) -> LogReport:
        """The drafts that the drafters counted meanwhile, where their tokens are those of the request."""
        if request.drafts is not None:
            return request
        risen = [
            tuple(now - then for now, then in zip(after, self._before.get(name, (0, 0, 0)), strict=True))
            for name, after in self._totals.items()
        ]
        drafts, drafted, accepted = (sum(one[index] for one in risen) for index in range(3))
        if not risen or (drafted, accepted) != (request.drafted, request.accepted) or drafts < 1:
            return request
        return request._replace(drafts=(drafts, drafts))


def _request(found: re.Match[str], at: str | None, output: int | None) -> LogReport | None:
    accepted, drafted = int(found[1]), int(found[2])
    if accepted > drafted:
        return None
    shares = shares_in(found[4] or "")
    length = float(found[3]) if found[3] else None
    drafts = drafts_between(accepted, drafted, length) if length else _from_tokens(drafted)
    emitted = emitted_of(output)
    steps = steps_of(emitted, accepted, drafts[0] if drafts else None)
    exact = drafts is not None and drafts[0] == drafts[1]
    return LogReport(
        ENGINE,
        "llama.cpp",
        at,
        drafted,
        accepted,
        drafts,
        steps,
        emitted,
        shares,
        counts_by_position(drafts[0], accepted, shares) if drafts and exact else None,
        {"mean_acceptance_length": length} if length else NOTHING,
    )


def _from_tokens(drafted: int) -> tuple[int, int] | None:
    """Without a mean length: nothing drafted is no draft."""
    return (0, 0) if drafted == 0 else None
