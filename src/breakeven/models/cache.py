"""The folder where weights are kept, and what is in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from breakeven.models.catalog import MODELS, CatalogModel


@dataclass(frozen=True, slots=True)
class Cached:
    """One model known by name, or fetched from the hub. `size_bytes` is None while it is absent."""

    spec: str
    path: Path
    size_bytes: int | None
    note: str

    @property
    def present(self) -> bool:
        """Whether its file is in the cache."""
        return self.size_bytes is not None


def folder() -> Path:
    """$BREAKEVEN_CACHE, or the user's cache folder."""
    named = os.environ.get("BREAKEVEN_CACHE")
    return (
        Path(named).expanduser() if named else Path(platformdirs.user_cache_dir("breakeven", appauthor=False))
    )


def path_of(model: CatalogModel) -> Path:
    """Where a named model is kept."""
    return folder() / model.file


def entries() -> list[Cached]:
    """The catalog, then what came from the hub."""
    named = [Cached(model.name, path_of(model), _size(path_of(model)), model.note) for model in MODELS]
    return [*named, *_from_hub()]


def _from_hub() -> Iterator[Cached]:
    hub = folder() / "hub"
    for path in sorted(hub.glob("*/*/*/**/*.gguf")):
        org, repo, revision, *file = path.relative_to(hub).parts
        spec = f"hf:{org}/{repo}/{'/'.join(file)}" + ("" if revision == "main" else f"@{revision}")
        yield Cached(spec, path, _size(path), "from the hub")


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
