"""The stateless n-gram drafters, written once more from their specification: slow, for one context."""

from __future__ import annotations

from collections.abc import Sequence


def vllm(context: Sequence[int], min_n: int, max_n: int, k: int, max_model_len: int) -> list[int]:
    """vLLM's ngram: longest n first, then the earliest place."""
    for n in range(min(max_n, len(context) - 1), min_n - 1, -1):
        for i in range(len(context) - n):
            if context[i : i + n] == context[len(context) - n :]:
                return list(context[i + n : i + n + min(k, max(0, max_model_len - len(context)))])
    return []


def hugging_face(
    context: Sequence[int], max_n: int, k: int, eos: Sequence[int], max_length: int
) -> list[int]:
    """transformers' prompt lookup: the leftmost window that anything follows."""
    if max_length <= len(context) + 1:
        return []
    for n in range(min(max_n, len(context) - 1), 0, -1):
        for i in range(len(context) - n + 1):
            draft = context[i + n : i + n + k]
            if context[i : i + n] == context[len(context) - n :] and len(draft):
                ends = [j for j, token in enumerate(draft) if token in eos]
                return list(draft[: ends[0]] if ends else draft)
    return []


def llama_simple(context: Sequence[int], n: int, k: int, room: int) -> list[int]:
    """llama.cpp's ngram-simple: `tokens` is all but the token sampled last; backwards, never at place 0."""
    tokens, sampled = context[:-1], context[-1]
    if room <= 0 or len(tokens) <= n + k + 1:
        return []
    pattern = [*tokens[len(tokens) - n + 1 :], sampled]
    place = len(tokens) - n - 1
    while place > 0 and list(tokens[place : place + n]) != pattern:
        place -= 1
    draft = list(tokens[place + n :][:k]) if place > 0 else []
    return draft[:room] if len(draft) >= n else []
