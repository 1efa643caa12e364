"""A diagnosis in words: what the terminal and the JSON say alike."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.acceptance.counters import DEFINITIONS as RATIOS
from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.stated import Stated
from breakeven.diagnose.diagnosis import Diagnosis
from breakeven.diagnose.evidence import Drafting, Evidence, Traffic
from breakeven.explain.records import Observation
from breakeven.report.explain_words import bounds_words
from breakeven.report.text import named_build
from breakeven.units import ABSENT, between, change, count, duration, milliseconds, share

DEFINITIONS = {
    **RATIOS,
    "by_position": "drafts of which at least so many tokens were accepted / drafts",
    "step_with": (
        "TPOT with speculation × tokens per step; where those are not counted, within 1 + draft share × "
        "tokens of a draft × acceptance rate"
    ),
    "cost_per_token": "mean step in plain steps / tokens per step: below 1 it pays",
}
TITLES = {
    "acceptance_rate": "acceptance rate",
    "mean_acceptance_length": "mean acceptance length",
    "tokens_per_step": "tokens per step",
    "draft_share": "draft share",
}
IN_PER_CENT = ("acceptance_rate", "draft_share")
HEALTHY = "Healthy: nothing in it points to a loss."
SLOWER = "It is slower, and no cause of that shows in what was given."
NO_FAULT = "No fault shows; whether it pays is not known: that takes two speeds."
IS_OFF = "The server started without speculation: there is none to diagnose."
NOTHING_SEEN = "Nothing was said of speculation: no counts of it are in what was given."


def heading(evidence: Evidence) -> str:
    """What serves, and how it drafts: `vllm 0.16, ngram, k 5, n-grams of 4 tokens`."""
    engine = " ".join(filter(None, (evidence.engine, evidence.version))) or "engine not known"
    model = evidence.case.model if evidence.case is not None else None
    device = evidence.case.device if evidence.case is not None else None
    named = " on ".join(filter(None, (model, device)))
    return ", ".join(filter(None, (named, named_build(engine), drafting_words(evidence.drafting))))


def drafting_words(drafting: Drafting) -> str:
    """`ngram, k 5, n-grams of 2 to 4 tokens`; what is not known is left out."""
    if drafting.is_off:
        return "started without speculation"
    method = "drafter not known" if drafting.is_assumed else drafting.method
    window = f"k {drafting.k}" if drafting.k is not None else "window not known"
    low, high = drafting.min_n, drafting.max_n
    if low is None and high is None:
        return f"{method}, {window}"
    lengths = str(high) if low == high else f"{low or 'any'} to {high or 'any'}"
    return f"{method}, {window}, n-grams of {lengths} tokens"


def answer(made: Diagnosis) -> str:
    """What was seen, and the most telling cause; where there is none, what that tells."""
    evidence = made.evidence
    seen = _seen(evidence)
    refused = evidence.refused
    said = [f"{refused} Nothing is concluded from the two speeds."] if refused else []
    said += [f"The trial: {evidence.verdict}"] if evidence.verdict else []
    said += [f"{seen[0].upper()}{seen[1:]}."] if seen else []
    if made.findings:
        first = made.findings[0]
        number = "Most telling" if len(made.findings) > 1 else "One finding"
        said.append(f"{number}: {first.title[0].lower()}{first.title[1:]} (confidence {first.confidence}).")
    elif not refused:
        said.append(_without_findings(made))
    return " ".join(said)


def _without_findings(made: Diagnosis) -> str:
    """A server is called healthy only where its speed was compared, and is no less."""
    if is_idle(made.evidence):
        return idle_sentence(made.evidence)
    if made.is_slower is not None:
        return SLOWER if made.is_slower else HEALTHY
    if made.evidence.drafting.is_off:
        return IS_OFF
    return NO_FAULT if any(one.value for one in made.evidence.stated) else NOTHING_SEEN


def is_idle(evidence: Evidence) -> bool:
    """Whether counts are there, and nothing was drafted."""
    counters = evidence.counters
    return counters is not None and counters.drafted_tokens == 0


def idle_sentence(evidence: Evidence) -> str:
    """That nothing was drafted, and whether anything was there to draft."""
    traffic = evidence.traffic
    within = "" if traffic is None or traffic.seconds is None else f" within {duration(traffic.seconds)}"
    tokens = None if traffic is None else traffic.load.output_tokens
    work = "" if tokens is None else f" while {count(tokens, 'token')} came out"
    if tokens == 0:
        work = ": no token came out, so that nothing can be said of it"
    return f"Nothing was drafted{within}{work}."


def _seen(evidence: Evidence) -> str:
    """The change of speed and the acceptance, as far as they are known."""
    said = []
    if evidence.observations:
        said.append(f"speed {speed_words(evidence.observations)}")
    known = {one.name: one for one in evidence.stated if one.value is not None}
    for name in ("acceptance_rate", "draft_share", "tokens_per_step"):
        if name in known:
            said.append(f"{TITLES[name]} {value_words(known[name])}")
    if len(said) > 1 and evidence.observations:
        return f"{said[0]} with {', '.join(said[1:])}"
    return ", ".join(said)


def speed_words(observations: tuple[Observation, ...]) -> str:
    """`−25.9 % to −8.8 %`, of decode speed."""
    speedups = [one.baseline_tpot_s / one.candidate_tpot_s for one in observations]
    low, high = change(min(speedups)), change(max(speedups))
    return low if low == high else f"{low} to {high}"


def value_words(one: Stated) -> str:
    """`38.8 %`, `1.67`, or `17.0 % to 31.0 %`; a dash for what is not derivable."""
    if one.value is None:
        return ABSENT
    if one.name in IN_PER_CENT:
        return bounds_words((one.value.low, one.value.high))
    return between(one.value.low, one.value.high)


def one_source(evidence: Evidence) -> str | None:
    """Of all ratios that are known, where it is one and the same, and there are several."""
    sources = [one.source for one in evidence.stated if one.value is not None]
    return sources[0] if len(sources) > 1 and len(set(sources)) == 1 else None


def stated_sentence(one: Stated, with_source: bool = True) -> str:
    """A ratio beside its definition and its source, or why there is none."""
    if one.value is None:
        return f"{TITLES[one.name]}: {one.why}"
    source = f" ({one.source})" if with_source else ""
    return f"{TITLES[one.name]} {value_words(one)}: {one.definition}{source}"


def live_step(evidence: Evidence) -> str | None:
    """What a step took by the servers' own clocks, where they say."""
    drafts = evidence.counters is not None and bool(evidence.counters.drafted_tokens)
    sides = (
        (evidence.baseline_traffic, " without speculation"),
        (evidence.traffic, " with speculation" if drafts else ""),
    )
    said = [words for traffic, side in sides if (words := _gap_words(traffic, side)) is not None]
    return f"Step by the server's clock: {', '.join(said)}" if said else None


def _gap_words(traffic: Traffic | None, side: str) -> str | None:
    timed = traffic.load.token_s if traffic is not None else None
    if timed is None or not timed[1]:
        return None
    seconds, gaps = timed
    mean_of = f"mean of {count(round(gaps), 'gap')}, one per step and request"
    return f"{milliseconds(seconds / gaps)} ms{side} ({mean_of})"


def live_load(evidence: Evidence) -> str | None:
    """What the server worked meanwhile."""
    traffic = evidence.traffic
    if traffic is None:
        return None
    load = traffic.load
    counts = ((load.requests, "request"), (load.output_tokens, "output token"))
    said = [count(number, noun) for number, noun in counts if number is not None]
    gauges = ((load.running, "running"), (load.waiting, "waiting"))
    said += [f"{number:g} {noun}" for number, noun in gauges if number is not None]
    said += [f"{share(load.kv_usage)} of the KV cache in use"] if load.kv_usage is not None else []
    within = "" if traffic.seconds is None else f" within {duration(traffic.seconds)}"
    return f"Work of the server{within}: {', '.join(said)}" if said else None


def log_sentences(evidence: Evidence) -> Iterator[str]:
    """What each log is, in a sentence."""
    for name, log in (("Baseline's log", evidence.baseline_log), ("Log", evidence.log)):
        if log is None:
            continue
        times = [period.at for period in (log.first, log.last) if period is not None and period.at]
        when = f", from {times[0]} to {times[-1]}" if times else ""
        form = log.format or log.engine or "of no engine that is known"
        reports = f"{count(log.periods, 'report')} of speculation"
        yield f"{name}: {form}, {count(log.lines, 'line')}, {reports}{when}"


def notes(made: Diagnosis) -> tuple[str, ...]:
    """All that qualifies the evidence, each once."""
    evidence = made.evidence
    logs = [log.notes for log in (evidence.baseline_log, evidence.log) if log is not None]
    warnings = evidence.explanation.warnings if evidence.explanation is not None else ()
    return tuple(dict.fromkeys((*evidence.notes, *(note for each in logs for note in each), *warnings)))


def other_sentence(counters: SpecCounters) -> str:
    """What another source counted of the same time."""
    rate = counters.acceptance_rate
    counts = (counters.accepted_tokens, counters.drafted_tokens)
    said = " of ".join("unknown" if number is None else f"{number:,}" for number in counts)
    return f"{counters.source or 'another source'}: {said} drafted tokens accepted, {share(rate)}"
