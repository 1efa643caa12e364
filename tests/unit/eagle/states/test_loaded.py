"""What is kept are the states that are meant: the inputs of the layers named, and of the final norm.

The reference is transformers' own output_hidden_states: hidden_states[i] goes into layer i, and the last of
them has been through the final norm, so that it is not what goes into it.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file, save_file  # noqa: E402

from breakeven.eagle.states import target as target_module  # noqa: E402
from breakeven.eagle.states.loaded import Loaded  # noqa: E402
from breakeven.eagle.states.passes import Wanted  # noqa: E402
from breakeven.eagle.states.target import open_weights, read_weights  # noqa: E402
from breakeven.eagle.states.target_head import TargetHead  # noqa: E402
from breakeven.errors import UsageError  # noqa: E402
from tests.unit.eagle.states.tiny import HIDDEN, LAYERS, VOCAB, edit_config, write_model  # noqa: E402

pytestmark = pytest.mark.eagle

CHOSEN = (2, 4, 5)
TOP = 6
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
ROUNDING = 1e-5
"""Both in float32: sums in another order differ by some units in the last place, layer after layer."""


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp(request.param) / "model", request.param)


@pytest.fixture(scope="module")
def reference(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def apart(one: Any, other: Any) -> float:
    """The greatest difference, as a share of the greatest value."""
    return float((one - other).abs().max() / other.abs().max())


def load(folder: Path, layers: tuple[int, ...] = CHOSEN, dtype: str = "float32") -> Loaded:
    target = open_weights(folder)
    head = TargetHead.of(read_weights(target), target.eps)
    return Loaded(Wanted(target, head, layers, dtype, TOP))


def tokens(*lengths: int) -> list[list[int]]:
    random = np.random.default_rng(1)
    return [random.integers(0, VOCAB, length).tolist() for length in lengths]


@torch.inference_mode()
def said(reference: Any, sample: list[int]) -> Any:
    return reference(torch.tensor([sample]), output_hidden_states=True)


@pytest.mark.parametrize("layers", [(2, 4, 5), (1, 2, 3), (6, 7, 8)])
def test_states_are_the_inputs_of_the_layers(layers: tuple[int, ...], folder: Path, reference: Any) -> None:
    (sample,) = tokens(23)
    states = load(folder, layers).passes([sample])[0].hidden_states
    assert states.shape == (23, 4, HIDDEN) and states.dtype == torch.float32
    out = said(reference, sample)
    for place, layer in enumerate(layers):
        if layer < LAYERS:
            torch.testing.assert_close(states[:, place], out.hidden_states[layer][0], **CLOSE)
            assert not torch.allclose(states[:, place], out.hidden_states[layer - 1][0], atol=1e-2)
        else:
            assert torch.equal(states[:, place], states[:, -1])


def test_a_pass_by_hand_layer_after_layer_meets_the_same_states(folder: Path, reference: Any) -> None:
    (sample,) = tokens(23)
    states = load(folder).passes([sample])[0].hidden_states
    decoder = reference.model
    with torch.inference_mode():
        state = decoder.embed_tokens(torch.tensor([sample]))
        places = torch.arange(len(sample))[None]
        rotary = decoder.rotary_emb(state, position_ids=places)
        met = []
        for layer in decoder.layers:
            met.append(state[0])
            state = layer(state, attention_mask=None, position_ids=places, position_embeddings=rotary)
    for place, layer in enumerate(CHOSEN):
        torch.testing.assert_close(states[:, place], met[layer], **CLOSE)
    torch.testing.assert_close(states[:, -1], state[0], **CLOSE)


def test_the_last_state_leads_to_the_logits_through_norm_and_output_matrix(
    folder: Path, reference: Any
) -> None:
    (sample,) = tokens(23)
    last = load(folder).passes([sample])[0].hidden_states[:, -1]
    out = said(reference, sample)
    with torch.inference_mode():
        normed = reference.model.norm(last)
        torch.testing.assert_close(reference.lm_head(normed), out.logits[0], **CLOSE)
    torch.testing.assert_close(normed, out.hidden_states[-1][0], **CLOSE)
    assert not torch.allclose(last, out.hidden_states[-1][0], atol=1e-1)


def test_the_target_s_head_alone_gives_the_same_logits(folder: Path, reference: Any) -> None:
    (sample,) = tokens(23)
    target = open_weights(folder)
    head = TargetHead.of(read_weights(target), target.eps)
    logits = head(load(folder).passes([sample])[0].hidden_states[:, -1])
    torch.testing.assert_close(logits, said(reference, sample).logits[0], **CLOSE)


def test_top_tokens_are_the_likeliest_with_their_probabilities(folder: Path, reference: Any) -> None:
    (sample,) = tokens(300 % 128)
    found = load(folder).passes([sample])[0]
    expected = torch.log_softmax(said(reference, sample).logits[0].float(), -1).topk(TOP)
    assert found.top_ids.dtype == torch.int32 and found.top_logprobs.dtype == torch.float32
    torch.testing.assert_close(found.top_logprobs, expected.values, **CLOSE)
    assert torch.equal(found.top_ids.long(), expected.indices)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_batch_size_does_not_change_the_states(size: int, folder: Path) -> None:
    loaded = load(folder)
    samples = tokens(5, 31, 2, 17, 1, 23, 9)
    alone = [loaded.passes([sample])[0] for sample in samples]
    for start in range(0, len(samples), size):
        together = loaded.passes(samples[start : start + size])
        for one, other in zip(together, alone[start : start + size], strict=True):
            assert apart(one.hidden_states, other.hidden_states) <= ROUNDING
            assert apart(one.top_logprobs, other.top_logprobs) <= ROUNDING
            assert torch.equal(one.top_ids, other.top_ids)


def test_the_same_batch_gives_the_same_bits(folder: Path) -> None:
    samples = tokens(5, 31, 2)
    first, second = load(folder).passes(samples), load(folder).passes(samples)
    assert all(
        torch.equal(one.hidden_states, other.hidden_states) for one, other in zip(first, second, strict=True)
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_plain_target_passes_the_check(dtype: str, folder: Path) -> None:
    loaded = load(folder, dtype=dtype)
    loaded.check(tokens(40)[0])
    assert loaded.passes(tokens(4))[0].hidden_states.dtype == getattr(torch, dtype)


OF_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
HYBRID = {"linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8}
HYBRID |= {"linear_value_head_dim": 8, "layer_types": ["linear_attention", "full_attention"] * 4}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("gemma", {}),
        ("gemma3_text", {}),
        ("qwen3_next", {**HYBRID, **OF_EXPERTS, "shared_expert_intermediate_size": 16}),
        ("qwen3_5_text", HYBRID),
        ("qwen3_5_moe_text", {**HYBRID, **OF_EXPERTS, "shared_expert_intermediate_size": 16}),
    ],
)
def test_norms_that_scale_by_one_more_than_their_weight(
    kind: str, changes: dict[str, Any], dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(tmp_path, kind, **changes)
    sample = tokens(40)[0]
    loaded = load(tmp_path, dtype=dtype)
    loaded.check(sample)
    if dtype == "float32":
        reference = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
        last = loaded.passes([sample])[0].hidden_states[:, -1]
        logits = said(reference, sample).logits[0]
        target = open_weights(tmp_path)
        assert apart(TargetHead.of(read_weights(target), target.eps)(last), logits) < 1e-4
    monkeypatch.setattr(target_module, "FROM_ONE", frozenset())
    with pytest.raises(UsageError, match="RMSNorm"):  # as any that is not known to do so
        load(tmp_path, dtype=dtype).check(sample)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("gemma2", {"head_dim": 8}),
        ("granite", {"logits_scaling": 4.0}),
        ("cohere", {"logit_scale": 0.25, "head_dim": None}),
    ],
)
def test_a_target_that_scales_its_logits_or_norms_is_refused(
    kind: str, changes: dict[str, Any], dtype: str, tmp_path: Path
) -> None:
    write_model(tmp_path, kind, **changes)
    with pytest.raises(UsageError, match=r"RMSNorm|not built as Llama"):
        load(tmp_path, dtype=dtype).check(tokens(40)[0])


def test_layers_that_pass_on_something_else_are_refused(folder: Path) -> None:
    loaded = load(folder)
    loaded._wanted = replace(loaded._wanted, target=replace(loaded._wanted.target, hidden=HIDDEN // 2))
    with pytest.raises(UsageError, match="one state of a token"):
        loaded.passes(tokens(5))


def test_a_checkpoint_without_a_layer_s_weights_is_refused(folder: Path, tmp_path: Path) -> None:
    damaged = Path(shutil.copytree(folder, tmp_path / "model"))
    stored = load_file(damaged / "model.safetensors")
    del stored["model.layers.3.mlp.up_proj.weight"]
    save_file(stored, damaged / "model.safetensors")
    with pytest.raises(UsageError, match=r"layers\.3\.mlp\.up_proj"):
        load(damaged)


@pytest.mark.parametrize("kind", ["never_heard_of", "bert", "t5"])
def test_what_transformers_does_not_load_so_is_refused(kind: str, folder: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "model"))
    edit_config(other, model_type=kind, architectures=["Other"])
    with pytest.raises(UsageError, match=r"cannot load|lacks|not built as Llama"):
        load(other)


def test_a_model_that_sees_is_listened_to_in_its_language_model(tmp_path: Path) -> None:
    text = {
        "model_type": "qwen2",
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": 48,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
    }
    vision = {
        "model_type": "siglip_vision_model",
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 8,
        "patch_size": 4,
    }
    config = transformers.LlavaConfig(text_config=text, vision_config=vision, tie_word_embeddings=False)
    torch.manual_seed(2)
    model = transformers.LlavaForConditionalGeneration(config).eval()
    model.save_pretrained(tmp_path)
    loaded = load(tmp_path)
    (sample,) = tokens(12)
    sample = [token % 50 for token in sample]
    loaded.check(sample)
    states = loaded.passes([sample])[0].hidden_states
    with torch.inference_mode():
        out = model.model.language_model(torch.tensor([sample]), output_hidden_states=True)
    torch.testing.assert_close(states[:, 1], out.hidden_states[CHOSEN[1]][0], **CLOSE)
