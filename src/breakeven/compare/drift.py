"""Whether the machine itself became faster or slower: the baseline's last block against its first."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from breakeven.compare.bootstrap import interval
from breakeven.compare.outcome import outcome
from breakeven.compare.pairs import Replies
from breakeven.compare.records import Drift

MIN_PROMPTS = 2
"""One prompt's two replies cannot tell drift from noise."""


def drift(baseline: Replies, floor: float, alpha: float, seed: int = 0) -> Drift:
    """Per prompt TPOT of the first block / of the last, combined over prompts as the speedup is.

    Significant by the rule that calls a speedup faster or slower. A steady drift falls on both sides alike
    when they are asked in ABBA order, so drift alone does not spoil a comparison.
    """
    logs: defaultdict[int, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for reply in baseline.values():
        if reply.tpot_s is not None:
            logs[reply.trace.block][reply.trace.prompt_id].append(float(np.log(reply.tpot_s)))
    if len(logs) < 2:
        return Drift(None, False)
    first, last = logs[min(logs)], logs[max(logs)]
    prompts = [prompt_id for prompt_id in first if prompt_id in last]
    if len(prompts) < MIN_PROMPTS:
        return Drift(None, False)
    ratios = np.array([[np.mean(first[prompt_id]) - np.mean(last[prompt_id])] for prompt_id in prompts])
    ratio = interval(ratios, alpha, seed)
    return Drift(ratio, outcome(ratio, floor) in ("faster", "slower"))
