"""How many distinct experts the tokens of a step wake: what a mixture of experts reads to verify them."""

from __future__ import annotations

import math
from statistics import NormalDist

from breakeven.cost.geometry import Experts
from breakeven.errors import UsageError

REUSE = 0.5
"""Share of a token's experts that earlier tokens of its sequence in the step have woken, beyond chance.

Chosen on the published speedups of benchmarks/published.py, where three rows tell. Direct measurements are
lower: neighbouring tokens of real text share 0.38 of their experts where chance gives 0.12, so 0.3 (Cohere,
"Mixture-of-experts models get more from speculative decoding"); verifying 6 to 8 tokens of one sequence
instead of as many sequences, on a CPU with 4 of 32 experts, takes 0.35 to 0.40."""
REUSE_RANGE = (0.3, 0.7)
"""Within which the truth may lie: the direct measurement, and as far on the other side.

One reuse does not fit every number of tokens: the interval of a measured one holds how far it fails to, see
fitted_reuse in routing.py."""


def effective_tokens(tokens: float, reuse: float) -> float:
    """Independent tokens that wake as many experts as `tokens` neighbours do: 1 + (tokens − 1)(1 − reuse).

    The first token reuses nothing. Raises UsageError for fewer than one token, or a reuse outside 0 to 1.
    """
    if not tokens >= 1:
        raise UsageError(f"{tokens} tokens in a step: give at least 1")
    if not 0 <= reuse <= 1:
        raise UsageError(f"a reuse of {reuse}: give 0 (independent tokens) to 1 (the same experts)")
    return 1 + (tokens - 1) * (1 - reuse)


def distinct_experts(experts: Experts, tokens: float, sequences: int = 1, reuse: float = REUSE) -> float:
    """Expected distinct routed experts of one layer in a step of `sequences` × `tokens` tokens.

    E · (1 − (1 − K/E)^n) with n = sequences · effective_tokens(tokens, reuse): each of n independent tokens
    leaves one expert asleep with probability 1 − K/E (the coverage of MoESD, arXiv 2505.19645). Tokens of one
    sequence reuse experts, sequences are independent of each other.

    Limits: every expert is taken as equally likely. A router that favours some wakes fewer, so this is high
    for many tokens, as it is where sequences are alike. Raises UsageError as effective_tokens does, and for
    fewer than one sequence.
    """
    if sequences < 1:
        raise UsageError(f"{sequences} sequences in a step: give at least 1")
    independent = sequences * effective_tokens(tokens, reuse)
    asleep = float((1 - experts.top_k / experts.count) ** independent)
    return experts.count * (1 - asleep)


def busiest_device_experts(experts: Experts, distinct: float, devices: int) -> float:
    """Expected distinct experts of the device that wakes most, when whole experts lie on `devices` devices.

    mean + σ · z, the expected largest of as many normal values: mean = distinct / devices; σ² of a draw
    without return, mean · (1 − 1/devices) · (1 − distinct / E); z the quantile at (devices − 3/8) /
    (devices + 1/4) (Blom 1958, "Statistical estimates and transformed beta-variables"). Within 15 % of
    draws at random; at most all experts of a device, or all distinct ones.
    """
    mean = distinct / devices
    variance = mean * (1 - 1 / devices) * max(1 - distinct / experts.count, 0.0)
    fullest = mean + math.sqrt(variance) * NormalDist().inv_cdf((devices - 0.375) / (devices + 0.25))
    return min(fullest, experts.count / devices, distinct)
