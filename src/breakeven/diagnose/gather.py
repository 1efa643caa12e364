"""Readings → Evidence: the best source of each thing, and what the others say beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from breakeven.acceptance import load
from breakeven.acceptance.combine import complete, total
from breakeven.acceptance.counters import DEFINITIONS, SpecCounters
from breakeven.acceptance.logs.summary import LogSummary
from breakeven.acceptance.meter import FOREIGN, RESET, Asked
from breakeven.acceptance.prometheus import SOURCES, between, is_reset
from breakeven.acceptance.stated import Stated, stated
from breakeven.acceptance.steps import ratios
from breakeven.compare.degenerate import is_degenerate
from breakeven.diagnose.batch import context_tokens_of, sequences_of
from breakeven.diagnose.evidence import GIVEN, Drafting, Evidence, Replies, Traffic
from breakeven.diagnose.readings import Look, Readings
from breakeven.diagnose.replies import replies
from breakeven.engines.dialects import NAMES, dialect
from breakeven.explain.explain import explain
from breakeven.explain.places import of_runs
from breakeven.interval import Interval
from breakeven.latency.asked import asked_of
from breakeven.trace.run import Run

LOG_FACTS = "log_facts"
"""Field of run.json: what the log told of the start, where a trial has read it."""
NO_SOURCE = "not derivable: nothing that was given counts it"
ANEW = "not derivable: the server started anew between the two readings, and its counts with it"
NOT_ON_PAGE = "not derivable: its page counts nothing of speculation"
NOW = (
    "the server was looked at now, which is not the time of the run: what it counts is not compared with the "
    "run's counts"
)
SHARED = "others used the server in that time: what its page counted is of them too, and is left out"
LONGER = "the log is of a longer time than these counts: its own are not compared with them"
MOST_BESIDE = 1.2
"""Drafted tokens of a log / of a run, up to which it is of the run's time. A warm-up adds a few requests to
dozens, another run about as many again: anything between tells the two apart."""
OFF = "its page counts nothing of speculation: it is off, or this engine does not count it there"
OFF_ON_VLLM = "speculation is off on this server: where it is on, vLLM counts it from the start"
UNTOLD = f"nothing says how the server drafts: taken for {Drafting().method}; type --method NAME"


def gather(read: Readings) -> Evidence:
    """All that follows from the readings without judging. Raises RunFormatError where a run is damaged."""
    engine = _engine(read)
    mine, baseline = _facts(read.log, read.candidate), _facts(read.baseline_log, read.baseline)
    sources = sources_of(read)
    told = _stated(read, sources)
    own = read.replies or (replies(read.candidate) if read.candidate else None)
    case = read.case
    return Evidence(
        drafting=_drafting(read, engine, sources),
        engine=engine,
        version=_version(read, mine),
        counters=next(iter(sources), None),
        stated=told,
        other_sources=sources[1:],
        resets=_resets(read),
        ranks=read.look.after.ranks if read.look else 1,
        silent_ranks=read.look.after.silent_ranks if read.look else 0,
        baseline_log=read.baseline_log,
        log=read.log,
        baseline_facts=baseline,
        facts=mine,
        traffic=_traffic(read.candidate, read.look),
        baseline_traffic=_traffic(read.baseline),
        replies=own,
        baseline_replies=replies(read.baseline) if read.baseline else None,
        observations=read.observations,
        case=case,
        explanation=explain(case) if case is not None else None,
        cost=read.cost,
        sequences=sequences_of(read),
        context_tokens=context_tokens_of(read),
        replayed=read.replayed,
        refused=read.refused,
        verdict=read.verdict,
        places={**of_runs(read.baseline, read.candidate), **read.places},
        notes=(*read.notes, *_notes(read, sources), *_left_out(own), *_left_aside(read, told)),
    )


def _drafting(read: Readings, engine: str | None, sources: tuple[SpecCounters, ...]) -> Drafting:
    """As told; a server that drafts is not off, whatever was said of its start."""
    told = read.told.drafting(engine)
    page = read.look.after if read.look else None
    is_off = told.is_off or (
        told.is_assumed and page is not None and page.engine == "vllm" and page.spec is None
    )
    return replace(told, is_off=is_off and not any(one.drafted_tokens for one in sources))


def _engine(read: Readings) -> str | None:
    named = (
        read.engine,
        read.candidate.meta.server.engine if read.candidate else None,
        read.look.after.engine if read.look else None,
        read.log.engine if read.log else None,
        read.baseline_log.engine if read.baseline_log else None,
    )
    return next(filter(None, named), None)


def _version(read: Readings, facts: Mapping[str, str]) -> str | None:
    named = (
        read.version,
        read.candidate.meta.server.version if read.candidate else None,
        read.look.version if read.look else None,
        facts.get("version"),
    )
    return next(filter(None, named), None)


def _facts(log: LogSummary | None, run: Run | None) -> dict[str, str]:
    """Of the log, else as a trial kept them of it."""
    if log is not None and log.engine in NAMES:
        return dialect(log.engine).facts(log.facts)
    kept: Any = run.meta.extra.get(LOG_FACTS) if run is not None else None
    if not isinstance(kept, Mapping):
        return {}
    return {name: value for name, value in kept.items() if isinstance(value, str)}


def sources_of(read: Readings) -> tuple[SpecCounters, ...]:
    """Counts of the same time, the best first: of the requests, else of the page, else of the log."""
    own = _own(read)
    known = [counters for counters in (own, _on_page(read, own)) if counters is not None]
    logged = read.log.counters if read.log else None
    if logged is not None and (not known or not _is_longer(read, known[0], logged)):
        known.append(logged)
    return tuple(known)


def _own(read: Readings) -> SpecCounters | None:
    """Of the candidate's requests: as a comparison chose them, unless it had the page's alone."""
    run = read.candidate
    if run is None or (read.counters is not None and read.counters != run.meta.counters):
        return read.counters
    return counted(run)


def _on_page(read: Readings, own: SpecCounters | None) -> SpecCounters | None:
    """What the page counted in the same time, where `own` does not hold it."""
    if read.candidate is None:
        return None if read.look is None else _looked(read.look)
    page = _page_of(read.candidate)
    return None if own is None or page is None or page.source in own.source else page


def _looked(look: Look) -> SpecCounters | None:
    """Counted between the two pages. Counters that only the second has began at 0 meanwhile."""
    is_first = look.before.spec is None and not is_reset(look.before, look.after)
    return look.after.spec if is_first else between(look.before, look.after)


def _is_longer(read: Readings, mine: SpecCounters, logged: SpecCounters) -> bool:
    """Whether the log is of more than the time of these counts: a look's always is."""
    if read.candidate is None:
        return True
    return (logged.drafted_tokens or 0) > MOST_BESIDE * (mine.drafted_tokens or 0)


def counted(run: Run) -> SpecCounters | None:
    """What the replies counted, without those that failed or end in a loop; else what the page did of all,
    unless others used the server too.

    Decode steps that a page does not count follow from its output tokens.
    """
    real = [one for one in run.traces() if one.error is None and not is_degenerate(one)]
    work = _worked(run)
    return complete(total(one.speculation for one in real), _page_of(run), work.output_tokens, work.requests)


def _page_of(run: Run) -> SpecCounters | None:
    """What the page counted in the run's windows; None where it is of others' requests too."""
    return None if _is_shared(run) else run.meta.counters


def _is_shared(run: Run) -> bool:
    return any(why.startswith(FOREIGN) for why in run.meta.warnings)


def _worked(run: Run) -> Asked:
    """What the server worked in the run's windows; no tokens where a reply does not say its own."""
    work, asked = run.meta.load, asked_of(run.traces())
    if work is None or asked.output_tokens is None:
        return Asked(output_tokens=None)
    return Asked(work.requests or asked.requests, work.output_tokens)


def _stated(read: Readings, sources: tuple[SpecCounters, ...]) -> tuple[Stated, ...]:
    """As counted or stated by a source; what none tells is as the user says."""
    given = _given(read)
    return tuple(
        one if one.value is not None else given.get(one.name, one) for one in _by_sources(read, sources)
    )


def _by_sources(read: Readings, sources: tuple[SpecCounters, ...]) -> tuple[Stated, ...]:
    """Of the first source; a log and a page may state ratios without counts."""
    log, look = read.log, read.look
    if sources and (log is None or sources[0] is not log.counters):
        traffic = _traffic(None, look) if read.candidate is None and read.counters is None else None
        return stated(sources[0]) if traffic is None else ratios(sources[0], traffic.load)
    if log is not None and any(one.value for one in log.stated):
        return log.stated
    said = {one.name: one for one in (look.after.reported if look is not None else ())}
    if look is not None and not said:
        return _none_on_page(look)
    return tuple(said.get(name, Stated(name, None, "", NO_SOURCE)) for name in DEFINITIONS)


def _none_on_page(look: Look) -> tuple[Stated, ...]:
    """Why nothing was counted between its readings."""
    source = SOURCES.get(look.after.engine, "")
    if is_reset(look.before, look.after):
        return tuple(Stated(name, None, source, ANEW) for name in DEFINITIONS)
    if look.after.spec is None:
        return tuple(Stated(name, None, source, NOT_ON_PAGE) for name in DEFINITIONS)
    return stated(look.after.spec if not look.after.by_rank else SpecCounters(source=source))


def _given(read: Readings) -> dict[str, Stated]:
    """By name: bounds that were typed, else those over all observations of what is known of every one."""
    found = {}
    for name in ("acceptance_rate", "draft_share"):
        seen = [getattr(one, name) for one in read.observations]
        typed = getattr(read, name)
        bounds = [typed] if typed is not None else seen
        if bounds and all(bounds):
            low, high = min(ends[0] for ends in bounds), max(ends[1] for ends in bounds)
            found[name] = Stated(name, Interval((low + high) / 2, low, high), GIVEN)
    return found


def _left_aside(read: Readings, found: tuple[Stated, ...]) -> Iterator[str]:
    """What was typed and not taken, as it is counted."""
    typed = {"acceptance_rate": read.acceptance_rate, "draft_share": read.draft_share}
    for one in found:
        if typed.get(one.name) is not None and one.source != GIVEN:
            yield f"the {one.name.replace('_', ' ')} that was typed is left aside: {one.source} tells it"


def _resets(read: Readings) -> int:
    """Between two readings once at most, as no more can be told; of a run's, its warnings tell."""
    look, runs = read.look, (read.candidate, read.baseline)
    fell = look is not None and is_reset(look.before, look.after)
    in_runs = sum(run is not None and RESET in run.meta.warnings for run in runs)
    return int(fell) + in_runs + (read.log.resets if read.log else 0)


def _traffic(run: Run | None, look: Look | None = None) -> Traffic | None:
    """While the run asked, else while the server was looked at."""
    if run is not None and run.meta.load is not None:
        asked = asked_of(run.traces())
        return Traffic(run.meta.load, asked.requests, asked.output_tokens, run.meta.elapsed_s)
    if run is not None or look is None:
        return None
    return Traffic(load.between(look.before.load, look.after.load), None, None, look.seconds)


def _left_out(own: Replies | None) -> Iterator[str]:
    """That counts of the replies are not of all of them."""
    if own is not None and own.count_drafts and own.looping:
        n, answered = len(own.looping), own.requests - own.failed
        yield f"{n} of {answered} replies end in a loop: what they count is left out of the acceptance"


def _notes(read: Readings, sources: tuple[SpecCounters, ...]) -> Iterator[str]:
    yield from read.look.after.notes if read.look else ()
    if read.look and read.look.after.spec is None and not read.look.after.reported:
        yield OFF_ON_VLLM if read.look.after.engine == "vllm" else OFF
    if read.look and read.candidate:
        yield NOW
    if read.candidate and read.candidate.meta.counters is not None and _is_shared(read.candidate):
        yield SHARED
    logged = read.log.counters if read.log else None
    if logged is not None and sources[0] is not logged and _is_longer(read, sources[0], logged):
        yield LONGER
    drafting = _drafting(read, None, sources)
    if drafting.is_assumed and not drafting.is_off:
        yield UNTOLD
