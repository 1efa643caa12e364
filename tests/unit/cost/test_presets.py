import json
import os
from pathlib import Path
from typing import Any

import pytest

from breakeven.cost.geometry_json import geometry_to_json
from breakeven.cost.presets import geometry_from_path, preset
from breakeven.errors import UsageError
from tests.unit.cost.gguf_files import tiny_metadata, tiny_tensors, write
from tests.unit.cost.hf_configs import DEEPSEEK_V3, LLAMA_8B


def saved(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_an_unknown_preset_lists_the_known():
    with pytest.raises(UsageError, match=r"'kimi-k2.6': did you mean kimi-k2\S+\? There are llama-3.1-8b"):
        preset("kimi-k2.6")


def test_a_config_and_a_folder_with_one(tmp_path: Path):
    path = saved(tmp_path / "config.json", LLAMA_8B)
    assert geometry_from_path(path) == geometry_from_path(tmp_path)
    assert geometry_from_path(path).parameters_total() == preset("llama-3.1-8b").parameters_total()


def test_a_folder_with_modelopts_file(tmp_path: Path):
    saved(tmp_path / "config.json", {**DEEPSEEK_V3, "quantization_config": None})
    saved(
        tmp_path / "hf_quant_config.json",
        {"quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}},
    )
    assert geometry_from_path(tmp_path).weights.routed.bits_per_weight == 4.5


def test_a_geometry_by_hand_and_as_described(tmp_path: Path):
    value = geometry_to_json(preset("kimi-k2.5"))
    assert geometry_from_path(saved(tmp_path / "a.json", value)) == preset("kimi-k2.5")
    assert geometry_from_path(saved(tmp_path / "b.json", {"geometry": value, "more": 1})) == preset(
        "kimi-k2.5"
    )


def test_a_gguf_file_by_its_magic(tmp_path: Path):
    assert geometry_from_path(write(tmp_path / "no-suffix", tiny_metadata(), tiny_tensors())).layers == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "neither GGUF nor JSON"),
        ("{", "neither GGUF nor JSON"),
        ("[1]", "holds no JSON object"),
        ("{}", "neither a model's config.json nor a geometry"),
        ('{"weight_map": {}}', "neither a model's config.json nor a geometry"),
        ("[" * 100_000, "neither GGUF nor JSON"),
        ('{"model_type": "bert"}', "architecture 'bert'"),
    ],
)
def test_files_that_describe_no_model(tmp_path: Path, text: str, said: str):
    with pytest.raises(UsageError, match=said):
        geometry_from_path(saved(tmp_path / "x.json", text))


def test_a_pipe_and_a_device_are_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UsageError, match="no regular file"):
            geometry_from_path(path)


def test_bytes_that_are_no_text(tmp_path: Path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"\x90\x00\xff{")
    with pytest.raises(UsageError, match="neither GGUF nor JSON"):
        geometry_from_path(path)


def test_a_folder_without_a_config(tmp_path: Path):
    with pytest.raises(UsageError, match=r"has no config\.json"):
        geometry_from_path(tmp_path)


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot be read"):
        geometry_from_path(tmp_path / "x.json")
