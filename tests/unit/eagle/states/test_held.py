"""States are read as they were kept, or it is said what to type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from safetensors.torch import save  # noqa: E402

from breakeven.eagle.states.held import HeldStates  # noqa: E402
from breakeven.eagle.states.passes import STATES, TOP_IDS, Passed  # noqa: E402
from breakeven.eagle.states.shards import FILE, Index  # noqa: E402
from breakeven.errors import RunFormatError, UsageError  # noqa: E402

pytestmark = pytest.mark.eagle

TOKENS = {"a": 5, "b": 3, "c": 4}
SHARDS = (("shard-00000.safetensors", "a", "b"), ("shard-00001.safetensors", "c"))


@pytest.fixture(scope="module")
def passed() -> dict[str, Passed]:
    torch.manual_seed(1)
    return {
        name: Passed(torch.randn(n, 4, 8), torch.randint(9, (n, 2), dtype=torch.int32), torch.randn(n, 2))
        for name, n in TOKENS.items()
    }


@pytest.fixture
def folder(passed: dict[str, Passed], tmp_path: Path) -> Path:
    index = Index(tmp_path)
    for shard, *names in SHARDS:
        tensors: dict[str, Any] = {}
        for name in names:
            tensors |= passed[name].named(name)
        index.add(shard, save(tensors), names, sum(TOKENS[name] for name in names))
    return tmp_path


def names(held: HeldStates, *samples: str) -> list[str]:
    return [line.shard for line in held.shards_of(samples)]


def test_what_was_kept_is_read(folder: Path, passed: dict[str, Passed]) -> None:
    held = HeldStates(folder)
    for name, n in TOKENS.items():
        states, top = held.read(name, n, STATES, TOP_IDS)
        assert torch.equal(states, passed[name].hidden_states) and torch.equal(top, passed[name].top_ids)
        (fewer,) = held.read(name, n - 1, STATES)
        assert torch.equal(fewer, passed[name].hidden_states[: n - 1])


def test_each_shard_is_named_once_and_in_order(folder: Path) -> None:
    held = HeldStates(folder)
    assert names(held, "c", "b", "a") == [shard for shard, *_ in SHARDS]
    assert names(held, "b") == [SHARDS[0][0]]
    assert names(held) == []


def test_a_sample_without_states(folder: Path) -> None:
    held = HeldStates(folder)
    for ask in (lambda: held.read("d", 1, STATES), lambda: held.shards_of(["a", "d"])):
        with pytest.raises(UsageError, match=r"no states of sample d: .*--fresh"):
            ask()


def test_a_sample_of_more_tokens(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"hidden_states of 5 tokens of sample a, which has 6.*--fresh"):
        HeldStates(folder).read("a", 6, STATES)


def test_one_flipped_bit_is_noticed(folder: Path) -> None:
    path = folder / SHARDS[1][0]
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    held = HeldStates(folder)
    held.read("c", 4, STATES)  # it is read without a word …
    held.verify(held.shards_of("ab"))
    with pytest.raises(RunFormatError, match=r"shard-00001\.safetensors is damaged.*--recheck"):
        held.verify(held.shards_of("abc"))  # … and so is looked at before


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"no")])
def test_a_shard_that_cannot_be_read(damage: Any, folder: Path) -> None:
    damage(folder / SHARDS[0][0])
    held = HeldStates(folder)
    with pytest.raises(RunFormatError, match=r"cannot be read.*--recheck"):
        held.read("a", 5, STATES)
    with pytest.raises(RunFormatError, match=r"shard-00000.*--recheck"):
        held.verify(held.shards_of("a"))


def test_a_folder_without_an_index(folder: Path) -> None:
    (folder / FILE).unlink()
    with pytest.raises(RunFormatError, match=r"shards\.jsonl cannot be read"):
        HeldStates(folder)
