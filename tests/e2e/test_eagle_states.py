"""`breakeven eagle states` as a user runs it: killed, on a disk that fills up, and against a real vLLM."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from safetensors.torch import load_file  # noqa: E402

from breakeven.eagle.recipe_file import read_recipe  # noqa: E402
from breakeven.eagle.states.flags import speculative_config, transfer_config  # noqa: E402
from tests.e2e.command import Command, breakeven, soon  # noqa: E402
from tests.e2e.small_recipe import write_data, write_recipe  # noqa: E402
from tests.e2e.small_target import RECORD, small_target  # noqa: E402
from tests.e2e.vllm_server import vllm_server  # noqa: E402

PYTHON = os.environ.get("BREAKEVEN_VLLM_PYTHON", "")
pytestmark = pytest.mark.eagle

CHATS = 60
SHARD = {"tokens_per_shard": 256}
LAYERS, TARGET_LAYERS = (2, 4, 5), 8
CONNECTOR = {"kv_connector": "CpuHiddenStatesConnector", "kv_connector_module_path": "cpu_hidden_states"}


@pytest.fixture(scope="module")
def target() -> Path:
    return small_target()


@pytest.fixture(scope="module")
def whole(target: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe whose states were made without interruption."""
    recipe = write_recipe(tmp_path_factory.mktemp("whole"), target, states=SHARD)
    write_data(recipe, CHATS)
    said = breakeven("eagle", "states", recipe, "--json").succeeded().json()
    assert said["samples"] == CHATS and said["layers"] == list(LAYERS) and said["shards"] > 8
    return recipe


@pytest.fixture
def recipe(whole: Path, target: Path, tmp_path: Path) -> Path:
    """The same, before."""
    made = write_recipe(tmp_path, target, states=SHARD)
    shutil.copytree(folder_of(whole, "data"), folder_of(made, "data"))
    return made


def folder_of(recipe: Path, stage: str) -> Path:
    return read_recipe(recipe).stage(stage)


def kept(recipe: Path) -> Mapping[str, bytes]:
    folder = folder_of(recipe, "states")
    times = ("begun.json", "stage.json")
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in times}


def listed(recipe: Path) -> int:
    path = folder_of(recipe, "states") / "shards.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_the_small_target_has_learned_something(target: Path) -> None:
    record = json.loads((target / RECORD).read_text())
    assert record["loss"] < 0.6 * record["entropy"]


@pytest.mark.parametrize("shards", [1, 4, 7])
def test_after_kill_9_the_shards_are_those_of_an_uninterrupted_run(
    shards: int, whole: Path, recipe: Path
) -> None:
    command = Command("eagle", "states", recipe)
    assert soon(lambda: listed(recipe) >= shards or command.process.poll() is not None)
    command.signal(signal.SIGKILL)
    assert command.end().code == -signal.SIGKILL
    left = {path: path.stat().st_mtime_ns for path in folder_of(recipe, "states").glob("shard-*")}
    breakeven("eagle", "states", recipe).succeeded()
    assert kept(recipe) == kept(whole)
    assert sum(path.stat().st_mtime_ns == at for path, at in left.items()) >= shards


def test_ctrl_c_says_how_to_go_on(whole: Path, recipe: Path) -> None:
    command = Command("eagle", "states", recipe)
    assert soon(lambda: listed(recipe) >= 2 or command.process.poll() is not None)
    command.signal(signal.SIGINT)
    done = command.end()
    assert done.code == 130 and f"breakeven eagle states {recipe}" in done.err
    breakeven("eagle", "states", recipe).succeeded()
    assert kept(recipe) == kept(whole)


def test_a_disk_that_fills_up_in_the_middle_loses_nothing(whole: Path, recipe: Path) -> None:
    command = Command("eagle", "states", recipe)
    assert soon(lambda: listed(recipe) >= 3 or command.process.poll() is not None)
    command.signal(signal.SIGKILL)
    command.end()
    shards = {path.name: path.read_bytes() for path in folder_of(recipe, "states").glob("shard-*")}
    least = min(path.stat().st_size for path in folder_of(whole, "states").glob("shard-*"))
    full = breakeven("eagle", "states", recipe, most_file_bytes=least // 2)
    full.refused(3, "cannot write to", f"breakeven eagle states {recipe}")
    after = kept(recipe)
    assert {name: after[name] for name in shards} == shards
    breakeven("eagle", "states", recipe).succeeded()
    assert kept(recipe) == kept(whole)


def test_a_second_one_meanwhile_is_refused_and_disturbs_nothing(whole: Path, recipe: Path) -> None:
    command = Command("eagle", "states", recipe)
    assert soon(lambda: listed(recipe) >= 2 or command.process.poll() is not None)
    command.signal(signal.SIGSTOP)
    for more in ((), ("--fresh",), ("--recheck",)):
        breakeven("eagle", "states", recipe, *more).refused(2, "another breakeven is at work in")
    breakeven("eagle", "data", recipe, "--fresh").refused(2, "another breakeven is at work in")
    command.signal(signal.SIGCONT)
    command.end().succeeded()
    assert kept(recipe) == kept(whole)


def test_whole_states_on_a_disk_that_is_read_only_are_told(whole: Path, tmp_path: Path) -> None:
    recipe = Path(shutil.copytree(whole.parent, tmp_path / "theirs")) / whole.name
    before = breakeven("eagle", "states", recipe, "--json").succeeded().json()
    with read_only(recipe.parent):
        said = breakeven("eagle", "states", recipe, "--json", obeys_modes=True).succeeded().json()
        refused = breakeven("eagle", "states", recipe, "--recheck", obeys_modes=True)
        fresh = breakeven("eagle", "states", recipe, "--fresh", obeys_modes=True)
    assert said == before
    for done in (refused, fresh):
        done.refused(3, "cannot write to", "no permission")
    assert kept(recipe) == kept(whole)


def test_states_of_a_recipe_that_is_read_only_are_not_begun(recipe: Path) -> None:
    with read_only(recipe.parent):
        breakeven("eagle", "states", recipe, obeys_modes=True).refused(3, "cannot write to", "no permission")
    assert not folder_of(recipe, "states").exists()


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """All of it."""
    modes = {path: path.stat().st_mode for path in (folder, *folder.rglob("*"))}
    for path, mode in modes.items():
        path.chmod(mode & 0o555)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def test_batches_change_nothing_but_rounding(whole: Path, target: Path, tmp_path: Path) -> None:
    alone = write_recipe(tmp_path, target, states={**SHARD, "batch": 1})
    shutil.copytree(folder_of(whole, "data"), folder_of(alone, "data"))
    breakeven("eagle", "states", alone).succeeded()
    compare(alone, whole, 1e-4)


def compare(one: Path, other: Path, close: float) -> None:
    """All states, and the probabilities of the top tokens, of two stages in float32."""
    for path in sorted(folder_of(one, "states").glob("shard-*")):
        ours, theirs = load_file(path), load_file(folder_of(other, "states") / path.name)
        assert ours.keys() == theirs.keys()
        for name, tensor in ours.items():
            if not name.endswith("top_ids"):
                torch.testing.assert_close(tensor, theirs[name], rtol=close, atol=close)


def test_without_torch_it_says_what_to_install(recipe: Path, tmp_path: Path) -> None:
    lacking = tmp_path / "lacking"
    lacking.mkdir()
    (lacking / "torch.py").write_text("raise ImportError('no torch here')\n")
    path = os.pathsep.join([str(lacking), os.environ.get("PYTHONPATH", "")])
    done = breakeven("eagle", "states", recipe, env={"PYTHONPATH": path})
    done.refused(2, "torch is not installed", "pip install 'breakeven[eagle]'")


@pytest.mark.vllm
@pytest.mark.skipif(not PYTHON, reason="BREAKEVEN_VLLM_PYTHON names no Python that has vLLM")
def test_states_from_a_real_vllm_are_those_of_transformers(whole: Path, target: Path, tmp_path: Path) -> None:
    """vLLM's CPU build runs the extraction; its connector copies into pinned memory, which ours in
    cpu_hidden_states.py does not."""
    transfer: dict[str, Any] = json.loads(transfer_config(tmp_path / "shared")) | CONNECTOR
    speculative = json.loads(speculative_config(LAYERS, TARGET_LAYERS))
    with vllm_server(
        PYTHON,
        target,
        speculative,
        tmp_path / "vllm.log",
        512,
        more=("--kv-transfer-config", json.dumps(transfer)),
        variables={"PYTHONPATH": str(Path(__file__).parent)},
    ) as url:
        made = write_recipe(tmp_path, target, target={"url": f"{url}/v1"}, states={**SHARD, "source": "vllm"})
        shutil.copytree(folder_of(whole, "data"), folder_of(made, "data"))
        breakeven("eagle", "states", made).succeeded()
    compare(made, whole, 1e-3)
    assert not list((tmp_path / "shared").glob("*.safetensors*"))


@pytest.mark.vllm
@pytest.mark.skipif(not PYTHON, reason="BREAKEVEN_VLLM_PYTHON names no Python that has vLLM")
def test_a_vllm_that_was_started_otherwise_says_the_flags(whole: Path, target: Path, tmp_path: Path) -> None:
    ngram = {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_min": 2, "prompt_lookup_max": 3}
    with vllm_server(PYTHON, target, ngram, tmp_path / "vllm.log", 512) as url:
        made = write_recipe(tmp_path, target, target={"url": f"{url}/v1"}, states={**SHARD, "source": "vllm"})
        shutil.copytree(folder_of(whole, "data"), folder_of(made, "data"))
        done = breakeven("eagle", "states", made)
    done.refused(2, "hands out no hidden states", "extract_hidden_states", "[2, 4, 5, 8]")
