"""What a plan takes where nobody measured it here: each figure with its range and its source."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.interval import Interval


@dataclass(frozen=True, slots=True)
class Assumed:
    """One figure."""

    name: str
    value: Interval
    unit: str
    """Empty for a ratio."""
    source: str


SAMPLES = Assumed(
    "samples",
    Interval(500_000, 300_000, 600_000),
    "",
    "general heads are trained on 320,000 (Llama 4, lmsys.org) to 600,000 (Kimi-K2.5, TorchSpec) and more; "
    "the maintainers of speculators name 500,000 (speculators#751); a plan counts with the estimate alone",
)
TOKENS_PER_SAMPLE = Assumed(
    "tokens of a sample",
    Interval(2048, 1024, 10_000),
    "tokens",
    "1,024 is the mean in speculators' offline tutorial, 2,048 where a recipe cuts samples by default, "
    "10,000 TorchSpec's Kimi-K2.5 run (6 billion in 600,000)",
)
REPLY_SHARE = Assumed(
    "share of them in replies",
    Interval(0.7, 0.4, 1.0),
    "",
    "assumed; a RECORD tells it",
)
EPOCHS = Assumed(
    "epochs",
    Interval(2, 1, 3),
    "",
    "two or three with 500,000 samples (speculators#751), two with 1.4 million (SpecBundle); a run with "
    "fewer samples takes more",
)
STATES_UTILISATION = Assumed(
    "share of peak BF16 operations in the pass for states",
    Interval(0.24, 0.08, 0.72),
    "",
    "0.24: 6 billion tokens of Kimi-K2.5 on 16 H200 in 28 h (TorchSpec), waiting included; 0.72: large steps "
    "of vLLM on an H100 (arXiv 2601.11580); the low end, a third of the estimate, is assumed",
)
TRAINING_UTILISATION = Assumed(
    "share of peak BF16 operations in training",
    Interval(0.17, 0.06, 0.41),
    "",
    "0.17: a head of 2 billion parameters for Kimi-K2.5, 4 steps, on 16 H200 in the same 28 h; 0.41: steps "
    "alone of a head of width 4096 on one H200 (SpecForge, eagle3-sequence-packing.md, 25,400 tokens/s); the "
    "low end, a third of the estimate, is assumed",
)
MEMORY_SHARE = Assumed(
    "share of a device's memory that can be used", Interval(0.92, 0.92, 0.92), "", "vLLM's default"
)
