"""Parameters of the presets against what their makers publish, in billions, with a tolerance for each."""

import pytest

from breakeven.cost.presets import preset, preset_names

HF = "model card on huggingface.co"
TOTALS = {
    "smollm2-135m": (0.134515, 0.0001, "safetensors of HuggingFaceTB/SmolLM2-135M: 134,515,008"),
    "llama-3.1-8b": (8.03, 0.001, HF),
    "llama-3.1-70b": (70.6, 0.001, HF),
    "qwen3-0.6b": (0.6, 0.01, "Qwen3 technical report, arXiv 2505.09388: 0.6B"),
    "qwen3-1.7b": (1.7, 0.02, "Qwen3 technical report: 1.7B"),
    "qwen3-4b": (4.0, 0.01, f"{HF}: 4.0B"),
    "qwen3-8b": (8.2, 0.005, f"{HF}: 8.2B"),
    "qwen3-14b": (14.8, 0.005, f"{HF}: 14.8B"),
    "qwen3-32b": (32.8, 0.005, f"{HF}: 32.8B"),
    "qwen3-30b-a3b": (30.5, 0.005, f"{HF}: 30.5B in total"),
    "qwen3-235b-a22b": (235, 0.002, f"{HF}: 235B in total"),
    "mixtral-8x7b": (46.7, 0.001, "Mixtral, arXiv 2401.04088: 46.7B"),
    "olmoe-1b-7b": (6.92, 0.001, "OLMoE, arXiv 2409.02060: 6.9B"),
    "gpt-oss-20b": (20.91, 0.001, "gpt-oss model card, arXiv 2508.10925, table 1"),
    "gpt-oss-120b": (116.83, 0.001, "gpt-oss model card, table 1"),
    "glm-4.5": (355, 0.01, "zai-org/GLM-4.5 README, which counts the MTP layer"),
    "glm-4.5-air": (106, 0.01, "zai-org/GLM-4.5 README"),
    "deepseek-v3": (671, 0.001, "DeepSeek-V3, arXiv 2412.19437"),
    "kimi-k2": (1040, 0.015, "Kimi K2, arXiv 2507.20534: 1.04T"),
    "kimi-k2.5": (1040, 0.015, "the text part is that of Kimi K2"),
    "vicuna-7b": (6.74, 0.001, "LLaMA, arXiv 2302.13971: 6.7B"),
    "vicuna-13b": (13.0, 0.002, "LLaMA: 13.0B"),
    "vicuna-33b": (32.5, 0.002, "LLaMA: 32.5B"),
}
# Beside the blocks, the makers count as active the embedding table and the head, the head alone, or neither.
ACTIVE = {
    "qwen3-30b-a3b": (3.3, 0.02, ("embedding", "output")),
    "qwen3-235b-a22b": (22, 0.01, ("embedding", "output")),
    "mixtral-8x7b": (12.9, 0.002, ("embedding", "output")),
    "olmoe-1b-7b": (1.28, 0.002, ("embedding", "output")),
    "gpt-oss-20b": (3.61, 0.002, ("output",)),
    "gpt-oss-120b": (5.13, 0.002, ("output",)),
    "glm-4.5": (32, 0.01, ()),
    "glm-4.5-air": (12, 0.02, ()),
    "deepseek-v3": (37, 0.015, ("embedding", "output")),
    "kimi-k2": (32.6, 0.01, ("embedding", "output")),
    "kimi-k2.5": (32.6, 0.01, ("embedding", "output")),
}
# Bytes of the published weights, in billions.
WEIGHTS = {
    "gpt-oss-20b": (13.74, 0.003, "gpt-oss model card, table 1: a checkpoint of 12.8 GiB"),
    "gpt-oss-120b": (65.28, 0.002, "gpt-oss model card, table 1: 60.8 GiB"),
    "kimi-k2.5": (595, 0.003, "moonshotai/Kimi-K2.5: 595 GB"),
}


@pytest.mark.parametrize("name", TOTALS)
def test_total_parameters(name: str):
    published, tolerance, _source = TOTALS[name]
    assert preset(name).parameters_total() / 1e9 == pytest.approx(published, rel=tolerance)


@pytest.mark.parametrize("name", ACTIVE)
def test_active_parameters(name: str):
    published, tolerance, counted = ACTIVE[name]
    geometry = preset(name)
    sizes = geometry.parameters_by_part()
    left_out = sum(sizes[part] for part in ("embedding", "output") if part not in counted)
    assert (geometry.parameters_active() - left_out) / 1e9 == pytest.approx(published, rel=tolerance)


@pytest.mark.parametrize("name", WEIGHTS)
def test_bytes_of_published_weights(name: str):
    published, tolerance, _source = WEIGHTS[name]
    assert preset(name).weight_bytes() / 1e9 == pytest.approx(published, rel=tolerance)


def test_every_preset_is_compared():
    assert set(TOTALS) == set(preset_names())
    assert set(ACTIVE) == {name for name in TOTALS if preset(name).experts}


def test_deepseeks_layer_for_multi_token_prediction_has_its_published_size():
    """DeepSeek-V3's README: 14 B with embedding and head, which are the main model's 1.85 B."""
    geometry = preset("deepseek-v3")
    shared = 2 * geometry.parameters_by_part()["embedding"]
    assert (geometry.parameters_mtp() + shared) / 1e9 == pytest.approx(14, rel=0.05)
