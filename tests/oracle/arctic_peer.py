"""Drafts of Arctic Inference's own cache, used as vLLM's proposer does. Run by a Python that has arctic-inference.

stdin: JSON with the settings and `requests`, pairs of prompt and output ids; stdout: per request, the draft before
each output token.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from arctic_inference.suffix_decoding import SuffixDecodingCache


def drafts(given: dict, requests: list[list[list[int]]]) -> list[list[list[int]]]:
    depth = given["max_tree_depth"]
    cache = SuffixDecodingCache(max_tree_depth=depth, max_cached_requests=given["max_cached_requests"])
    result = []
    for r, (prompt, output) in enumerate(requests):
        text = np.array(prompt + output, np.int32)
        cache.start_request(r, text[: len(prompt)])
        result.append([])
        for end in range(len(prompt), len(text)):
            draft = cache.speculate(
                r,
                text[max(0, end - depth) : end],
                max_spec_tokens=given["k"],
                max_spec_factor=given["max_spec_factor"],
                min_token_prob=given["min_token_prob"],
            )
            result[-1].append(list(draft.token_ids))
            cache.add_active_response(r, text[end : end + 1])
        cache.stop_request(r)
    return result


if __name__ == "__main__":
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps(drafts(task["settings"], task["requests"])), flush=True)
