"""How many sequences a step has, and what their caches hold: as told, else as the readings show it."""

from __future__ import annotations

import math
from statistics import mean

from breakeven.acceptance import load
from breakeven.acceptance.load import Load
from breakeven.diagnose.readings import Look, Readings
from breakeven.latency import request_latency
from breakeven.trace.run import Run


def sequences_of(read: Readings) -> float | None:
    """Mean in a step that has any; None where nothing tells: an idle moment says nothing of the busy ones."""
    if read.case is not None:
        return read.case.sequences
    run = read.candidate
    told = read.sequences or (run.meta.schedule.concurrency if run is not None else None)
    if told:
        return told
    log = read.log.status if read.log is not None else None
    found = (
        _decoding(run.meta.load, run.meta.elapsed_s) if run is not None else None,
        _looked_at(read.look) if read.look is not None else None,
        log.mean_running if log is not None else None,
    )
    return next((max(n, 1.0) for n in found if n is not None and math.isfinite(n) and n > 0), None)


def _looked_at(look: Look) -> float | None:
    """By the gauges of both pages that are not at rest; else by what was decoded between them."""
    gauges = [page.load.running for page in (look.before, look.after)]
    busy = [n for n in gauges if n is not None and math.isfinite(n) and n > 0]
    return mean(busy) if busy else _decoding(load.between(look.before.load, look.after.load), look.seconds)


def _decoding(found: Load | None, seconds: float | None) -> float | None:
    """Seconds of all sequences' steps / seconds that passed (Little's law): at least so many decode at once
    while any does, as times of rest are in it."""
    if found is None or found.token_s is None or not seconds:
        return None
    return found.token_s[0] / seconds


def context_tokens_of(read: Readings) -> float:
    """In the cache of a sequence: as told, else the mean over requests of the prompt and half the reply."""
    told = read.case.context_tokens if read.case is not None else read.context_tokens
    run = read.candidate or read.baseline
    return told or (0.0 if run is None else context_of(run))


def context_of(run: Run) -> float:
    """Mean tokens in the cache of a request while it decodes; 0 where replies do not say their tokens."""
    found = []
    for trace in run.traces():
        prompt = (trace.usage or {}).get("prompt_tokens")
        output = request_latency(trace).output_tokens if trace.error is None else None
        if isinstance(prompt, int) and output:
            found.append(prompt + output / 2)
    return mean(found) if found else 0.0
