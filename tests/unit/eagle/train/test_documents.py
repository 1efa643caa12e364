"""A document is what the trainer library makes of the same sample, and says what the target says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.eagle.data.samples import SAMPLES, Sample, read_samples
from breakeven.eagle.data.vocabulary import VOCABULARY, read_vocabulary
from tests.unit.eagle.train.tiny import HIDDEN, PROMPT, TOKENS, tiny_recipe

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytestmark = pytest.mark.eagle


@pytest.fixture
def states(tmp_path: Path) -> Path:
    return tiny_recipe(tmp_path).stage("states")


@pytest.fixture
def samples(states: Path) -> list[Sample]:
    return list(read_samples(states.parent / "data" / SAMPLES))


def documents(samples: list[Sample], states: Path, **settings: Any) -> Any:
    from breakeven.eagle.states.held import HeldStates
    from breakeven.eagle.train.documents import Documents

    drafted = read_vocabulary(states.parent / "data" / VOCABULARY).draft_ids.tolist()
    return Documents(samples, HeldStates(states), drafted, **{"steps": 3, **settings})


def stored(states: Path, sample: Sample, name: str) -> Any:
    from safetensors import safe_open

    for path in sorted(states.glob("shard-*.safetensors")):
        with safe_open(path, "pt") as file:
            if f"{sample.id}.{name}" in file.keys():  # noqa: SIM118  it is no mapping
                return file.get_tensor(f"{sample.id}.{name}")
    raise AssertionError(sample.id)


def test_shifted_as_the_library_shifts(states: Path, samples: list[Sample]):
    data = pytest.importorskip("speculators.models.eagle3.data")
    for place in (0, len(samples) - 1):
        sample = samples[place]
        kept = stored(states, sample, "hidden_states").float()
        length = len(sample.input_ids)
        wanted = data.shift_batch(
            {
                "input_ids": torch.from_numpy(sample.input_ids.astype(np.int64)),
                "hidden_states": kept[:, :-1].flatten(1),
                "verifier_last_hidden_states": kept[:, -1],
                "loss_mask": torch.from_numpy(sample.loss_mask.copy()),
                "lengths": torch.tensor([length]),
                "position_ids": torch.arange(length),
            }
        )
        found = documents(samples, states).load(place)
        assert torch.equal(found.input_ids[0], wanted["input_ids"])
        assert torch.equal(found.hidden[0], wanted["hidden_states"])
        assert torch.equal(found.last[0], wanted["verifier_last_hidden_states"])
        assert torch.equal(found.asked[0], wanted["loss_mask"])


def test_target_is_what_comes_next(states: Path, samples: list[Sample]):
    drafted = set(read_vocabulary(states.parent / "data" / VOCABULARY).draft_ids.tolist())
    found = documents(samples, states).load(2)
    reply = samples[2].input_ids[PROMPT:].tolist()
    assert found.target[0, PROMPT - 2 : -1].tolist() == reply  # the made-up target wrote it
    in_vocabulary = [token in drafted for token in found.target[0].tolist()]
    assert not all(in_vocabulary)
    assert found.learned[0].tolist() == [
        asked and inside for asked, inside in zip(found.asked[0].tolist(), in_vocabulary, strict=True)
    ]


def test_short_samples_are_padded(states: Path, samples: list[Sample]):
    length = len(samples[0].input_ids) - 1
    found = documents(samples, states, steps=length + 5).load(0)
    assert found.hidden.shape == (1, length + 5, 3 * HIDDEN)
    assert found.document_ids[0].tolist() == [0] * length + [-1] * 5
    assert not found.asked[0, length:].any() and not found.learned[0, length:].any()


def test_lengths_on_gpus_are_few(states: Path, samples: list[Sample], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    padded = documents(samples, states)._padded
    lengths = {length: padded("x", torch.zeros(length)).shape[1] for length in (1, 128, 129, 257, 512, 513)}
    assert lengths == {1: 128, 128: 128, 129: 256, 257: 512, 512: 512, 513: 1024}


def test_control_has_the_same_states_elsewhere(states: Path, samples: list[Sample]):
    plain = documents(samples, states).load(1)
    mixed = documents(samples, states, shuffled=True).load(1)
    assert torch.equal(plain.last, mixed.last) and torch.equal(plain.target, mixed.target)
    assert torch.equal(plain.input_ids, mixed.input_ids) and not torch.equal(plain.hidden, mixed.hidden)
    rows = {tuple(row) for row in stored(states, samples[1], "hidden_states")[:, :-1].flatten(1).tolist()}
    assert {tuple(row) for row in mixed.hidden[0].tolist()} <= rows


def test_read_ahead_in_order(states: Path, samples: list[Sample]):
    source = documents(samples, states)
    places = [3, 0, 3, 5, 1, 2]
    found = list(source.ahead(iter(places)))
    assert all(
        torch.equal(one.hidden, source.load(place).hidden) for one, place in zip(found, places, strict=True)
    )
    assert list(source.ahead([])) == []


def test_vocabulary_that_ends_early(states: Path, samples: list[Sample]):
    from breakeven.eagle.states.held import HeldStates
    from breakeven.eagle.train.documents import Documents

    found = Documents(samples, HeldStates(states), [0, 1], steps=3).load(0)
    assert found.learned[0].tolist() == [
        asked and token < 2 for asked, token in zip(found.asked[0], found.target[0], strict=True)
    ]
    assert int(found.target.max()) < TOKENS
