"""checkpoint-000500/: a training as it stood after that many optimizer steps.

head.safetensors       the head, float32, by the trainer library's names
optimizer.safetensors  step.NAME, exp_avg.NAME, exp_avg_sq.NAME of AdamW for each trained parameter; rng
state.json             {"format_version": 1, "step": 500, "best": the best validation or null, "head": {…}}

The place in the data and the learning rate follow from the step. A folder is made under another name and
renamed once it is on the disk: what has its name is whole. best/ holds head.safetensors and head.json.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from breakeven.eagle.train.config import difference
from breakeven.eagle.train.model import restore, stored, trained
from breakeven.eagle.train.records import Validation, validation_from
from breakeven.errors import RunFormatError, UsageError
from breakeven.trace.files import storing, write_bytes_atomically

PREFIX, KEPT = "checkpoint-", 2
HEAD, OPTIMIZER, STATE, RNG = "head.safetensors", "optimizer.safetensors", "state.json", "rng"
OF_OPTIMIZER = ("step", "exp_avg", "exp_avg_sq")
BEST, HEAD_CONFIG = "best", "head.json"
FORMAT_VERSION = 1
BROKEN = (OSError, SafetensorError, ValueError, KeyError, TypeError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a training has come."""

    step: int = 0
    best: Validation | None = None


class Checkpoints:
    """Those of one training, whose head is `config` (config.py)."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self._folder, self._config = folder, config

    def save(self, head: Any, optimizer: Any, reached: Reached) -> None:
        """Beside the one before it; older ones are removed then. Raises StorageError, and nothing is lost."""
        state = {"format_version": FORMAT_VERSION, **asdict(reached), "head": self._config}
        files: dict[str, Callable[[], bytes]] = {
            HEAD: lambda: save(stored(head)),
            OPTIMIZER: lambda: save(_optimizer_tensors(head, optimizer)),
            STATE: lambda: _json(state),
        }
        with storing(self._folder):
            _write_folder(self._folder / f"{PREFIX}{reached.step:06d}", files)
            for older in self._all()[:-KEPT]:
                shutil.rmtree(older)

    def load(self, head: Any, optimizer: Any) -> Reached:
        """Puts the newest into a head on its device, and its optimizer; leaves both alone if there is none.

        Raises UsageError for a checkpoint of another architecture, RunFormatError for a damaged one.
        """
        newest = self._all()[-1:]
        if not newest:
            return Reached()
        try:
            return self._load(newest[0], head, optimizer)
        except BROKEN as error:
            raise RunFormatError(
                f"{newest[0]} is damaged ({error}): remove it to go on from the one before, or type  --fresh"
            ) from error

    def save_best(self, head: Any, found: Mapping[str, Any]) -> None:
        """best/, with `found` beside the configuration in head.json. Raises StorageError."""
        folder = self._folder / BEST
        said = _json({**self._config, "trained": found})
        with storing(folder):
            folder.mkdir(exist_ok=True)
            for name, data in ((HEAD, save(stored(head))), (HEAD_CONFIG, said)):
                write_bytes_atomically(folder / name, data)

    def _all(self) -> list[Path]:
        """By step."""
        found = [path for path in self._folder.glob(f"{PREFIX}*") if path.name[len(PREFIX) :].isdecimal()]
        return sorted(found, key=lambda path: int(path.name[len(PREFIX) :]))

    def _load(self, path: Path, head: Any, optimizer: Any) -> Reached:
        state = orjson.loads((path / STATE).read_bytes())
        if (differs := difference(state["head"], self._config)) is not None:
            raise UsageError(
                f"{path} is of a head of another architecture ({differs}): name another  folder  in the "
                "recipe, or type  --fresh  to train this one anew"
            )
        restore(head, load_file(path / HEAD))
        tensors = load_file(path / OPTIMIZER)
        torch.set_rng_state(tensors[RNG])
        for name, parameter in trained(head).items():
            step, *averages = (tensors[f"{key}.{name}"] for key in OF_OPTIMIZER)
            moved = [one.to(parameter.device) for one in averages]
            optimizer.state[parameter] = dict(zip(OF_OPTIMIZER, [step, *moved], strict=True))
        best = state["best"]
        return Reached(state["step"], best and validation_from(best))


def _optimizer_tensors(head: Any, optimizer: Any) -> dict[str, Any]:
    found = {
        f"{key}.{name}": optimizer.state[parameter][key].detach().cpu().contiguous()
        for name, parameter in trained(head).items()
        for key in OF_OPTIMIZER
    }
    return {**found, RNG: torch.get_rng_state()}


def _write_folder(path: Path, files: Mapping[str, Callable[[], bytes]]) -> None:
    """Whole, or not at all."""
    unfinished = path.with_name(f".{path.name}.partial")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        for name, make in files.items():
            write_bytes_atomically(unfinished / name, make())
        shutil.rmtree(path, ignore_errors=True)
        unfinished.rename(path)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _json(said: Mapping[str, Any]) -> bytes:
    return orjson.dumps(said, option=orjson.OPT_INDENT_2)
