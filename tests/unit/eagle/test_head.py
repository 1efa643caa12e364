"""The head against the trainer library's own model, and its chains against a server's steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.torch import load_file, save_file  # noqa: E402

from breakeven.eagle.export.tensors import EMBEDDING  # noqa: E402
from breakeven.eagle.head_file import load_head  # noqa: E402
from breakeven.eagle.head_shape import read_shape  # noqa: E402
from breakeven.eagle.shape import library_config  # noqa: E402
from breakeven.errors import UsageError  # noqa: E402
from tests.unit.eagle.tiny_head import DEPTH, FULL, LAYERS, TINY, random_tensors, tiny_head, write_head  # noqa: E402

pytestmark = pytest.mark.eagle
CPU = torch.device("cpu")
TOKENS, STEPS = 23, 4
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 1000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
SHAPES = {
    "eagle3": TINY,
    "eagle3.1": replace(TINY, fc_norm=True, norm_output=True),
    "one norm before fc": replace(TINY, norm_before_fc=True),
    "norm before residual": replace(TINY, norm_before_residual=True),
    "whole vocabulary": FULL,
    "qwen3": replace(TINY, decoder="qwen3", head_dim=8),
    "biases": replace(TINY, attention_bias=True),
    "stretched positions": replace(TINY, rope=LLAMA3),
}


def sequence(shape=TINY, seed: int = 5):
    """Tokens x₁ … and the three states of the token before each."""
    random = torch.Generator().manual_seed(seed)
    tokens = torch.randint(shape.vocabulary, (TOKENS,), generator=random)
    return tokens, torch.randn(TOKENS, 3, shape.hidden, generator=random)


def library_logits(shape, tensors, tokens, aux):
    """Of the library's training-time test, by its own model; shape (STEPS, TOKENS, draft vocabulary)."""
    models = pytest.importorskip("speculators.models.eagle3")
    config = models.Eagle3SpeculatorConfig(**library_config(shape))
    config.transformer_layer_config._attn_implementation = "sdpa"
    model = models.Eagle3DraftModel(config)
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    assert not unexpected and all(name.startswith("verifier_") for name in missing)
    found = []
    model.lm_head.register_forward_hook(lambda _module, _inputs, logits: found.append(logits[0].detach()))
    with torch.no_grad():
        model.float().eval()(
            hidden_states=aux.flatten(1)[None],
            input_ids=tokens[None],
            document_ids=torch.zeros(1, len(tokens), dtype=torch.long),
            ttt_steps=STEPS,
        )
    return torch.stack(found)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_logits_of_every_step_are_the_librarys(tmp_path: Path, shape):
    """Fed with the same tokens, at every place from which all steps stay within the sequence."""
    tensors, (tokens, aux) = random_tensors(shape), sequence(shape)
    head = tiny_head(tmp_path, shape)
    at = torch.arange(TOKENS - STEPS + 1)
    fed = torch.stack([tokens[1 + step : 1 + step + len(at)] for step in range(STEPS - 1)], dim=1)
    ours = torch.stack(list(head.chains(head.entries(tokens, aux), at, STEPS, fed)))
    theirs = library_logits(shape, tensors, tokens, aux)[:, : len(at)]
    assert theirs.std() > 0.1
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_states_of_other_tokens_give_other_logits(tmp_path: Path):
    """The comparison above can fail: a shift by one of the states, as of a wrong layer, is seen."""
    tokens, aux = sequence()
    head = tiny_head(tmp_path)
    at = torch.arange(1, TOKENS)
    (right,) = head.chains(head.entries(tokens, aux), at, 1)
    (wrong,) = head.chains(head.entries(tokens, aux.roll(1, 0)), at, 1)
    assert (right - wrong).abs().max() > 0.1


def test_own_drafts_are_fed_in_the_targets_ids(tmp_path: Path):
    tokens, aux = sequence()
    head = tiny_head(tmp_path)
    entries, at = head.entries(tokens, aux), torch.arange(TOKENS)
    own = list(head.chains(entries, at, STEPS))
    drafts = torch.stack([head.drafted(logits) for logits in own], dim=1)
    told = list(head.chains(entries, at, STEPS, drafts[:, :-1]))
    assert all(torch.equal(one, other) for one, other in zip(own, told, strict=True))
    assert set(drafts.flatten().tolist()) <= set(head.draft_ids.tolist())


def test_a_cache_that_grows_is_one_that_was_filled_at_once(tmp_path: Path):
    """A server appends what it verified, and drafts from its last entry."""
    tokens, aux = sequence()
    head = tiny_head(tmp_path)
    whole = head.entries(tokens, aux)
    at_once = torch.stack(list(head.chains(whole, torch.arange(TOKENS), STEPS)))
    grown, at = None, 0
    for size in (5, 1, 3, 2, 1, 4, 7):
        grown = head.entries(tokens[at : at + size], aux[at : at + size], grown)
        at += size
        last = torch.stack(list(head.chains(grown, torch.tensor([at - 1]), STEPS)))
        torch.testing.assert_close(last[:, 0], at_once[:, at - 1], rtol=1e-4, atol=1e-4)
    assert at == len(grown) == TOKENS


def test_a_chain_does_not_see_what_comes_after_it(tmp_path: Path):
    tokens, aux = sequence()
    head = tiny_head(tmp_path)
    changed = tokens.clone()
    changed[12:] = (changed[12:] + 1) % TINY.vocabulary
    before = torch.arange(12)
    one, other = (torch.stack(list(head.chains(head.entries(t, aux), before, 3))) for t in (tokens, changed))
    assert torch.equal(one, other)


def test_an_export_is_the_same_head(tmp_path: Path):
    """Flat, with its own embedding and the layer called midlayer, and layers counted as SGLang does."""
    tensors, (tokens, aux) = random_tensors(TINY), sequence()
    trained = tiny_head(tmp_path / "best")
    folder = tmp_path / "export"
    folder.mkdir()
    renamed = {name.replace("layers.0.", "midlayer."): one for name, one in tensors.items()}
    save_file(renamed, folder / "model.safetensors")
    layer = library_config(TINY)["transformer_layer_config"]
    flat = {**layer, "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": TINY.draft_vocabulary}
    flat["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": [layer - 1 for layer in LAYERS]}
    (folder / "config.json").write_bytes(orjson.dumps(flat))
    export = load_head(folder, LAYERS, DEPTH, torch.zeros(TINY.vocabulary, TINY.hidden), CPU)
    at = torch.arange(TOKENS)
    ours, theirs = (
        torch.stack(list(one.chains(one.entries(tokens, aux), at, 2))) for one in (trained, export)
    )
    assert torch.equal(ours, theirs)


def refused(
    tmp_path: Path, change_config=None, change_tensors=None, layers=LAYERS, embedding=None, depth=DEPTH
) -> str:
    tensors = random_tensors(TINY)
    own = tensors[EMBEDDING]
    folder = write_head(tmp_path, TINY, tensors)
    if change_config:
        config = library_config(TINY)
        change_config(config)
        (folder / "head.json").write_bytes(orjson.dumps(config))
    if change_tensors:
        stored = load_file(folder / "head.safetensors")
        change_tensors(stored)
        save_file(stored, folder / "head.safetensors")
    with pytest.raises(UsageError) as raised:
        load_head(folder, layers, depth, own if embedding is None else embedding, CPU)
    return str(raised.value)


def test_a_head_that_reads_other_layers_is_refused(tmp_path: Path):
    assert "reads layers [2, 4, 5], and the states are of [2, 4, 6]" in refused(tmp_path, layers=(2, 4, 6))


def test_the_librarys_layers_are_counted_in_one_way_only(tmp_path: Path):
    """As SGLang counts [2, 4, 5] would be these states."""
    assert "reads layers [2, 4, 5]" in refused(tmp_path, layers=(3, 5, 6), depth=9)


def nameless(config) -> None:
    config.update(eagle_aux_hidden_state_layer_ids=[])


def test_a_head_that_names_no_layers_reads_those_that_engines_choose(tmp_path: Path):
    tensors, (tokens, aux) = random_tensors(TINY), sequence()
    named = tiny_head(tmp_path / "named")
    folder = write_head(tmp_path, replace(TINY, layers=()), tensors)
    found = load_head(folder, LAYERS, DEPTH, tensors[EMBEDDING], CPU)
    (ours,), (theirs,) = (
        one.chains(one.entries(tokens, aux), torch.arange(TOKENS), 1) for one in (found, named)
    )
    assert torch.equal(ours, theirs) and found.shape.layers == LAYERS
    said = refused(tmp_path, nameless, layers=(2, 4, 6))
    assert "engines give such a head layers [2, 4, 5], and the states are of [2, 4, 6]" in said
    assert 'write  "eagle_aux_hidden_state_layer_ids": [2, 4, 6]  there' in said
    assert "[2, 15, 27], and the states are of [2, 4, 5]" in refused(tmp_path, nameless, depth=30)


@pytest.mark.parametrize(
    ("ids", "depth", "layers", "fits"),
    [
        ([1, 3, 4], 8, (2, 4, 5), True),  # SGLang's way of the default layers
        ([2, 4, 5], 8, (2, 4, 5), True),  # vLLM's
        ([1, 3, 4], 8, (1, 3, 4), False),
        ([2, 4, 5], 8, (3, 5, 6), False),
        ([2, 4, 5], 30, (2, 4, 5), True),  # of none: either way
        ([2, 4, 5], 30, (3, 5, 6), True),
        ([2, 4, 5], 30, (4, 6, 7), False),
    ],
)
def test_flat_configurations_count_in_two_ways(tmp_path: Path, ids, depth: int, layers, fits: bool):
    layer = library_config(TINY)["transformer_layer_config"]
    flat = {**layer, "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": TINY.draft_vocabulary}
    flat["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": ids}
    (tmp_path / "config.json").write_bytes(orjson.dumps(flat))
    if fits:
        assert read_shape(tmp_path, layers, depth) == replace(TINY, layers=layers)
    else:
        with pytest.raises(UsageError, match="the head reads layers"):
            read_shape(tmp_path, layers, depth)


def test_a_head_of_another_target_is_refused(tmp_path: Path):
    said = refused(tmp_path, embedding=torch.zeros(50, 16))
    assert "hidden size 16 and 40 tokens, and the states are of one with 16 and 50" in said
    assert "of one with 8 and 40" in refused(tmp_path, embedding=torch.zeros(40, 8))


def test_another_architecture_is_refused(tmp_path: Path):
    assert "EAGLE-3 head" in refused(tmp_path, lambda config: config.update(speculators_model_type="dflash"))
    layer = "transformer_layer_config"
    assert "2 layers" in refused(tmp_path, lambda config: config[layer].update(num_hidden_layers=2))
    assert "deepseek" in refused(tmp_path, lambda config: config[layer].update(model_type="deepseek_v3"))
    assert "gelu" in refused(tmp_path, lambda config: config[layer].update(hidden_act="gelu"))


def test_an_ordinary_model_is_refused(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "hidden_size": 16}')
    with pytest.raises(UsageError, match="of LlamaForCausalLM"):
        load_head(tmp_path, LAYERS, DEPTH, torch.zeros(40, 16), CPU)


def test_tensors_that_do_not_fit_the_configuration_are_refused(tmp_path: Path):
    assert "fc.weight is missing" in refused(tmp_path, None, lambda tensors: tensors.pop("fc.weight"))
    wide = {"fc.weight": torch.zeros(16, 3 * 20)}
    assert "fc.weight is [16, 60]" in refused(tmp_path, None, lambda tensors: tensors.update(wide))
    more = {"layers.1.mlp.up_proj.weight": torch.zeros(2, 2)}
    assert "layers.1" in refused(tmp_path, None, lambda tensors: tensors.update(more))


def test_a_map_that_leaves_the_vocabulary_is_refused(tmp_path: Path):
    far = {"d2t": torch.full((TINY.draft_vocabulary,), 30)}
    assert "d2t does not name 24" in refused(tmp_path, None, lambda tensors: tensors.update(far))
    same = {"d2t": -torch.arange(TINY.draft_vocabulary)}
    assert "each once" in refused(tmp_path, None, lambda tensors: tensors.update(same))


def test_a_folder_without_a_head_says_what_is_missing(tmp_path: Path):
    with pytest.raises(UsageError, match=r"neither head\.json nor config\.json"):
        load_head(tmp_path, LAYERS, DEPTH, torch.zeros(40, 16), CPU)
    write_head(tmp_path, TINY, random_tensors(TINY))
    (tmp_path / "head.safetensors").write_bytes(b"cut")
    with pytest.raises(UsageError, match="damaged"):
        load_head(tmp_path, LAYERS, DEPTH, torch.zeros(40, 16), CPU)
    (tmp_path / "head.safetensors").unlink()
    with pytest.raises(UsageError, match=r"neither head\.safetensors nor"):
        load_head(tmp_path, LAYERS, DEPTH, torch.zeros(40, 16), CPU)


def test_half_precision_is_widened(tmp_path: Path):
    tensors = random_tensors(TINY)
    half = {name: one.to(torch.bfloat16) if one.is_floating_point() else one for name, one in tensors.items()}
    write_head(tmp_path, TINY, half)
    head = load_head(tmp_path, LAYERS, DEPTH, half[EMBEDDING], CPU)
    tokens, aux = sequence()
    (logits,) = head.chains(head.entries(tokens, aux), torch.arange(TOKENS), 1)
    assert logits.dtype == torch.float32 and np.isfinite(logits.numpy()).all()
