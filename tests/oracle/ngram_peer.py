"""Drafts of vLLM's ngram function and of transformers' prompt lookup. Run by a Python that has both.

stdin: JSON, a list of contexts with settings; stdout: the list of their drafts, as its last line.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import torch
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator
from vllm.v1.spec_decode.ngram_proposer import _find_longest_matched_ngram_and_propose_tokens


def vllm(case: dict) -> list[int]:
    return _find_longest_matched_ngram_and_propose_tokens(
        origin_tokens=np.array(case["context"], np.int32),
        min_ngram=case["min_n"],
        max_ngram=case["max_n"],
        max_model_len=case["max_model_len"],
        k=case["k"],
    ).tolist()


def transformers(case: dict) -> list[int]:
    generator = PromptLookupCandidateGenerator(
        eos_token_id=torch.tensor(case["eos"]) if case["eos"] else None,
        num_output_tokens=case["k"],
        max_matching_ngram_size=case["max_n"],
        max_length=case["max_length"],
    )
    ids, _ = generator.get_candidates(torch.tensor([case["context"]]))
    return ids[0, len(case["context"]) :].tolist()


DRAFTERS = {"vllm-ngram": vllm, "hf-prompt-lookup": transformers}

if __name__ == "__main__":
    print(json.dumps([DRAFTERS[case["name"]](case) for case in json.load(sys.stdin)]))
