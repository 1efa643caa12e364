"""How a vLLM server has to be started so that it hands out hidden states, as vLLM 0.32 wants it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path


def served_layers(layers: Sequence[int], target_layers: int) -> list[int]:
    """What vLLM has to be told: the layers whose inputs are read, and the number of all layers, by which it
    means the state before the final norm. It hands out each once, in this order."""
    return sorted({*layers, target_layers})


def speculative_config(layers: Sequence[int], target_layers: int) -> str:
    """The value of --speculative-config. Nothing is drafted: the method copies states beside the passes."""
    ids = served_layers(layers, target_layers)
    draft = {"hf_config": {"eagle_aux_hidden_state_layer_ids": ids}}
    return json.dumps(
        {"method": "extract_hidden_states", "num_speculative_tokens": 1, "draft_model_config": draft}
    )


def transfer_config(folder: Path) -> str:
    """The value of --kv-transfer-config; `folder` is one that the server and this machine both see."""
    return json.dumps(
        {
            "kv_connector": "ExampleHiddenStatesConnector",
            "kv_role": "kv_producer",
            "kv_connector_extra_config": {"shared_storage_path": str(folder)},
        }
    )


def server_command(model: Path, layers: Sequence[int], target_layers: int, folder: Path) -> str:
    """What to type."""
    words = (
        *("vllm", "serve", str(model)),
        *("--speculative-config", speculative_config(layers, target_layers)),
        *("--kv-transfer-config", transfer_config(folder)),
    )
    return shlex.join(words)
