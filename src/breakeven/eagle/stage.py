"""A stage's folder: whether it is whole, what it was made from, and that it goes on only with the same
settings.

`begun.json` is written first and says with what; `stage.json` last, beside what the stage made. Between them
a stage keeps what it needs to go on. Both files hold the settings as the recipe had them.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import orjson

from breakeven.errors import RunFormatError, UsageError
from breakeven.trace.files import storing, write_bytes_atomically
from breakeven.trace.typed import check_types

BEGUN, WHOLE = "begun.json", "stage.json"
PACKAGES = ("breakeven", "torch", "transformers", "speculators", "safetensors", "tokenizers")
FORMAT_VERSION = 1
EMPTIED: Mapping[str, Any] = {"emptied": True}
"""In begun.json: the folder is a stage's, which is yet to begin."""
FREE = frozenset({"concurrency"})
"""Settings on which nothing that comes out depends."""
NOTHING: Mapping[str, Path] = {}
BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Made:
    """What stage.json says."""

    stage: str
    settings: Mapping[str, Any]
    """As the recipe had them, with everything else that changes what comes out."""
    inputs: Mapping[str, str]
    """SHA-256 of what was read, by name."""
    outputs: Mapping[str, str]
    """SHA-256 of what was written, by path in the folder."""
    found: Mapping[str, Any]
    """Figures that the next stages and the card need: counts, coverage, losses."""
    packages: Mapping[str, str]
    began: float
    """Seconds since 1970; of the first time, if it was interrupted."""
    ended: float
    format_version: int = FORMAT_VERSION


class Stage:
    """One stage's folder: new, empty, or begun by this.

    Raises UsageError if it was begun with other settings (but for the FREE ones) or inputs, naming the first
    that differs, or if it holds what no stage made; StorageError.
    """

    def __init__(
        self, folder: Path, name: str, settings: Mapping[str, Any], inputs: Mapping[str, str]
    ) -> None:
        self.folder = folder
        self.name = name
        self._asked = {"stage": name, "settings": _plain(settings), "inputs": dict(inputs)}
        begun = _read_begun(folder)
        if begun is None:
            begun = {**self._asked, "began": time.time()}
            with storing(folder):
                folder.mkdir(parents=True, exist_ok=True)
                _write(folder / BEGUN, begun)
        self._refuse_others(begun)
        self._began: float = begun["began"]

    @property
    def made(self) -> Made | None:
        """What stage.json says; None while the stage is not whole."""
        return read_made(self.folder)

    def finish(self, outputs: Sequence[Path], found: Mapping[str, Any]) -> Made:
        """Says that the stage is whole; `outputs` are files in its folder. Raises StorageError."""
        with storing(self.folder):
            sums = {str(path.relative_to(self.folder)): checksum(path) for path in outputs}
            made = Made(
                self.name,
                self._asked["settings"],
                self._asked["inputs"],
                sums,
                _plain(found),
                packages(),
                self._began,
                time.time(),
            )
            _write(self.folder / WHOLE, made)
        return made

    def _refuse_others(self, begun: Mapping[str, Any]) -> None:
        for part, free in (("settings", FREE), ("inputs", ())):
            before, now = begun[part], self._asked[part]
            for key in [*now, *(key for key in before if key not in now)]:
                if key not in free and before.get(key) != now.get(key):
                    began = _began(part, key, before.get(key), now.get(key))
                    raise UsageError(
                        f"{self.folder} was begun {began}: put that back, name another folder in the recipe, "
                        f"or type  --fresh  to make {self.name} anew"
                    )


def _began(part: str, key: str, before: Any, now: Any) -> str:
    """How it was, in words; a checksum says nobody anything."""
    if part == "settings":
        return f"with {key} = {before!r}, not {now!r}"
    return f"without {key}" if before is None else f"with another {key}"


def read_made(folder: Path) -> Made | None:
    """None if the stage in this folder is not whole. Raises RunFormatError for a damaged file."""
    said = _read(folder / WHOLE)
    if said is None:
        return None
    number = said.get("format_version")
    if type(number) is int and number > FORMAT_VERSION:
        raise RunFormatError(
            f"{folder / WHOLE} has format {number}, and this version reads up to {FORMAT_VERSION}: type  pip "
            "install -U breakeven"
        )
    try:
        return check_types(Made(**said))
    except TypeError as error:
        raise _damaged(folder / WHOLE, error) from error


def required(folder: Path, stage: str, made_from: Mapping[str, Path] = NOTHING) -> Made:
    """What an earlier stage says.

    Raises UsageError, with what to type, if it is not whole, or if one of the files that it was `made_from`,
    by the names of its inputs, has changed since.
    """
    made = read_made(folder)
    if made is None:
        raise UsageError(f"{folder} holds no finished {stage}: type  breakeven eagle {stage} RECIPE  first")
    for name, path in made_from.items():
        if not path.is_file() or made.inputs.get(name) != checksum(path):
            raise UsageError(
                f"{path} is not the one that {folder} was made from: put that back, or type  breakeven "
                f"eagle {stage} RECIPE --fresh"
            )
    return made


def start_over(folder: Path, keep: Collection[str] = ()) -> None:
    """Removes what a stage made there, whole or not: what --fresh does. The folder is gone at once or not at
    all.

    With `keep` these entries stay in it, and a folder that is a link is emptied too: the stage is no longer
    whole from the first moment on. Raises UsageError for a folder that no stage began; StorageError.
    """
    if not folder.exists():
        return
    if not (folder / BEGUN).exists():
        raise UsageError(
            f"{folder} is no stage's folder, and --fresh would remove it: name another in the recipe"
        )
    with storing(folder):
        if keep or folder.is_symlink():
            _remove_others(folder, keep)
            return
        removed = folder.with_name(f".{folder.name}.removed")
        if removed.exists():
            shutil.rmtree(removed)
        folder.rename(removed)
        shutil.rmtree(removed)


def _remove_others(folder: Path, keep: Collection[str]) -> None:
    """stage.json first: without it, what is left is a stage that was interrupted."""
    (folder / WHOLE).unlink(missing_ok=True)
    for entry in folder.iterdir():
        if entry.name in (*keep, BEGUN):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    _write(folder / BEGUN, EMPTIED)


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def packages() -> dict[str, str]:
    """Versions of what takes part, of those that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _read_begun(folder: Path) -> dict[str, Any] | None:
    """None for a folder where the stage is yet to begin."""
    said = _read(folder / BEGUN)
    if said is None:
        _refuse_foreign(folder)
    if said is None or said == EMPTIED:
        return None
    for name, kind in (("settings", dict), ("inputs", dict), ("began", (int, float))):
        if not isinstance(said.get(name), kind):
            raise _damaged(folder / BEGUN, TypeError(f"it has no {name}"))
    return said


def _refuse_foreign(folder: Path) -> None:
    """What someone else keeps there is not to be removed by --fresh some day."""
    try:
        entries = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be read ({error.strerror}): name another folder in the recipe"
        ) from error
    foreign = [name for name in entries if name != f".{BEGUN}.partial"]
    if foreign and BEGUN not in foreign:
        raise UsageError(
            f'{folder} holds {foreign[0]}, which no stage made: write another  folder = "…"  at the top of '
            "the recipe"
        )


def _read(path: Path) -> dict[str, Any] | None:
    try:
        said = orjson.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error
    if not isinstance(said, dict):
        raise _damaged(path, TypeError("it is no table"))
    return said


def _write(path: Path, record: Any) -> None:
    data = orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY)
    write_bytes_atomically(path, data)


def _plain(record: Any) -> Any:
    """As it is after a round trip through JSON, so that what was read compares with what is asked."""
    return orjson.loads(orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY))


def _damaged(path: Path, error: Exception) -> RunFormatError:
    return RunFormatError(f"{path} is damaged ({error}): remove its folder, and make the stage again")
