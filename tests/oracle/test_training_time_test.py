"""The library's training-time test, as we call it, against naive loops: loss, drafts and every gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from breakeven.eagle.data.samples import SAMPLES, read_samples
from breakeven.eagle.data.vocabulary import VOCABULARY, read_vocabulary
from breakeven.eagle.train.config import head_config
from tests.unit.eagle.train.tiny import LAYERS, TARGET, tiny_recipe

torch = pytest.importorskip("torch")
pytest.importorskip("speculators")
pytestmark = pytest.mark.eagle

STEPS, DECAY, DRAFTED = 4, 0.8, 30


@pytest.mark.parametrize("loss", ["ce", "kl"])
@pytest.mark.parametrize("style", ["eagle3", "eagle3.1"])
def test_loss_drafts_and_gradients(tmp_path: Path, style: Any, loss: Any):
    from breakeven.eagle.states.held import HeldStates
    from breakeven.eagle.train.documents import Documents
    from breakeven.eagle.train.model import new_head, trained
    from breakeven.eagle.train.objective import Objective
    from tests.oracle.training_time_twin import Shape, Twin

    recipe = tiny_recipe(tmp_path, drafted=DRAFTED)
    data, states = recipe.stage("data"), recipe.stage("states")
    ids = read_vocabulary(data / VOCABULARY).draft_ids.tolist()
    config = head_config(TARGET, LAYERS, DRAFTED, style)
    head = _unlike(new_head(config, ids, states / "target.safetensors", 3))
    document = Documents(list(read_samples(data / SAMPLES)), HeldStates(states), ids, steps=STEPS).load(1)

    summed, tally = Objective(STEPS, DECAY, loss).of(head, document)
    scores = Objective(STEPS, DECAY, loss).scores(tally)
    (summed / scores.tokens).backward()
    layer = config["transformer_layer_config"]
    shape = Shape(
        layer["num_attention_heads"],
        layer["num_key_value_heads"],
        layer["head_dim"],
        layer["rms_norm_eps"],
        layer["rope_parameters"]["rope_theta"],
        config["fc_norm"],
        config["norm_output"],
    )
    weights = {
        name: one.detach().double().requires_grad_(one.is_floating_point())
        for name, one in head.state_dict().items()
    }
    wanted = Twin(shape, weights).run(document, STEPS, DECAY, loss)
    wanted.loss.backward()

    assert scores.loss == pytest.approx(wanted.loss.item(), rel=1e-5)
    assert scores.loss_by_step == pytest.approx([one.item() for one in wanted.by_step], rel=1e-5)
    for name, parameter in trained(head).items():
        assert torch.allclose(parameter.grad.double(), weights[name].grad, rtol=1e-3, atol=2e-6), name
    assert scores.acceptance == _accepted(wanted.drafts, document, ids)


def _unlike(head: Any) -> Any:
    """With norms that are not all ones, and larger weights, so that every term counts."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in head.named_parameters():
            if "verifier" in name or "embed" in name or "lm_head" in name:
                continue
            drawn = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.2 * drawn if parameter.ndim == 1 else 0.25 * drawn)
    return head


def _accepted(drafts: list[list[int]], document: Any, ids: list[int]) -> tuple[float | None, ...]:
    target, asked = document.target[0].tolist(), document.asked[0].tolist()
    alive = [start for start, is_asked in enumerate(asked) if is_asked]
    found: list[float | None] = []
    for step, row in enumerate(drafts):
        begun = [start for start in alive if start + step < len(target) and asked[start + step]]
        alive = [start for start in begun if ids[row[start]] == target[start + step]]
        found.append(len(alive) / len(begun) if begun else None)
    return tuple(found)
