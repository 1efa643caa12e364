"""The words with which vLLM hands out hidden states."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from breakeven.eagle.states.flags import served_layers, server_command


def test_a_command_that_a_shell_takes_apart_into_what_vllm_reads() -> None:
    words = shlex.split(server_command(Path("my models/it's"), (2, 18, 33), 36, Path("/big/served")))
    assert words[:3] == ["vllm", "serve", "my models/it's"]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    speculative = json.loads(options["--speculative-config"])
    assert speculative == {
        "method": "extract_hidden_states",
        "num_speculative_tokens": 1,
        "draft_model_config": {"hf_config": {"eagle_aux_hidden_state_layer_ids": [2, 18, 33, 36]}},
    }
    assert json.loads(options["--kv-transfer-config"]) == {
        "kv_connector": "ExampleHiddenStatesConnector",
        "kv_role": "kv_producer",
        "kv_connector_extra_config": {"shared_storage_path": "/big/served"},
    }


@pytest.mark.parametrize(("layers", "expected"), [((2, 4, 5), [2, 4, 5, 8]), ((2, 4, 8), [2, 4, 8])])
def test_no_layer_is_named_twice(layers: tuple[int, ...], expected: list[int]) -> None:
    assert served_layers(layers, 8) == expected
