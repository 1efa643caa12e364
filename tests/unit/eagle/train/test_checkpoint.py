"""Checkpoints are whole, few, and refuse what is not theirs."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from breakeven.eagle.train.config import head_config
from breakeven.eagle.train.records import Scores, Validation
from breakeven.errors import RunFormatError, StorageError, UsageError
from tests.unit.eagle.train.tiny import DRAFTED, LAYERS, TARGET, tiny_recipe

torch = pytest.importorskip("torch")
pytest.importorskip("speculators")
pytestmark = pytest.mark.eagle

CONFIG = head_config(TARGET, LAYERS, DRAFTED, "eagle3")


def trained_head(folder: Path, seed: int = 0) -> tuple[Any, Any]:
    """A head with its optimizer, after one step on made-up gradients."""
    from breakeven.eagle.train.model import new_head, trained

    recipe = tiny_recipe(folder)
    weights = recipe.stage("states") / "target.safetensors"
    head = new_head(CONFIG, list(range(DRAFTED)), weights, seed)
    parameters = trained(head)
    optimizer = torch.optim.AdamW(parameters.values(), lr=0.1)
    for parameter in parameters.values():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    return head, optimizer


def saved(folder: Path, *steps: int) -> tuple[Any, Any, Any]:
    from breakeven.eagle.train.checkpoint import Checkpoints, Reached

    head, optimizer = trained_head(folder / "world")
    checkpoints = Checkpoints(folder, CONFIG)
    best = Validation(1, Scores(1.0, (1.0,), (0.5, None), 9), 1.5)
    for step in steps:
        checkpoints.save(head, optimizer, Reached(step, best))
    return checkpoints, head, optimizer


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if "checkpoint" in path.name)


def test_round_trip(tmp_path: Path):
    checkpoints, head, optimizer = saved(tmp_path, 7)
    drawn = torch.rand(3)
    other, its_optimizer = trained_head(tmp_path / "world", seed=1)
    reached = checkpoints.load(other, its_optimizer)
    assert reached.step == 7 and reached.best.scores.acceptance == (0.5, None)
    assert torch.equal(torch.rand(3), drawn)  # random numbers go on too
    for one, same in zip(head.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, same)
    before, after = optimizer.state_dict()["state"], its_optimizer.state_dict()["state"]
    assert before.keys() == after.keys() and before
    for key in before:
        for name in ("step", "exp_avg", "exp_avg_sq"):
            assert torch.equal(before[key][name], after[key][name])


def test_two_are_kept(tmp_path: Path):
    saved(tmp_path, 2, 4, 1000, 1_000_002)
    assert names(tmp_path) == ["checkpoint-001000", "checkpoint-1000002"]


def test_none_is_a_beginning(tmp_path: Path):
    checkpoints, head, optimizer = saved(tmp_path)
    before = head.fc.weight.clone()
    assert checkpoints.load(head, optimizer).step == 0
    assert torch.equal(head.fc.weight, before)


def test_head_is_float32_without_what_is_the_target_s(tmp_path: Path):
    from safetensors.torch import load_file

    saved(tmp_path, 7)
    tensors = load_file(tmp_path / "checkpoint-000007" / "head.safetensors")
    assert {one.dtype for name, one in tensors.items() if name not in ("d2t", "t2d")} == {torch.float32}
    assert not any(name.startswith(("embed_tokens", "verifier_")) for name in tensors)
    assert {"fc.weight", "lm_head.weight", "norm.weight", "d2t", "t2d"} <= tensors.keys()
    assert tensors["lm_head.weight"].shape == (DRAFTED, TARGET["hidden_size"])


def test_another_architecture_is_refused(tmp_path: Path):
    from breakeven.eagle.train.checkpoint import Checkpoints

    _, head, optimizer = saved(tmp_path, 7)
    wider = head_config({**TARGET, "intermediate_size": 48}, LAYERS, DRAFTED, "eagle3")
    with pytest.raises(UsageError, match=r"another architecture \(intermediate_size 32, not 48\)"):
        Checkpoints(tmp_path, wider).load(head, optimizer)


@pytest.mark.parametrize("file", ["head.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["cut", "gone", "foreign"])
def test_damage_is_told(tmp_path: Path, file: str, damage: str):
    checkpoints, head, optimizer = saved(tmp_path, 5, 7)
    path = tmp_path / "checkpoint-000007" / file
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:40])
    else:
        path.write_bytes(json.dumps({}).encode() if file == "state.json" else _no_tensors())
    with pytest.raises(RunFormatError, match=r"checkpoint-000007 is damaged.*go on from the one before"):
        checkpoints.load(head, optimizer)


def _no_tensors() -> bytes:
    from safetensors.torch import save

    data: bytes = save({"other": torch.zeros(1)})
    return data


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_full_disk_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int):
    from breakeven.eagle.train import checkpoint

    checkpoints, head, optimizer = saved(tmp_path, 5)
    write, written = Path.write_bytes, []

    def fails(path: Path, data: bytes) -> int:
        written.append(path)
        if len(written) == nth:
            write(path, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", fails)
    with pytest.raises(StorageError, match="disk is full"):
        checkpoints.save(head, optimizer, checkpoint.Reached(7))
    assert names(tmp_path) == ["checkpoint-000005"]
    assert checkpoints.load(head, optimizer).step == 5


def test_what_a_kill_left_is_made_again(tmp_path: Path):
    from breakeven.eagle.train.checkpoint import Reached

    checkpoints, head, optimizer = saved(tmp_path, 5)
    unfinished = tmp_path / ".checkpoint-000007.partial"
    unfinished.mkdir()
    (unfinished / "head.safetensors").write_bytes(b"half")
    assert checkpoints.load(head, optimizer).step == 5
    checkpoints.save(head, optimizer, Reached(7))
    assert names(tmp_path) == ["checkpoint-000005", "checkpoint-000007"]


def test_best_says_what_it_is(tmp_path: Path):
    checkpoints, head, _ = saved(tmp_path)
    checkpoints.save_best(head, {"step": 3})
    checkpoints.save_best(head, {"step": 4})
    said = json.loads((tmp_path / "best" / "head.json").read_text())
    assert said["trained"] == {"step": 4} and said["draft_vocab_size"] == DRAFTED
    assert sorted(path.name for path in (tmp_path / "best").iterdir()) == ["head.json", "head.safetensors"]
