"""TrialResult and the replies of both sides → what the page's template shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from breakeven.latency import request_latency
from breakeven.report import figures, plots
from breakeven.report.definitions import DEFINITIONS
from breakeven.report.evidence import Evidence
from breakeven.report.jsonout import unpaired
from breakeven.report.outputs import diverged
from breakeven.report.plain import NO_COUNTS
from breakeven.report.provenance import fact_rows, side_rows, speculation_rows
from breakeven.report.standalone import KeyFigure
from breakeven.report.text import line
from breakeven.report.timeline import timelines
from breakeven.trace.records import RequestTrace
from breakeven.trial.result import TrialResult
from breakeven.units import ABSENT, count, duration, ratio, share

MAX_TABLE_ROWS = 200


def context(result: TrialResult, baseline: Evidence, candidate: Evidence) -> dict[str, Any]:
    """The variables of `trial.html.j2`."""
    return {
        **_words(result),
        **_table(result),
        **_drawn(result, baseline, candidate),
        **_facts(result, baseline, candidate),
    }


def _words(result: TrialResult) -> dict[str, Any]:
    comparison, verdict = result.comparison, result.verdict
    speedup = comparison.speedup
    return {
        "result": result,
        "model": line(result.model),
        "workload": line(result.workload),
        "started": result.started.replace("T", " ").removesuffix("Z") + " UTC",
        "outcome": verdict.outcome,
        "headline": figures.headline(verdict, speedup),
        "reason": figures.verdict_sentence(verdict).partition(": ")[2],
        "next_command": verdict.next_command,
        "key_figures": list(_key_figures(result)),
        "notes": [line(note, 1000) for note in dict.fromkeys((*result.confounders, *comparison.warnings))],
        "lossless": figures.lossless_sentence(comparison.lossless),
        "drift_sentence": figures.drift_sentence(comparison.drift),
        "confidence": share(comparison.confidence),
        "floor": share(comparison.floor),
        "definitions": DEFINITIONS,
    }


def _key_figures(result: TrialResult) -> Iterator[KeyFigure]:
    comparison, total = result.comparison, figures.total(result)
    if comparison.speedup is not None and total is not None:
        low, high = ratio(comparison.speedup.low), ratio(comparison.speedup.high)
        yield KeyFigure("speedup", "Speedup", ratio(comparison.speedup.estimate), f"{low} to {high}")
        yield KeyFigure(
            "tokens_per_s", "Tokens per second", f"{total.baseline} → {total.candidate}", "geometric mean"
        )
        yield _maybe("acceptance_rate", "Acceptance", total.acceptance)
        yield _maybe("draft_share", "Draft share", total.draft_share)
    same = comparison.lossless
    yield KeyFigure(
        "lossless",
        "Identical replies",
        f"{same.identical} of {same.compared}" if same.compared else ABSENT,
        "" if same.compared else line(same.reason or "no two replies could be compared"),
    )
    yield KeyFigure(
        "stopped_after", "Stopped after", count(result.stopped_after, "repeat"), line(result.stop_reason)
    )
    sides = (result.baseline, result.candidate)
    why = [f"the {side.name} {side.reload_absent}" for side in sides if side.reload_s is None]
    yield KeyFigure(
        "reload",
        "Reload",
        " / ".join(duration(side.reload_s) for side in sides),
        f"{ABSENT}: {', '.join(why)}" if why else "",
    )


def _maybe(key: str, name: str, cell: str | figures.Absent) -> KeyFigure:
    if isinstance(cell, figures.Absent):
        return KeyFigure(key, name, cell.text, line(cell.why))
    return KeyFigure(key, name, cell)


def _table(result: TrialResult) -> dict[str, Any]:
    rows = figures.rows(result)
    return {
        "rows": rows[:MAX_TABLE_ROWS],
        "rows_left_out": max(0, len(rows) - MAX_TABLE_ROWS),
        "total": figures.total(result),
        "absences": figures.absences(rows[:MAX_TABLE_ROWS]),
        "unpaired": unpaired(result),
    }


def _drawn(result: TrialResult, baseline: Evidence, candidate: Evidence) -> dict[str, Any]:
    comparison = result.comparison
    traces = by_request(baseline), by_request(candidate)
    sampled = samples(baseline), samples(candidate)
    return {
        "forest": plots.forest(comparison),
        "distribution": plots.distribution(comparison, *sampled),
        "timelines": timelines(comparison.prompts, *traces, sampled),
        "drift": plots.drift(*sampled),
        "diverged": diverged(*traces) if comparison.lossless.compared else [],
    }


def by_request(evidence: Evidence) -> dict[tuple[str, int], RequestTrace]:
    """Traces by prompt id and repeat."""
    return {(trace.prompt_id, trace.repeat): trace for trace in evidence.traces}


def samples(evidence: Evidence) -> list[plots.Sample]:
    """The replies that have a TPOT; failed requests are left out."""
    return [
        plots.Sample(trace.prompt_id, trace.repeat, trace.block, tpot_s)
        for trace in evidence.traces
        if trace.error is None and (tpot_s := request_latency(trace).tpot_s)
    ]


def _facts(result: TrialResult, baseline: Evidence, candidate: Evidence) -> dict[str, Any]:
    missing = [
        f"The {name} run is not shown: {line(side.missing, 500)}"
        for name, side in (("baseline", baseline), ("candidate", candidate))
        if side.missing is not None
    ]
    return {
        "provenance": [*side_rows(result), *fact_rows(baseline.provenance, candidate.provenance)],
        "missing": missing,
        "speculation": list(speculation_rows(result)),
        "uncounted": [
            f"{side.name}: {NO_COUNTS}"
            for side in (result.baseline, result.candidate)
            if side.acceptance is None
        ],
    }
