"""A geometry as JSON: the format of presets, of files written by hand, and of `models describe --json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from breakeven.cost.attention import Attention, GroupedQuery, Latent
from breakeven.cost.fields import Fields
from breakeven.cost.geometry import Experts, Geometry, Sliding
from breakeven.cost.precision import BF16, PARTS, Precision, Precisions
from breakeven.errors import UsageError

_KEYS = {
    *("architecture", "layers", "hidden", "vocab", "tied", "attention", "dense_layers", "dense_ff"),
    *("experts", "sliding", "mtp_layers", "bits", "kv_bits", "source", "note"),
}


def geometry_from_json(value: dict[str, Any], where: str) -> Geometry:
    """Raises UsageError, which names the field, for what is missing, unknown or impossible.

    `dense_layers` defaults to all layers without `experts` and to none with them; `bits` gives for any of
    PARTS a number or {bits, group, scale_bits}, and 16 for the rest.
    """
    unknown = sorted(set(value) - _KEYS)
    if unknown:
        raise UsageError(
            f"{where} has {unknown[0][:40]!r}, which no geometry has: it knows {', '.join(sorted(_KEYS))}"
        )
    fields = Fields(value, where)
    layers = fields.count("layers")
    experts = fields.child("experts")
    dense_layers = fields.count("dense_layers", default=0 if experts else layers, least=0)
    return Geometry(
        architecture=fields.text("architecture", "by hand"),
        layers=layers,
        hidden=fields.count("hidden"),
        vocab=fields.count("vocab"),
        attention=_attention(fields),
        dense_layers=dense_layers,
        dense_ff=fields.count("dense_ff", default=0, least=0),
        experts=_experts(experts) if experts else None,
        tied=fields.flag("tied"),
        sliding=_sliding(fields.child("sliding")),
        mtp_layers=fields.count("mtp_layers", default=0, least=0),
        weights=_precisions(fields.child("bits")),
        kv_bits=fields.number("kv_bits", default=16),
        source=fields.text("source", where),
    )


def geometry_to_json(geometry: Geometry) -> dict[str, Any]:
    """What geometry_from_json reads, in full."""
    attention = {key: value for key, value in asdict(geometry.attention).items() if value is not None}
    found: dict[str, Any] = {
        "architecture": geometry.architecture,
        "layers": geometry.layers,
        "hidden": geometry.hidden,
        "vocab": geometry.vocab,
        "tied": geometry.tied,
        "attention": attention,
        "dense_layers": geometry.dense_layers,
        "dense_ff": geometry.dense_ff,
    }
    if geometry.experts:
        found["experts"] = asdict(geometry.experts)
    if geometry.sliding:
        found["sliding"] = asdict(geometry.sliding)
    bits = {part: _bits(geometry.weights.of(part)) for part in PARTS}
    return found | {
        "mtp_layers": geometry.mtp_layers,
        "bits": bits,
        "kv_bits": geometry.kv_bits,
        "source": geometry.source,
    }


def _attention(fields: Fields) -> Attention:
    found = fields.child("attention")
    if found is None:
        raise UsageError(f"{fields.where} has no attention: give its heads, kv_heads and head_dim")
    if found.get("kv_rank") is None:
        return GroupedQuery(found.count("heads"), found.count("kv_heads"), found.count("head_dim"))
    return Latent(
        heads=found.count("heads"),
        q_rank=found.maybe_count("q_rank"),
        kv_rank=found.count("kv_rank"),
        nope_dim=found.count("nope_dim"),
        rope_dim=found.count("rope_dim"),
        v_dim=found.count("v_dim"),
    )


def _experts(found: Fields) -> Experts:
    ff = found.count("ff")
    return Experts(
        count=found.count("count"),
        top_k=found.count("top_k"),
        ff=ff,
        shared=found.count("shared", default=0, least=0),
        shared_ff=found.count("shared_ff", default=ff, least=0),
    )


def _sliding(found: Fields | None) -> Sliding | None:
    return None if found is None else Sliding(found.count("layers"), found.count("window"))


def _precisions(found: Fields | None) -> Precisions:
    if found is None:
        return Precisions()
    unknown = sorted(set(found.values) - set(PARTS))
    if unknown:
        raise UsageError(f"{found.where} has {unknown[0][:40]!r}: it knows {', '.join(PARTS)}")
    return Precisions(**{part: _precision(found, part) for part in found.values})


def _precision(found: Fields, part: str) -> Precision:
    if not isinstance(found.get(part), dict):
        return Precision(found.number(part, default=BF16.bits))
    one = found.child(part) or found
    return Precision(
        one.number("bits", default=BF16.bits), one.maybe_count("group"), one.number("scale_bits", default=0)
    )


def _bits(precision: Precision) -> float | dict[str, float]:
    if precision.group is None:
        return precision.bits
    return {"bits": precision.bits, "group": precision.group, "scale_bits": precision.scale_bits}
