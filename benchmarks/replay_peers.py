"""The peers of benchmarks/replay.py, run by the Python that has them: each engine's own code, stepped here.

    PYTHON benchmarks/replay_peers.py PEER IDS.npy PROMPT_TOKENS REPEATS

IDS.npy has the shape (requests, tokens). Prints one JSON object: steps, drafted, accepted, the CPU seconds of
the best repeat, the version. The compilation of vLLM's function is not counted. Needs nothing of breakeven.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any

import numpy as np

UNLIMITED = 1 << 30
Counts = tuple[int, int, int]
"""Steps, drafted and accepted tokens."""


def vllm_ngram(requests: Any, prompt: int) -> Callable[[], Counts]:
    """vLLM's compiled function in a compiled loop: nothing of its Python path is counted. n 2–4, k 5."""
    from numba import njit
    from vllm.v1.spec_decode.ngram_proposer import _find_longest_matched_ngram_and_propose_tokens as find

    @njit
    def loop(requests, first):  # type: ignore[no-untyped-def]
        steps, drafted, accepted = 0, 0, 0
        for ids in requests:
            p = first
            while p < len(ids):
                draft = find(ids[:p], 2, 4, UNLIMITED, 5)
                a = 0
                while a < len(draft) and p + a < len(ids) and draft[a] == ids[p + a]:
                    a += 1
                steps, drafted, accepted = steps + 1, drafted + len(draft), accepted + a
                p += a + 1
        return steps, drafted, accepted

    loop(requests[:1], prompt + 1)
    return lambda: loop(requests, prompt + 1)


def transformers(requests: Any, prompt: int) -> Callable[[], Counts]:
    """transformers' class with its defaults: n 1–2, k 10."""
    import torch
    from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

    torch.set_num_threads(1)
    generator = PromptLookupCandidateGenerator(max_length=UNLIMITED)

    def propose(ids: Any, p: int) -> list[int]:
        found, _ = generator.get_candidates(torch.from_numpy(ids[None, :p].astype(np.int64)))
        return found[0, p:].tolist()  # type: ignore[no-any-return]

    return lambda: stepped(requests, prompt, propose)


def arctic(requests: Any, prompt: int, cached: int) -> Callable[[], Counts]:
    """Arctic Inference's compiled trees, called as vLLM's proposer calls them, with vLLM's defaults."""
    from arctic_inference.suffix_decoding import SuffixDecodingCache

    def run() -> Counts:
        cache = SuffixDecodingCache(max_tree_depth=24, max_cached_requests=cached)
        total = np.zeros(3, np.int64)
        for r, ids in enumerate(requests):
            cache.start_request(r, ids[:prompt])
            known = [prompt]

            def propose(ids: Any, p: int, r: int = r, known: list[int] = known) -> Any:
                cache.add_active_response(r, ids[known[0] : p])
                known[0] = p
                return cache.speculate(
                    r, ids[p - 24 : p], max_spec_tokens=24, max_spec_factor=1.0, min_token_prob=0.1
                ).token_ids

            total += stepped([ids], prompt, propose)
            cache.add_active_response(r, ids[known[0] :])
            cache.stop_request(r)
        steps, drafted, accepted = total.tolist()
        return steps, drafted, accepted

    return run


def stepped(requests: Any, prompt: int, propose: Callable[[Any, int], Any]) -> Counts:
    steps = drafted = accepted = 0
    for ids in requests:
        p = prompt + 1
        while p < len(ids):
            draft = propose(ids, p)
            a = 0
            while a < len(draft) and p + a < len(ids) and draft[a] == ids[p + a]:
                a += 1
            steps, drafted, accepted = steps + 1, drafted + len(draft), accepted + a
            p += a + 1
    return steps, drafted, accepted


PEERS: dict[str, tuple[str, Callable[[Any, int], Callable[[], Counts]]]] = {
    "vllm-ngram": ("vllm", vllm_ngram),
    "transformers": ("transformers", transformers),
    "arctic own tree": ("arctic-inference", lambda ids, prompt: arctic(ids, prompt, 0)),
    "arctic global tree": ("arctic-inference", lambda ids, prompt: arctic(ids, prompt, 10_000)),
}


def version_of(package: str) -> str:
    """As installed, or as the package itself says where it was not installed by pip."""
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return f"{package} {import_module(package).__version__}"


def main() -> None:
    name, path, prompt, repeats = sys.argv[1:]
    package, make = PEERS[name]
    run = make(np.load(path), int(prompt))
    best_s = float("inf")
    for _ in range(int(repeats)):
        began_s = time.process_time()
        steps, drafted, accepted = run()
        best_s = min(best_s, time.process_time() - began_s)
    answer = {"steps": steps, "drafted": drafted, "accepted": accepted, "cpu_s": best_s}
    print(json.dumps({**answer, "version": version_of(package)}))


if __name__ == "__main__":
    main()
