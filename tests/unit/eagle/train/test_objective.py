"""A batch's loss is the trainer library's own, and what would be accepted is counted one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from breakeven.eagle.data.samples import SAMPLES, read_samples
from breakeven.eagle.data.vocabulary import VOCABULARY, read_vocabulary
from breakeven.eagle.train.config import head_config
from tests.unit.eagle.train.tiny import DRAFTED, LAYERS, TARGET, TOKENS, tiny_recipe

torch = pytest.importorskip("torch")
losses = pytest.importorskip("speculators.losses")
pytestmark = pytest.mark.eagle

STEPS, DECAY = 4, 0.8
FORWARD = {"ttt_steps": STEPS, "ttt_step_loss_decay": DECAY}


class World:
    """A head with documents; of the whole vocabulary, or of a part."""

    def __init__(self, folder: Path, drafted: int = DRAFTED, style: Any = "eagle3") -> None:
        from breakeven.eagle.states.held import HeldStates
        from breakeven.eagle.train.documents import Documents
        from breakeven.eagle.train.model import new_head

        recipe = tiny_recipe(folder, drafted=drafted)
        ids = read_vocabulary(recipe.stage("data") / VOCABULARY).draft_ids.tolist()
        config = head_config(TARGET, LAYERS, drafted, style)
        states = recipe.stage("states")
        self.ids = ids
        self.head = new_head(config, ids, states / "target.safetensors", 0)
        self.samples, self.states = list(read_samples(recipe.stage("data") / SAMPLES)), states
        self.documents = Documents(self.samples, HeldStates(states), ids, steps=STEPS)

    def library(self, place: int, loss: str) -> tuple[Any, Any, Any]:
        """The library's own answer to the same document: drafts, loss, metrics."""
        one = self.documents.load(place)
        return self.head(
            hidden_states=one.hidden,
            input_ids=one.input_ids,
            document_ids=one.document_ids,
            loss_mask=one.learned.clone(),
            verifier_last_hidden_states=one.last,
            loss_config=losses.resolve_loss_config(loss, "eager"),
            **FORWARD,
        )


def objective(loss: Any = "ce") -> Any:
    from breakeven.eagle.train.objective import Objective

    return Objective(STEPS, DECAY, loss)


@pytest.mark.parametrize(("loss", "name"), [("ce", "ce"), ("kl", "kl_div")])
def test_loss_of_a_document_is_the_library_s(tmp_path: Path, loss: str, name: str):
    world = World(tmp_path)
    document = world.documents.load(0)
    summed, tally = objective(loss).of(world.head, document)
    wanted = world.library(0, name)[1]
    tokens = int(document.learned.sum())
    assert summed.item() == pytest.approx(wanted.item() * tokens)
    scores = objective(loss).scores(tally)
    assert scores.tokens == tokens and scores.loss == pytest.approx(wanted.item())
    weighted = sum(DECAY**step * one for step, one in enumerate(scores.loss_by_step))
    assert weighted == pytest.approx(scores.loss)  # the library's decay is gamma ** step


def test_loss_of_a_batch_weighs_documents_by_their_tokens(tmp_path: Path):
    from breakeven.eagle.train.processes import Processes
    from breakeven.eagle.train.stepping import Stepper

    world = World(tmp_path)
    places = [0, 3, 5, 9]
    alone = [world.library(place, "ce")[1] for place in places]
    weights = [int(world.documents.load(place).learned.sum()) for place in places]
    assert len(set(weights)) > 1
    wanted = sum(weight * loss for weight, loss in zip(weights, alone, strict=True)) / sum(weights)
    world.head.zero_grad()
    wanted.backward()
    gradient = world.head.fc.weight.grad.clone()
    stepper = Stepper(world.head, objective(), Processes(0, 1, torch.device("cpu")))
    taken = stepper.step(world.documents.ahead(places), 0.0)
    assert taken.scores.loss == pytest.approx(wanted.item())
    norm = taken.gradient_norm
    clipped = gradient * min(1.0, 0.5 / norm)
    assert torch.allclose(world.head.fc.weight.grad, clipped, rtol=1e-4, atol=1e-7)


def test_padding_changes_nothing(tmp_path: Path):
    from breakeven.eagle.states.held import HeldStates
    from breakeven.eagle.train.documents import Documents

    world = World(tmp_path)
    summed, tally = objective().of(world.head, world.documents.load(0))
    more = Documents(world.samples, HeldStates(world.states), world.ids, steps=60).load(0)
    assert more.hidden.shape[1] > world.documents.load(0).hidden.shape[1]
    padded, padded_tally = objective().of(world.head, more)
    assert padded.item() == pytest.approx(summed.item())
    assert torch.allclose(padded_tally, tally)


@pytest.mark.parametrize("drafted", [DRAFTED, TOKENS])
@pytest.mark.parametrize("style", ["eagle3", "eagle3.1"])
def test_chains_are_counted_one_by_one(tmp_path: Path, drafted: int, style: str):
    world = World(tmp_path, drafted, style)
    place = 4
    document = world.documents.load(place)
    drafts = [ids[0].tolist() for ids in world.library(place, "ce")[0]]
    target, asked = document.target[0].tolist(), document.asked[0].tolist()
    begun, accepted = [0] * STEPS, [0] * STEPS
    for start in range(len(target)):
        for step in range(STEPS):
            if start + step >= len(target) or not asked[start + step]:
                break
            begun[step] += 1
            if world.ids[drafts[step][start]] != target[start + step]:
                break
            accepted[step] += 1
    scores = objective().scores(objective().of(world.head, document)[1])
    assert begun[0] > accepted[0]
    assert list(scores.acceptance) == [
        right / of if of else None for right, of in zip(accepted, begun, strict=True)
    ]


def test_head_that_is_right_is_accepted(tmp_path: Path):
    """Counted by hand: drafts that are the target's own, but for one."""
    from breakeven.eagle.train.objective import accepted_chains

    world = World(tmp_path, TOKENS)
    document = world.documents.load(0)
    right = document.target[0]
    length = len(right)
    drafted = [torch.cat([right[step:], right.new_zeros(step)])[None] for step in range(3)]
    drafted[1][0, length - 4] = (drafted[1][0, length - 4] + 1) % TOKENS
    asked = int(document.asked.sum())
    begun, accepted = accepted_chains(world.head, drafted, document)
    assert [int(one) for one in begun] == [asked, asked - 1, asked - 3]
    assert [int(one) for one in accepted] == [asked, asked - 2, asked - 3]


def test_document_without_tokens_to_learn_from(tmp_path: Path):
    world = World(tmp_path)
    document = world.documents.load(0)
    document.learned.zero_()
    summed, tally = objective().of(world.head, document)
    summed.backward()
    assert summed.item() == 0 and float(tally[0]) == 0
    assert torch.isfinite(world.head.fc.weight.grad).all()
