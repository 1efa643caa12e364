"""read_log: what an engine's log says of speculation, read once from beginning to end in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.logs import llamacpp, sglang, tensorrt, vllm
from breakeven.acceptance.logs.deaths import Deaths
from breakeven.acceptance.logs.lines import (
    ANYWHERE,
    DIED,
    DIED_OUTRIGHT,
    LATE,
    LLAMACPP_REQUEST,
    PROOF,
    REQUEST,
    SERVING,
    SGLANG_BATCH,
    SPECULATES,
    STARTS,
    STOPPED,
    TENSORRT_COUNTS,
    VLLM_COUNTS,
    VLLM_STATE,
    WARMED_UP,
    Telling,
    marked,
)
from breakeven.acceptance.logs.report import LogReport
from breakeven.acceptance.logs.start import Start
from breakeven.acceptance.logs.status import StatusSums
from breakeven.acceptance.logs.summary import LogSummary
from breakeven.acceptance.logs.tally import SOURCES, Tally
from breakeven.acceptance.logs.text import (
    MAX_KEPT,
    blocks,
    is_logged,
    is_of_others,
    kept,
    message,
    time_of,
)

EVENT_LENGTH = 300
"""Of the first line of an event, in characters."""
V0_ACCEPTS_MORE = (
    "vLLM V0 also prints an acceptance rate ({rate}): it counts draft tokens after a rejected one; accepted "
    "here are the tokens emitted, less one per draft"
)
SINCE_START = "the first line is a total since the server's start, which this log does not show"
UNDRAFTED = "in {without} of {all} periods with output nothing was drafted, for no line tells of it"
CONTRADICTORY = "lines of speculation that contradict themselves are left out: {n}"


def read_log(chunks: Iterable[bytes]) -> LogSummary:
    """Everything that the log tells; `chunks` are its bytes, cut anywhere. Nothing in it raises."""
    reader = _Reader()
    for block in blocks(chunks):
        reader.read(block)
    return reader.summary()


class _Reader:
    def __init__(self) -> None:
        self._tally = Tally()
        self._status = StatusSums()
        self._llamacpp = llamacpp.Requests()
        self._totals: vllm.Totals | None = None
        self._engine: str | None = None
        self._lines = self._resets = self._contradictory = 0
        self._events: dict[str, tuple[int, str]] = {}
        self._start = Start()
        self._deaths = Deaths()
        self._served = self._speculates = self._shows_start = self._is_cut = False
        self._has_logger = False
        """Whether lines have the prefix of a logger: one without is then not the engine's."""
        self._place = 0
        self._at: str | None = None
        """The last time that a line gave."""
        self._notes: dict[str, str] = {}
        self._takes = {
            SGLANG_BATCH: self._sglang,
            LLAMACPP_REQUEST: self._llama,
            VLLM_COUNTS: self._vllm,
            VLLM_STATE: self._vllm_state,
            TENSORRT_COUNTS: self._tensorrt,
            SERVING: self._serving,
            STOPPED: self._stopped,
            **dict.fromkeys((DIED, DIED_OUTRIGHT), self._died),
            **dict.fromkeys(STARTS, self._begin),
        }

    def read(self, block: bytes) -> None:
        """Takes some whole lines in; each state of a progress bar is one."""
        self._lines += block.count(b"\n")
        self._is_cut = not block.endswith(b"\n")
        block = block.replace(b"\r", b"\n")
        lines = block.split(b"\n")
        self._start.begin(lines)
        self._deaths.begin(lines)
        request = -1 if self._served else _request_in(lines, 0)
        for place, tellings in marked(block):
            if 0 <= request < place:
                self._serve(request)
            was_served, self._place = self._served, place
            self._read(lines[place], tellings)
            if was_served and not self._served:
                request = _request_in(lines, place)
        if request >= 0:
            self._serve(request)
        self._start.end()
        self._deaths.end()

    def summary(self) -> LogSummary:
        """What all of it came to."""
        for report in self._llamacpp.close():
            self._tally.add(report)
        status = self._status.summary()
        counters = self._counters()
        tally = self._tally
        return LogSummary(
            engine=tally.engine or self._engine,
            format=", then ".join(tally.formats),
            lines=self._lines + self._is_cut,
            periods=tally.periods,
            counters=counters,
            stated=tally.stated(counters, SOURCES.get(tally.engine or self._engine or "", "the log")),
            first=tally.first,
            last=tally.last,
            facts=tuple(self._start.lines),
            events=self._events,
            resets=self._resets,
            notes=tuple(self._all_notes()),
            positions=tally.positions(counters),
            status=status,
            drafters=self._llamacpp.drafters,
            window=self._totals.window if self._totals else tally.window,
            death=self._deaths.last(),
        )

    def _read(self, raw: bytes, tellings: Sequence[Telling]) -> None:
        text, time = message(raw)
        text = text[:MAX_KEPT]
        if is_of_others(text):
            return
        logged = is_logged(text)
        self._has_logger = self._has_logger or logged
        for telling in tellings:
            if self._has_logger and not logged and telling.name not in ANYWHERE:
                continue
            if found := telling.search(text):
                at = time_of(text[: found.start()]) or time
                is_all = self._takes.get(telling.name, self._note)(telling.name, found, at)
                self._at = at or self._at
                if is_all:
                    return

    def _vllm(self, _: str, found: re.Match[str], at: str | None) -> bool:
        """Each of these takes in what a line tells; whether that is all of it."""
        self._engine = vllm.ENGINE
        named = vllm.fields(found.string[found.end() : MAX_KEPT])
        totals = vllm.totals(named, at)
        self._add(self._since(totals, named) if totals else vllm.period(named, at))
        return True

    def _vllm_state(self, _: str, found: re.Match[str], at: str | None) -> bool:
        if state := vllm.state(found.string):
            self._engine = vllm.ENGINE
            self._status.add(state, at, vllm.rank(found.string[: found.start()]))
            if state.running:
                self._serve(self._place)
        return False

    def _sglang(self, _: str, found: re.Match[str], at: str | None) -> bool:
        self._engine = sglang.ENGINE
        self._serve(self._place)
        rest = found.string[found.end() :]
        if found[1] == "Prefill":
            self._status.add_prompt(*sglang.prefill(rest))
            return True
        state, report, is_graphless = sglang.decode(rest, at)
        if state:
            self._status.add(state, at, sglang.rank(found.string[: found.start()]))
        if is_graphless:
            self._note("cuda_graph_unused", found, at)
        if report:
            self._tally.add(report)
        return True

    def _llama(self, _: str, found: re.Match[str], at: str | None) -> bool:
        self._engine = llamacpp.ENGINE
        if not llamacpp.LOADED.match(found[0]):
            self._serve(self._place)
        for report in self._llamacpp.read(found.string[found.start() :], at):
            self._tally.add(report)
        return True

    def _tensorrt(self, _: str, found: re.Match[str], at: str | None) -> bool:
        self._engine = tensorrt.ENGINE
        if report := tensorrt.report(found.string):
            self._add(report)
        return True

    def _since(self, totals: vllm.Totals, named: dict[str, str]) -> LogReport:
        before = self._totals
        if before is not None and totals.has_fallen_since(before):
            self._resets += 1
            before = None
        elif before is None and not self._shows_start:
            self._notes["since"] = SINCE_START
        self._totals = totals
        self._notes["v0"] = V0_ACCEPTS_MORE.format(rate=named.get("Draft acceptance rate", "none"))
        return totals.since(before)

    def _add(self, report: LogReport | None) -> None:
        if report is None:
            self._contradictory += 1
            return
        self._serve(self._place)
        self._tally.add(report)

    def _serve(self, at: int) -> None:
        """Requests are served from here on."""
        if self._served:
            return
        self._served = True
        self._start.close(at)

    def _serving(self, _: str, found: re.Match[str], at: str | None) -> bool:
        self._start.close(self._place)
        self._served = self._served and WARMED_UP not in found.string
        return True

    def _begin(self, engine: str, found: re.Match[str], at: str | None) -> bool:
        """A line of a start; of a new one, if the server has served before."""
        self._engine = engine
        self._deaths.restart(self._place)
        self._speculates = self._speculates or SPECULATES.search(found.string) is not None
        self._shows_start = self._shows_start or not self._tally.periods or not self._start.is_open
        if self._start.is_open:
            return True
        self._note("restart", found, at)
        self._resets += 1
        self._served, self._totals = False, None
        for report in self._llamacpp.close():
            self._tally.add(report)
        self._llamacpp.restart()
        self._start.open(self._place)
        return True

    def _stopped(self, _: str, found: re.Match[str], at: str | None) -> bool:
        self._deaths.stop()
        return True

    def _died(self, _: str, found: re.Match[str], at: str | None) -> bool:
        """Where it had served: of a start that fails, its lines tell."""
        if PROOF.search(found.string):
            self._serve(self._place)
        if not self._start.is_open and self._deaths.note(found.string, at, self._at, self._place):
            self._note(DIED, found, at)
        return False

    def _note(self, name: str, found: re.Match[str], at: str | None) -> bool:
        """Counts an event."""
        name = LATE.get(name, name) if self._served else name
        count, first = self._events.get(name, (0, kept(found.string, EVENT_LENGTH)))
        self._events[name] = count + 1, first
        return True

    def _counters(self) -> SpecCounters | None:
        counters = self._tally.counters(self._llamacpp.plain())
        has_output = self._engine == vllm.ENGINE and self._status.output_times
        if has_output and self._speculates and not self._tally.periods:
            return SpecCounters(None, 0, 0, 0, source=SOURCES[vllm.ENGINE])
        return counters

    def _all_notes(self) -> Iterator[str]:
        yield from self._notes.values()
        times, periods = self._status.output_times, self._tally.periods
        is_telling = self._speculates or periods
        if self._engine == vllm.ENGINE and is_telling and "v0" not in self._notes and times > periods:
            yield UNDRAFTED.format(without=times - periods, all=times)
        if self._contradictory:
            yield CONTRADICTORY.format(n=self._contradictory)


def _request_in(lines: list[bytes], begin: int) -> int:
    """The place of the first request from there on, or -1."""
    places = range(begin, len(lines))
    return next((place for place in places if REQUEST in lines[place]), -1)
