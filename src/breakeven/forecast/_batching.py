"""The compiled loop that serves some requests, step after step."""

from __future__ import annotations

from typing import Any

from breakeven.drafters.compiler import lean_kernel


@lean_kernel
def makespan(
    order: Any,
    prompts: Any,
    begins: Any,
    drafted: Any,
    accepted: Any,
    empty_s: Any,
    cached_s: Any,
    prefill_s: float,
    step_s: float,
    drafted_step_s: float,
    token_s: float,
    places: int,
    budget: int,
    batch: Any,
) -> float:
    """Seconds until the last request has left. The rules are those of simulate.py.

    order: which requests are served, in turn; prompts: their tokens, shape (requests,); begins: where each
    request's steps begin, shape (requests + 1,); drafted, accepted: of each step; empty_s, cached_s: as
    Surface, by sequences and by tokens per sequence − 1; places: requests in the batch at most; budget:
    tokens of a step at most, by which the prefill is cut into chunks; batch: scratch, shape (3, places).
    """
    at, end, cached = batch[0], batch[1], batch[2]
    now = 0.0
    decoding = 0
    cached_tokens = 0
    turn = 0
    left = prompts[order[0]] if len(order) else 0
    while decoding or turn < len(order):
        sequences = decoding
        tokens = sequences
        longest = 0
        cached_before = cached_tokens
        j = 0
        while j < decoding:
            step = at[j]
            tokens += drafted[step]
            longest = max(longest, drafted[step])
            if step + 1 < end[j]:
                at[j] = step + 1
                cached[j] += accepted[step] + 1
                cached_tokens += accepted[step] + 1
                j += 1
            else:
                decoding -= 1
                cached_tokens -= cached[j]
                at[j], end[j], cached[j] = at[decoding], end[decoding], cached[decoding]
        room = budget - tokens
        free = places - sequences
        prefilled = 0
        while turn < len(order) and free > 0 and room > 0:
            request = order[turn]
            chunk = min(left, room)
            left -= chunk
            room -= chunk
            free -= 1
            prefilled += chunk
            if left == 0:
                if begins[request] < begins[request + 1]:
                    at[decoding], end[decoding] = begins[request], begins[request + 1]
                    cached[decoding] = prompts[request]
                    cached_tokens += prompts[request]
                    decoding += 1
                turn += 1
                left = prompts[order[turn]] if turn < len(order) else 0
        if sequences == 0:
            sequences, tokens = 1, 1
        whole = min(tokens // sequences, empty_s.shape[1] - 1)
        share = tokens / sequences - whole
        a, b = empty_s[sequences, whole - 1], empty_s[sequences, whole]
        c, d = cached_s[sequences, whole - 1], cached_s[sequences, whole]
        now += a + (b - a) * share + (c + (d - c) * share) * cached_before
        now += prefill_s * prefilled + step_s + token_s * longest
        if longest > 0:
            now += drafted_step_s
    return now
