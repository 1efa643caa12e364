"""The data of a head: prompts answered by the target, as token ids with a loss mask, and the draft
vocabulary.

sources → chats → (replies by the target itself, or recorded ones) → samples.parquet and vocabulary.json.
"""

from __future__ import annotations

from breakeven.eagle.data.samples import SAMPLES, Sample, read_samples
from breakeven.eagle.data.vocabulary import VOCABULARY, Vocabulary, read_vocabulary

__all__ = ["SAMPLES", "VOCABULARY", "Sample", "Vocabulary", "read_samples", "read_vocabulary"]
