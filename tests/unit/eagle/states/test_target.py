"""Of a checkpoint only what a head needs is read, wherever it stands; what does not fit is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from safetensors.torch import load, load_file, save_file  # noqa: E402

from breakeven.eagle.states.target import (  # noqa: E402
    EMBEDDING,
    HEAD,
    NORM,
    config_file,
    open_weights,
    read_weights,
    weights_file,
)
from breakeven.errors import UsageError  # noqa: E402
from tests.unit.eagle.states.tiny import HIDDEN, LAYERS, VOCAB, edit_config  # noqa: E402

pytestmark = pytest.mark.eagle


@pytest.fixture
def folder(model: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(model, tmp_path / "model"))


def rewrite(folder: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    save_file(dict(tensors), folder / "model.safetensors")


def test_shape_and_tensors_are_the_checkpoint_s_own(model: Path) -> None:
    target = open_weights(model)
    assert (target.layers, target.hidden, target.vocab, target.eps) == (LAYERS, HIDDEN, VOCAB, 1e-5)
    assert target.positions == 128
    stored = load_file(model / "model.safetensors")
    weights = read_weights(target)
    assert set(weights) == {EMBEDDING, NORM, HEAD}
    assert torch.equal(weights[EMBEDDING], stored["model.embed_tokens.weight"])
    assert torch.equal(weights[NORM], stored["model.norm.weight"])
    assert torch.equal(weights[HEAD], stored["lm_head.weight"])
    assert not torch.equal(weights[EMBEDDING], weights[HEAD])
    assert {name: tensor.shape for name, tensor in load(weights_file(weights)).items()} == {
        name: tensor.shape for name, tensor in weights.items()
    }
    assert json.loads(config_file(target))["num_hidden_layers"] == LAYERS


def test_a_norm_that_is_stored_as_its_distance_from_one_is_kept_as_a_plain_one(folder: Path) -> None:
    stored = load_file(folder / "model.safetensors")
    rewrite(folder, {name: tensor.to(torch.bfloat16) for name, tensor in stored.items()})
    plain = read_weights(open_weights(folder))
    edit_config(folder, model_type="gemma3_text")
    found = read_weights(open_weights(folder))
    assert found[NORM].dtype == torch.float32
    assert torch.equal(found[NORM], 1 + plain[NORM].float())
    assert torch.equal(found[HEAD], plain[HEAD])


def test_the_dtype_stays_as_it_is_stored(folder: Path) -> None:
    stored = load_file(folder / "model.safetensors")
    rewrite(folder, {name: tensor.to(torch.bfloat16) for name, tensor in stored.items()})
    weights = load(weights_file(read_weights(open_weights(folder))))
    assert {tensor.dtype for tensor in weights.values()} == {torch.bfloat16}


@pytest.mark.parametrize("said", [True, None])
def test_tied_embeddings_are_the_output_matrix_too(said: bool | None, folder: Path) -> None:
    stored = load_file(folder / "model.safetensors")
    rewrite(folder, {name: tensor for name, tensor in stored.items() if name != "lm_head.weight"})
    config = json.loads((folder / "config.json").read_text())
    config.pop("tie_word_embeddings", None)
    (folder / "config.json").write_text(
        json.dumps(config if said is None else {**config, "tie_word_embeddings": said})
    )
    weights = read_weights(open_weights(folder))
    assert torch.equal(weights[HEAD], weights[EMBEDDING])
    assert len(load(weights_file(weights))) == 3


def test_an_output_matrix_is_not_overlooked_where_the_two_are_said_to_be_tied(folder: Path) -> None:
    edit_config(folder, tie_word_embeddings=True)
    weights = read_weights(open_weights(folder))
    assert torch.equal(weights[HEAD], weights[EMBEDDING])


def test_several_files_are_found_by_the_index(folder: Path) -> None:
    stored = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    for number, (name, tensor) in enumerate(stored.items()):
        save_file({name: tensor}, folder / f"part-{number}.safetensors")
    places = {name: f"part-{number}.safetensors" for number, name in enumerate(stored)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    assert torch.equal(read_weights(open_weights(folder))[HEAD], stored["lm_head.weight"])


@pytest.mark.parametrize(
    ("prefix", "head"),
    [
        ("model.language_model.", "lm_head.weight"),
        ("language_model.model.", "language_model.lm_head.weight"),
        ("thinker.model.", "thinker.lm_head.weight"),
    ],
)
def test_a_language_model_among_other_modalities(prefix: str, head: str, folder: Path) -> None:
    stored = load_file(folder / "model.safetensors")
    renamed = {name.replace("model.", prefix, 1): tensor for name, tensor in stored.items()}
    renamed[head] = renamed.pop("lm_head.weight")
    renamed["vision_tower.norm.weight"] = torch.ones(7)
    renamed[f"{prefix}layers.9.embed_tokens.weight"] = torch.ones(2, 2)
    rewrite(folder, renamed)
    text = json.loads((folder / "config.json").read_text())
    whole = {"architectures": ["SeesForConditionalGeneration"], "vision_config": {}, "text_config": text}
    text.pop("architectures", None)
    (folder / "config.json").write_text(json.dumps(whole))
    target = open_weights(folder)
    assert target.layers == LAYERS
    assert target.config["architectures"] == ["SeesForConditionalGeneration"]
    weights = read_weights(target)
    assert torch.equal(weights[NORM], stored["model.norm.weight"])
    assert torch.equal(weights[HEAD], stored["lm_head.weight"])


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("gpt2", {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 50}),
        ("opt", {"hidden_size": 32, "num_hidden_layers": 2, "ffn_dim": 32, "num_attention_heads": 2}),
        ("bert", {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "is_decoder": True}),
        ("phi", {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}),
    ],
)
def test_other_architectures_are_refused(kind: str, sizes: Mapping[str, int], tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **sizes)).save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="not known here"):
        open_weights(tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hidden_size": 64}, r"\[64, 32\]|\[64, 64\]|different models"),
        ({"vocab_size": 65}, "different models"),
        ({"hidden_size": "32"}, "says '32' for hidden_size"),
        ({"num_hidden_layers": True}, "for num_hidden_layers"),
        ({"num_hidden_layers": None}, "has no num_hidden_layers"),
        ({"rms_norm_eps": "tiny"}, "RMSNorm"),
        ({"text_config": 3}, "text_config"),
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping = 30.0 caps them"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(
    changes: Mapping[str, object], said: str, folder: Path
) -> None:
    edit_config(folder, **changes)
    with pytest.raises(UsageError, match=said):
        open_weights(folder)


@pytest.mark.parametrize("content", [None, "", "[]", "{", '{"a": NaN}'])
def test_a_folder_without_a_usable_configuration_is_refused(content: str | None, folder: Path) -> None:
    (folder / "config.json").unlink()
    if content is not None:
        (folder / "config.json").write_text(content)
    with pytest.raises(UsageError, match=r"config\.json"):
        open_weights(folder)


@pytest.mark.parametrize("keep", [0, 7, 100, 5000])
def test_a_file_that_is_cut_off_is_refused(keep: int, folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(UsageError, match="restore it"):
        open_weights(folder)


def test_an_index_that_names_what_is_not_there_is_refused(folder: Path) -> None:
    stored = load_file(folder / "model.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(stored, "gone.safetensors")}))
    with pytest.raises(UsageError, match="gone"):
        open_weights(folder)
    index.write_text(json.dumps({"weight_map": {}}))
    with pytest.raises(UsageError, match="no tensor"):
        open_weights(folder)
    index.write_text("{}")
    with pytest.raises(UsageError, match="weight_map"):
        open_weights(folder)


def test_quantised_parts_are_refused(folder: Path) -> None:
    stored = load_file(folder / "model.safetensors")
    rewrite(folder, {**stored, "lm_head.weight": stored["lm_head.weight"].to(torch.float8_e4m3fn)})
    with pytest.raises(UsageError, match="not quantised"):
        read_weights(open_weights(folder))
