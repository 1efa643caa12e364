from dataclasses import replace
from typing import Any

import pytest

from breakeven.eagle.export.vllm import Vllm
from tests.unit.eagle.export.heads import SHAPE, of_layers, source

pytest.importorskip("speculators")
pytestmark = pytest.mark.eagle
MADE = Vllm()


def flattened(config: dict[str, Any]) -> dict[str, Any]:
    """What vLLM 0.32.0 makes of it: the layer's fields, and these beside them."""
    own = ("draft_vocab_size", "norm_before_fc", "fc_norm", "norm_output", "eagle_aux_hidden_state_layer_ids")
    return {**config["transformer_layer_config"], **{name: config[name] for name in own}}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"fc_norm": True, "norm_output": True},
        {"norm_before_fc": True},
        {"decoder": "qwen3"},
        {"layers": (1, 3, 8)},
    ],
)
def test_vllm_builds_what_was_trained(change: dict[str, Any]):
    given = source(replace(SHAPE, **change))
    assert MADE.shape(MADE.config(given, 3), given) == given.shape


def test_a_norm_that_is_not_said_would_be_taken_for_true():
    given = source()
    config = MADE.config(given, 3)
    assert config.pop("norm_before_residual") is False
    assert MADE.shape(config, given).norm_before_residual


def test_every_version_finds_the_rotary_base():
    flat = flattened(MADE.config(source(), 3))
    assert flat["rope_parameters"] == {"rope_type": "default", "rope_theta": 50_000.0}
    assert flat["rope_theta"] == 50_000.0
    assert "rope_scaling" not in flat


def test_a_stretched_rotary_embedding_is_there_in_both_spellings():
    rope = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0}
    flat = flattened(MADE.config(source(replace(SHAPE, rope=rope)), 3))
    assert flat["rope_parameters"] == rope
    assert (flat["rope_theta"], flat["rope_scaling"]) == (5e5, {"rope_type": "llama3", "factor": 8.0})


def test_the_window_and_the_target_for_a_server_of_the_folder_alone():
    config = MADE.config(source(), 4)["speculators_config"]
    assert config["proposal_methods"][0]["speculative_tokens"] == 4
    assert config["verifier"] == {"name_or_path": "org/target", "architectures": ["LlamaForCausalLM"]}


def test_layers_are_named_in_its_own_count():
    config = MADE.config(source(of_layers(1, 3, 8)), 3)
    assert config["eagle_aux_hidden_state_layer_ids"] == [1, 3, 8]


def test_versions_are_named_only_where_they_matter():
    assert len(list(MADE.notes(source()))) == 1
    newer = " ".join(MADE.notes(source(replace(SHAPE, fc_norm=True))))
    assert "June 2026" in newer and "46488" in newer
    assert "36545" in " ".join(MADE.notes(source(replace(SHAPE, norm_before_fc=True))))
    assert "25961" in " ".join(MADE.notes(source(of_layers(1, 3, 8))))
