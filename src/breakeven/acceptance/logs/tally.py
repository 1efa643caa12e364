"""Tally: sums over the reports of a log, with bounds where its lines round."""

from __future__ import annotations

from collections.abc import Sequence

from breakeven.acceptance.combine import total
from breakeven.acceptance.counters import MAX_COUNT, SpecCounters
from breakeven.acceptance.logs import llamacpp, sglang, tensorrt, vllm
from breakeven.acceptance.logs.report import NOTHING, LogReport
from breakeven.acceptance.logs.rounding import HALF_SHARE
from breakeven.acceptance.logs.summary import LogPeriod
from breakeven.acceptance.stated import Stated, stated
from breakeven.interval import Interval

SOURCES = {one.ENGINE: one.SOURCE for one in (vllm, sglang, llamacpp, tensorrt)} | {"tgi": "TGI log"}
"""Source of the counts of a log, by engine."""
_MOST_AT_ONCE = 4096
"""Reports of one time that make one period; no server has more ranks."""


class Tally:
    """Takes reports in, one after the other; what it holds does not grow with them."""

    def __init__(self) -> None:
        self.engine: str | None = None
        """Of the last report."""
        self.formats: list[str] = []
        self.periods = 0
        self._first: list[LogReport] = []
        self._last: list[LogReport] = []
        self._counters: SpecCounters | None = None
        self._drafts: tuple[int, int] | None = (0, 0)
        self._positions: list[_Share] | None = []
        self._ratios = sglang.Ratios()
        self._rates: tuple[float, float] | None = None
        """Acceptance rates that were printed without counts, the lowest and the highest."""

    def add(self, report: LogReport) -> None:
        """Takes one in. Reports of the same time, as of several ranks, make one period."""
        self.engine = report.engine
        if report.format not in self.formats:
            self.formats.append(report.format)
        self._note_period(report)
        if report.drafted is None:
            if "mean_acceptance_length" in report.reported:
                self._ratios.add(report)
            elif (rate := report.reported.get("acceptance_rate")) is not None:
                low, high = self._rates or (rate, rate)
                self._rates = min(low, rate), max(high, rate)
            return
        counters = _counters(report)
        self._counters = counters if self._counters is None else self._counters + counters
        if (self._counters.drafted_tokens or 0) >= MAX_COUNT:
            self._counters = SpecCounters(source=SOURCES[report.engine])
        self._add_bounds(report)

    def counters(self, plain: SpecCounters | None) -> SpecCounters | None:
        """The sums. `plain`: of requests that drafted nothing, where the log tells of each request."""
        counters = self._counters
        if plain is None or (self.periods and counters is None):
            return counters
        return total((counters, plain))

    def stated(self, counters: SpecCounters | None, source: str) -> tuple[Stated, ...]:
        """Every ratio: from the counts, else with bounds, else why there is none."""
        known = stated(counters or SpecCounters(source=source))
        return tuple(one if one.value else self._bounded(one, counters) for one in known)

    def positions(self, counters: SpecCounters | None) -> tuple[Interval, ...]:
        """By position, the share of drafts that got so far."""
        if counters is not None and counters.drafts and counters.accepted_per_position is not None:
            exact = (count / counters.drafts for count in counters.accepted_per_position)
            return tuple(Interval(share, share, share) for share in exact)
        return tuple(share.interval() for share in self._positions or ())

    @property
    def window(self) -> int | None:
        """Tokens of each draft, where the ratios fit one number alone."""
        return self._ratios.drafted

    @property
    def first(self) -> LogPeriod | None:
        """The first period."""
        return _period(self._first)

    @property
    def last(self) -> LogPeriod | None:
        """The last period."""
        return _period(self._last)

    def _note_period(self, report: LogReport) -> None:
        now = self._last
        if now and report.at is not None and report.at == now[-1].at and len(now) < _MOST_AT_ONCE:
            now.append(report)
            return
        self.periods += 1
        self._last = [report]
        self._first = self._first or self._last

    def _add_bounds(self, report: LogReport) -> None:
        if report.drafts is None or self._drafts is None:
            self._drafts = self._positions = None
            return
        low, high = report.drafts
        has_begun = self._drafts[1] > 0
        self._drafts = self._drafts[0] + low, self._drafts[1] + high
        if not high or self._positions is None:
            return
        if not has_begun:
            self._positions = [_Share() for _ in report.shares]
        if len(self._positions) != len(report.shares):
            self._positions = None
            return
        for position, share in zip(self._positions, report.shares, strict=True):
            position.add(share, low, high)

    def _bounded(self, none: Stated, counters: SpecCounters | None) -> Stated:
        """A ratio whose drafts are only bounded, or that is only printed."""
        low, high = self._drafts or (0, 0)
        if counters is None or not low:
            return self._ratios.stated(none.name, none.source) or self._printed(none)
        if none.name == "mean_acceptance_length" and counters.accepted_tokens is not None:
            lengths = (1 + counters.accepted_tokens / n for n in ((low + high) / 2, high, low))
            return Stated(none.name, Interval(*lengths), none.source)
        if none.name == "draft_share" and counters.steps:
            shares = (min(1.0, n / counters.steps) for n in ((low + high) / 2, low, high))
            return Stated(none.name, Interval(*shares), none.source)
        return none

    def _printed(self, none: Stated) -> Stated:
        """Between the lowest and the highest that was printed, as it was printed."""
        if none.name != "acceptance_rate" or self._rates is None:
            return none
        low, high = self._rates
        return Stated(none.name, Interval((low + high) / 2, low, high), none.source)


class _Share:
    """A share of drafts, over periods with so many drafts each."""

    def __init__(self) -> None:
        self._fewest = self._most = 0.0
        self._drafts = (0, 0)
        self._least, self._greatest = 1.0, 0.0

    def add(self, share: float, low: int, high: int) -> None:
        least, greatest = max(0.0, share - HALF_SHARE), min(1.0, share + HALF_SHARE)
        self._fewest += low * least
        self._most += high * greatest
        self._drafts = self._drafts[0] + low, self._drafts[1] + high
        self._least, self._greatest = min(self._least, least), max(self._greatest, greatest)

    def interval(self) -> Interval:
        low, high = self._drafts
        least = max(self._least, self._fewest / high) if high else 0.0
        greatest = min(self._greatest, self._most / low) if low else 1.0
        return Interval((least + greatest) / 2, least, greatest)


def _counters(report: LogReport) -> SpecCounters:
    drafts = report.drafts[0] if report.drafts and report.drafts[0] == report.drafts[1] else None
    return SpecCounters(
        report.steps,
        drafts,
        report.drafted,
        report.accepted,
        () if report.drafted == 0 else report.per_position,
        SOURCES[report.engine],
        report.emitted,
    )


def _period(reports: Sequence[LogReport]) -> LogPeriod | None:
    """One period of the reports of one time."""
    if not reports:
        return None
    reported = reports[0].reported if len(reports) == 1 else NOTHING
    return LogPeriod(reports[0].at, total(map(_counters, reports)) or SpecCounters(), reported)
