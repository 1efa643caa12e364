"""Compiled loops of the guard: how likely drafts are, which of their tokens to verify, and what came of them.

A *trial* is an output token that came where there was a match: either it is what followed the match, a hit,
or it is not. Any step tells of trials, drafted or plain. And a trial says the same of every draft: if its
first j − 1 tokens are accepted, the longest match has grown by j − 1 and goes on with token j (up to the
longest match that is looked for). So the chance of a hit is counted by the length of the match alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from breakeven.drafters.compiler import kernel

SAVED, PLAIN, TRIALS, HITS, EXPECTED, RUN, TAUGHT, LENGTH, PERIOD, AVAILABLE, DRAFTED, COST = range(12)
"""Columns of the state, which has a row for each request. Times are in plain steps.

SAVED: tokens emitted − time so far; PLAIN: tokens emitted, each of which would have taken a plain step;
TRIALS, HITS, EXPECTED: trials of the request, fading, with the hits that the shared counts expected; RUN: of
hits, up to now; TAUGHT: trials that it gave to the shared counts; LENGTH, PERIOD, AVAILABLE: of the match and
the candidate draft of this step; DRAFTED: its tokens that are verified; COST: time of the step.
"""
COLUMNS = 12

SPENDING, ALLOWANCE, RATE_WEIGHT, PRIOR_WEIGHT, OWN_WEIGHT, OWN_MEMORY = range(6)
"""Of the knobs; see policy.py."""

ROW_OF = np.array([0, 0, 1, 2, 3, 4, 5, 6, 7, *[8] * 4, *[9] * 4, *[10] * 8, 11], np.int64)
"""Row of the counts by tokens of the match; the last is for all longer ones."""
ROWS = 12
PRIOR = np.array([0.23, 0.47, 0.57, 0.67, 0.70, 0.73, 0.76, 0.79, 0.83, 0.87, 0.87, 0.87])
"""Of each row. First draft tokens that were accepted after matches of 2, 4, 8 and 12 or more tokens, in
outputs of Llama-3.1-8B for GSM8K, ShareGPT, CNN and InstructCoder (SpecDecode-Bench): the means of the four
sets, and lines between. After 1 token: the mean of GSM8K and ShareGPT, of every other request."""

MOST_MEMORY = 4096.0
"""Trials of a row at most: then all of them count half."""
MOST_TAUGHT = 2048.0
"""Trials that one request gives to the shared counts."""
LONGEST_RUN = 64
"""Of hits that are counted: what goes on for longer is a copy or a loop, and tells of itself only."""

SLOT, K, WHY = range(3)
"""Rows of a step that is decided, with a column for each request: its row of the state, the draft tokens to
verify, and the reason."""
EMITTED, AGREED = 1, 2
"""Rows of a step that was run, below SLOT: tokens that came, and how many of them, from the first on, are
those of the candidate draft."""

DRAFT, NO_MATCH, UNLIKELY, HIGH_LOAD, LEDGER, COST_UNKNOWN = range(6)
"""As in reasons.Reason."""

DECISIONS, DRAFTED_TOKENS, ACCEPTED_TOKENS, SUPPRESSED, SHADOW_SCORED, SHADOW_ACCEPTED, REASONS = range(7)
"""Of the totals; from REASONS on, decisions by reason."""


@kernel
def chance(counts: Any, knobs: Any, length: int) -> float:
    """Of a hit, by the shared counts, shrunk to the prior."""
    row = ROW_OF[min(length, len(ROW_OF) - 1)]
    weight = knobs[PRIOR_WEIGHT]
    hit: float = (counts[row, 1] + weight * PRIOR[row]) / (counts[row, 0] + weight)
    return hit


@kernel
def own_odds(state: Any, slot: int, knobs: Any) -> float:
    """By how much the odds of a hit are better in this request than the shared counts say."""
    trials, hits, expected = state[slot, TRIALS], state[slot, HITS], state[slot, EXPECTED]
    weight = knobs[OWN_WEIGHT]
    more: float = (hits + weight) / (expected + weight)
    fewer: float = (trials - hits + weight) / (trials - expected + weight)
    return more / fewer


@kernel
def survive(state: Any, slot: int, counts: Any, knobs: Any, survival: Any) -> None:
    """Fill survival[j] with the chance that the draft's first j + 1 tokens are all accepted."""
    odds = own_odds(state, slot, knobs)
    length = int(state[slot, LENGTH])
    all_so_far = 1.0
    for j in range(int(state[slot, AVAILABLE])):
        p = chance(counts, knobs, length + j)
        all_so_far *= p * odds / (1.0 - p + p * odds)
        survival[j] = all_so_far


@kernel
def sift(heap: Any, at: int, size: int, survival: Any, taken: Any) -> None:
    """Put heap[at] in its place: the request whose next token is likeliest is at the top."""
    while True:
        below = 2 * at + 1
        if below >= size:
            return
        a, b = heap[below], heap[min(below + 1, size - 1)]
        if survival[b, taken[b]] > survival[a, taken[a]]:
            below, a = below + 1, b
        b = heap[at]
        if survival[b, taken[b]] >= survival[a, taken[a]]:
            return
        heap[at], heap[below] = a, b
        at = below


@kernel
def rank(state: Any, slots: Any, survival: Any, order: Any) -> None:
    """Fill order with the rows of survival that the likeliest tokens of all drafts belong to, in turn.

    A later token of a draft is never likelier than an earlier one, so what is taken of each is its begin.
    """
    taken = np.zeros(len(slots), np.int64)
    heap = np.empty(len(slots), np.int64)
    size = 0
    for i in range(len(slots)):
        if state[slots[i], AVAILABLE] > 0:
            heap[size] = i
            size += 1
    for at in range(size // 2 - 1, -1, -1):
        sift(heap, at, size, survival, taken)
    for n in range(len(order)):
        i = heap[0]
        order[n] = i
        taken[i] += 1
        if taken[i] >= state[slots[i], AVAILABLE]:
            size -= 1
            heap[0] = heap[size]
        sift(heap, 0, size, survival, taken)


@kernel
def rate_of(state: Any, slot: int, knobs: Any) -> float:
    """Tokens per plain step that the request achieves, shrunk to 1, and 1 at least."""
    plain, weight = state[slot, PLAIN], knobs[RATE_WEIGHT]
    rate: float = max((plain + weight) / (plain - state[slot, SAVED] + weight), 1.0)
    return rate


@kernel
def slack_of(state: Any, slot: int, knobs: Any) -> float:
    """Plain steps that the request can still lose: the step emits one token at least."""
    if knobs[SPENDING] == np.inf:
        return np.inf
    slack: float = state[slot, SAVED] + knobs[SPENDING] * max(state[slot, PLAIN] + 1.0, knobs[ALLOWANCE])
    return slack


@kernel
def best_of(order: Any, survival: Any, seconds: Any, rate: float, slack: float, taken: Any) -> Any:
    """How many tokens of order to verify: what gains most, that and bearable, and the most that is bearable.

    rate: of all sequences together; slack: plain steps that may be lost; taken: scratch, as many zeros.
    """
    c = len(taken)
    gain, most, best, wanted, chosen, bearable = 0.0, 0.0, 0.0, 0, 0, 0
    for n in range(1, len(order) + 1):
        i = order[n - 1]
        gain += survival[i, taken[i]]
        taken[i] += 1
        waste = seconds[c + n] / seconds[c] - 1.0
        net = gain - rate * waste
        if net > most:
            most, wanted = net, n
        if waste <= slack:
            bearable = n
            if net > best:
                best, chosen = net, n
    return wanted, chosen, bearable


@kernel
def decide(state: Any, slots: Any, seconds: Any, counts: Any, knobs: Any, ks: Any, reasons: Any) -> Any:
    """Fill ks and reasons, shape (c,), and the rows' DRAFTED and COST; returns the draft tokens
    of all, and as many as would be bearable.

    seconds: of a step of so many tokens, shape (c + most draft tokens + 1,), or (0,) where that is unknown.
    The rows have LENGTH, PERIOD and AVAILABLE of this step.
    """
    c = len(slots)
    tokens, longest, slack, rate = 0, 0, np.inf, 0.0
    for i in range(c):
        slot = slots[i]
        available = int(state[slot, AVAILABLE])
        tokens += available
        longest = max(longest, available)
        slack = min(slack, slack_of(state, slot, knobs))
        rate += rate_of(state, slot, knobs)
        state[slot, DRAFTED], state[slot, COST] = 0.0, 1.0
        ks[i] = 0
        reasons[i] = COST_UNKNOWN if available > 0 else NO_MATCH
    tokens = min(tokens, len(seconds) - 1 - c)
    if tokens <= 0:
        return 0, 0
    survival = np.empty((c, longest))
    for i in range(c):
        survive(state, slots[i], counts, knobs, survival[i])
    order = np.empty(tokens, np.int64)
    rank(state, slots, survival, order)
    bearable: int
    wanted, chosen, bearable = best_of(order, survival, seconds, rate, slack, np.zeros(c, np.int64))
    for n in range(chosen):
        ks[order[n]] += 1
    for n in range(wanted):
        reasons[order[n]] = LEDGER
    for i in range(c):
        slot = slots[i]
        state[slot, DRAFTED], state[slot, COST] = ks[i], seconds[c + chosen] / seconds[c]
        if ks[i] > 0:
            reasons[i] = DRAFT
        elif reasons[i] == COST_UNKNOWN:
            alone = c > 1 and pays_alone(state, slot, survival[i], seconds, c, knobs)
            reasons[i] = HIGH_LOAD if alone else UNLIKELY
    return chosen, bearable


@kernel
def pays_alone(state: Any, slot: int, survival: Any, seconds: Any, c: int, knobs: Any) -> bool:
    """Whether a draft gains this request of c more than it delays it, whatever it does to the others."""
    gain, rate = 0.0, rate_of(state, slot, knobs)
    for n in range(1, min(int(state[slot, AVAILABLE]), len(seconds) - 1 - c) + 1):
        gain += survival[n - 1]
        if gain > rate * (seconds[c + n] / seconds[c] - 1.0):
            return True
    return False


@kernel
def teaches(state: Any, slot: int, run: int) -> bool:
    """Whether the request's next trial goes to the shared counts.

    Not where the match lies within the run of hits that is going on: there the text repeats what it just
    repeated, a loop. Nor where one request has given so much that it would speak for all.
    """
    looping = run >= min(int(state[slot, PERIOD]), LONGEST_RUN)
    return not looping and state[slot, TAUGHT] < MOST_TAUGHT


@kernel
def teach(counts: Any, length: int, hit: float) -> None:
    """Count a trial."""
    row = ROW_OF[min(length, len(ROW_OF) - 1)]
    if counts[row, 0] >= MOST_MEMORY:
        counts[row] *= 0.5
    counts[row, 0] += 1.0
    counts[row, 1] += hit


@kernel
def credit(
    state: Any, slot: int, counts: Any, knobs: Any, emitted: int, agreed: int, totals: Any
) -> float:  # fmt: skip
    """Account for a step that emitted so many tokens; returns the plain steps that it saved.

    agreed: how many of them, from the first on, are those of the candidate draft, verified or not.
    """
    available, drafted = int(state[slot, AVAILABLE]), int(state[slot, DRAFTED])
    hits = min(agreed, available)
    trials = hits + int(hits < min(emitted, available))
    length, run = int(state[slot, LENGTH]), int(state[slot, RUN])
    for j in range(trials):
        hit = 1.0 if j < hits else 0.0
        kept = knobs[OWN_MEMORY]
        expected = chance(counts, knobs, length + j)
        state[slot, TRIALS] = kept * state[slot, TRIALS] + 1.0
        state[slot, HITS] = kept * state[slot, HITS] + hit
        state[slot, EXPECTED] = kept * state[slot, EXPECTED] + expected
        if teaches(state, slot, run):
            teach(counts, length + j, hit)
            state[slot, TAUGHT] += 1.0
        run = run + 1 if j < hits else 0
    if trials < emitted:
        run = run + emitted - trials if 0 < available == hits else 0
    saved: float = emitted - state[slot, COST]
    state[slot, RUN] = run
    state[slot, SAVED] += saved
    state[slot, PLAIN] += emitted
    totals[DRAFTED_TOKENS] += drafted
    totals[ACCEPTED_TOKENS] += min(hits, drafted)
    totals[SUPPRESSED] += available - drafted
    totals[SHADOW_SCORED] += trials
    totals[SHADOW_ACCEPTED] += hits
    state[slot, AVAILABLE], state[slot, DRAFTED], state[slot, COST] = 0.0, 0.0, 1.0
    return saved


@kernel
def decide_batch(state: Any, step: Any, seconds: Any, counts: Any, knobs: Any, totals: Any) -> Any:
    """decide, of the slots of the step, shape (3, c); fills its K and WHY, and counts the reasons."""
    drafted, bearable = decide(state, step[SLOT], seconds, counts, knobs, step[K], step[WHY])
    totals[DECISIONS] += step.shape[1]
    for reason in step[WHY]:
        totals[REASONS + reason] += 1
    return drafted, bearable


@kernel
def credit_batch(state: Any, step: Any, counts: Any, knobs: Any, totals: Any) -> float:
    """credit, of each request of the step, shape (3, c). Returns their sum."""
    saved = 0.0
    for i in range(step.shape[1]):
        saved += credit(state, step[SLOT, i], counts, knobs, step[EMITTED, i], step[AGREED, i], totals)
    return saved


@kernel
def guard_requests(
    length: Any, period: Any, available: Any, agreed: Any, begins: Any, first: int, seconds: Any,
    counts: Any, knobs: Any, at: Any, drafted: Any, steps: Any, totals: Any,
) -> int:  # fmt: skip
    """Step through recorded requests, one at a time, as a policy would.

    length, period, available, agreed: of the longest match if the context ends before each output token, and
    of its draft, shape (positions,); begins: where each request's positions begin, shape (n + 1,); first:
    output tokens before its first step; seconds: as in decide, of one sequence. Writes position and draft
    tokens of each step into at and drafted, shape (positions,), and each request's number of steps into
    steps, shape (n,). Returns the number of all.
    """
    n = 0
    step = np.zeros((3, 1), np.int64)
    for r in range(len(steps)):
        before = n
        state = np.zeros((1, COLUMNS))
        p, end = begins[r] + first, begins[r + 1]
        while p < end:
            state[0, LENGTH], state[0, PERIOD], state[0, AVAILABLE] = length[p], period[p], available[p]
            decide_batch(state, step, seconds, counts, knobs, totals)
            emitted = min(min(agreed[p], step[K, 0]) + 1, end - p)
            at[n] = p
            drafted[n] = step[K, 0]
            n += 1
            credit(state, 0, counts, knobs, emitted, min(agreed[p], emitted), totals)
            p += emitted
        steps[r] = n - before
    return n
