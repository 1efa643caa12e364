"""The size of a head, beside published ones."""

from __future__ import annotations

import pytest

from breakeven.cost.presets import preset
from breakeven.eagle.plan.assumed import STATES_UTILISATION, TRAINING_UTILISATION
from breakeven.eagle.plan.head import HeadSize, head_of
from breakeven.errors import UsageError

APERTUS = HeadSize(4096, 21_504, 32, 8, 128, 32_000, 131_072)
"""thomaskiefer/EAGLE3-Apertus-8B-Instruct-2509, by its card: 513 million parameters."""
KIMI = HeadSize(7168, 12_288, 64, 64, 128, 163_840, 163_840)
"""lightseekorg/kimi-k2.5-eagle3, by the card of a head aligned with it: 3 billion with the embedding."""
WIDE = HeadSize(4096, 14_336, 32, 8, 128, 32_000, 32_000)
"""The larger head of SpecForge's measurements."""
H200 = 989e12


def test_as_many_parameters_as_a_published_head():
    assert APERTUS.trained() == pytest.approx(513e6, rel=0.005)
    assert KIMI.trained() + 163_840 * 7168 == pytest.approx(3.18e9, rel=0.01)


def test_one_layer_counted_by_hand():
    tiny = HeadSize(
        hidden=4, ff=8, heads=2, kv_heads=1, head_dim=3, draft_vocabulary=10, target_vocabulary=20
    )
    q, k, v, o = 8 * 6, 8 * 3, 8 * 3, 6 * 4
    assert tiny.fused() == 12 * 4
    assert tiny.stepped() == q + k + v + o + 3 * 4 * 8 + 4 * 10
    assert tiny.frozen() == (20 + 10) * 4
    assert tiny.flops_per_token(5) == 6 * (tiny.fused() + 5 * tiny.stepped())


def test_the_head_of_a_preset():
    llama, kimi, moe = (
        head_of(preset(name), 32_000) for name in ("llama-3.1-8b", "kimi-k2.5", "qwen3-30b-a3b")
    )
    assert (llama.hidden, llama.ff, llama.heads, llama.kv_heads, llama.head_dim) == (4096, 14_336, 32, 8, 128)
    assert (kimi.ff, kimi.heads, kimi.kv_heads, kimi.head_dim) == (18_432, 64, 64, 128)
    assert moe.ff > 0
    assert head_of(preset("llama-3.1-8b"), 0).draft_vocabulary == 128_256
    tied = head_of(preset("qwen3-4b"), 32_000)
    assert tied.frozen() == (151_936 + 32_000) * 2560, "training holds two tables of one"


def test_a_draft_vocabulary_larger_than_the_targets():
    with pytest.raises(UsageError, match=r"type --draft-vocabulary 32000, or 0"):
        head_of(preset("llama-3.1-8b"), 200_000)


def test_utilisations_are_what_published_runs_come_to():
    kimi_run_s = 16 * 28 * 3600
    trained = KIMI.flops_per_token(4) * 6e9 / (kimi_run_s * H200)
    states = preset("kimi-k2.5").flops_per_token() * 6e9 / (kimi_run_s * H200)
    step = WIDE.flops_per_token(7) * 2944 / 0.11571 / H200
    assert trained == pytest.approx(TRAINING_UTILISATION.value.estimate, abs=0.005)
    assert step == pytest.approx(TRAINING_UTILISATION.value.high, abs=0.005)
    assert states == pytest.approx(STATES_UTILISATION.value.estimate, abs=0.005)
