"""Drafts of Arctic Inference's own cache, used as vLLM's proposer uses it. Run by a Python that has
arctic-inference.

stdin: JSON, a list of tasks with `settings` (the names of VllmSuffixSettings) and `requests` (pairs of
prompt and output ids); stdout: for each task and request, the draft before each output token.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from arctic_inference.suffix_decoding import SuffixDecodingCache


def drafts(settings: dict[str, Any], requests: list[list[list[int]]]) -> list[list[list[int]]]:
    cache = SuffixDecodingCache(settings["max_tree_depth"], settings["max_cached_requests"])
    return [one_request(cache, name, *request, settings) for name, request in enumerate(requests)]


def one_request(
    cache: SuffixDecodingCache, name: int, prompt: list[int], output: list[int], settings: dict[str, Any]
) -> list[list[int]]:
    text = np.array(prompt + output, np.int32)
    found = []
    cache.start_request(name, text[: len(prompt)])
    for end in range(len(prompt), len(text)):
        draft = cache.speculate(
            name,
            text[max(0, end - settings["max_tree_depth"]) : end],
            max_spec_tokens=settings["k"],
            max_spec_factor=settings["max_spec_factor"],
            min_token_prob=settings["min_token_prob"],
        )
        found.append(list(draft.token_ids))
        cache.add_active_response(name, text[end : end + 1])
    cache.stop_request(name)
    return found


if __name__ == "__main__":
    print(json.dumps([drafts(**task) for task in json.load(sys.stdin)]))
