"""Compiled loops of the policies that stand beside the guard."""

from __future__ import annotations

from typing import Any

from breakeven.drafters.compiler import kernel


@kernel
def best_windows(agreed: Any, begins: Any, first: int, times: Any, left: Any, window: Any) -> None:
    """Fill `window` with the draft tokens that the fastest steps from each position on begin with.

    agreed: right tokens of the draft at each position, shape (positions,); begins: where each request's
    positions begin, shape (n + 1,); first: output tokens before the first step; times: of a step by its draft
    tokens; left: scratch, shape (positions,), the time from a position to the end; window: shape
    (positions,). Of two that take as long the smaller. More than what is right of a draft would only cost.
    Backwards from the end of a request, this is Bellman's recursion.
    """
    for r in range(len(begins) - 1):
        end = begins[r + 1]
        for p in range(end - 1, begins[r] + first - 1, -1):
            fastest = times[0] + (left[p + 1] if p + 1 < end else 0.0)
            chosen = 0
            for k in range(1, min(agreed[p], len(times) - 1) + 1):
                time = times[k] + (left[p + k + 1] if p + k + 1 < end else 0.0)
                if time < fastest:
                    fastest, chosen = time, k
            left[p] = fastest
            window[p] = chosen


@kernel
def try_and_set(
    available: Any, agreed: Any, begins: Any, first: int, times: Any,
    start: int, trial_steps: int, set_steps: int, most_trials: int, most_doubled: int,
    at: Any, drafted: Any, counts: Any,
) -> int:  # fmt: skip
    """Write position and draft tokens of each step into `at` and `drafted`, each request's number of steps
    into `counts`; returns the number of steps. See test_and_set.py.

    available, agreed: shape (positions,), as in Looked; begins, first, times: as in best_windows; at,
    drafted: shape (positions,); counts: shape (n,). `trial` counts the windows of a test; 0 is a set phase.
    """
    n = 0
    most = len(times) - 1
    for r in range(len(counts)):
        before = n
        p = begins[r] + first
        entry = min(start, most)
        window, left, trial, direction = entry, trial_steps, 1, 1
        best, best_utility, rests = 0, 0.0, 0
        tokens, time = 0.0, 0.0
        while p < begins[r + 1]:
            k = min(window, available[p])
            emitted = min(agreed[p], k) + 1
            at[n] = p
            drafted[n] = k
            n += 1
            p += emitted
            tokens += emitted
            time += times[k]
            left -= 1
            if left > 0:
                continue
            following = 0
            if trial == 0:
                entry = best if best > 0 else min(start, most)
                best, best_utility, direction = 0, 0.0, 1
                following = entry
            else:
                utility = tokens / time
                if utility >= 1.0 and utility > best_utility:
                    best, best_utility = window, utility
                    following = window + direction
                if following == 0 or following > most:
                    following = entry - 1 if best == entry and direction > 0 else 0
                    direction = -1
            if following > 0 and trial < most_trials:
                window, left = following, trial_steps
                trial += 1
            else:
                window, trial = best, 0
                rests = rests + 1 if best == 0 else 0
                left = set_steps << min(max(rests - 1, 0), most_doubled)
            tokens, time = 0.0, 0.0
        counts[r] = n - before
    return n
