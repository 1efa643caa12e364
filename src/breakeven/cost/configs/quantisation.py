"""What a quantization_config block says of each part of a model: bits, groups, scales.

The formats, each by the engine code that reads them (vllm/model_executor/layers/quantization/):
fp8 (block scales of DeepSeek-V3, arXiv 2412.19437, section 3.3.2), gptq, awq, compressed-tensors,
bitsandbytes, mxfp4 (OCP Microscaling v1.0: one scale of 8 bits for 32 weights), modelopt (NVFP4: for 16).
Embedding tables, routers and norms stay as the config's dtype has them.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from breakeven.cost.attention import Attention
from breakeven.cost.fields import BY_HAND, Fields
from breakeven.cost.precision import Precision, Precisions
from breakeven.errors import UsageError

PrecisionOf = Callable[[str], Precision | None]
"""The precision of a module by its name, None where it is not quantised."""
_FULL_BITS = {"float32": 32, "bfloat16": 16, "float16": 16}
_FP16 = 16
_FP32 = 32
_FP8_SCALE = 8
_REPEAT = re.compile(r"[*+{]|(?<![(*+?}])\?")
_REPEATED_GROUP = re.compile(r"(?<!\\)\)[*+{]")
_MOST_REPEATS = 5
"""In one pattern: matching backtracks, and takes time like the length of a name to this power."""
_PREFIXES = ("", "language_model.")


def precisions(fields: Fields, attention: Attention, layers: int, dense_layers: int) -> Precisions:
    """Of every part; a layer in the middle of those with experts stands for all.

    Raises UsageError for an unknown method.
    """
    dtype = fields.text("torch_dtype") or fields.text("dtype", "bfloat16")
    full = Precision(_FULL_BITS.get(dtype, 16))
    plain = Precisions(full, full, full, full, full, full, full)
    block = fields.child("quantization_config")
    if block is None:
        return plain
    of = _reader(block)
    layer = f"model.layers.{(layers + dense_layers % layers) // 2}"
    first = layer if dense_layers == layers else "model.layers.0"
    projections = attention.modules(fields.count("hidden_size"))
    return replace(
        plain,
        attention=_mean(projections, f"{layer}.self_attn", of, full),
        dense=of(f"{first}.mlp.gate_proj") or full,
        routed=of(f"{layer}.mlp.experts.0.gate_proj") or full,
        shared=of(f"{layer}.mlp.shared_experts.gate_proj") or full,
        output=of("lm_head") or full,
    )


def kv_bits(fields: Fields) -> float:
    """8 where the config asks for a cache in FP8 or INT8, else 16. Engines may be told otherwise."""
    block = fields.child("quantization_config")
    if block is None:
        return 16
    scheme = block.get("kv_cache_scheme", "kv_cache_quant_algo")
    if isinstance(scheme, dict):
        return Fields(scheme, f"kv_cache_scheme of {block.where}").number("num_bits", default=16)
    return 8 if isinstance(scheme, str) and scheme.upper() in ("FP8", "INT8") else 16


def _mean(sizes: dict[str, int], path: str, of: PrecisionOf, full: Precision) -> Precision:
    """Over the projections of a layer, of which some may be quantised and others not, by their size."""
    found = {name: of(f"{path}.{name}") or full for name in sizes}
    kinds = set(found.values())
    if len(kinds) == 1:
        return kinds.pop()
    total = sum(sizes.values())
    return Precision(sum(found[name].bits_per_weight * n for name, n in sizes.items()) / total)


def _reader(block: Fields) -> PrecisionOf:
    method = block.text("quant_method") or ("modelopt" if block.get("quant_algo") else "")
    if method not in _READERS:
        raise UsageError(
            f"{block.where} has the quant_method {method[:40]!r}: known are {', '.join(_READERS)}. {BY_HAND}"
        )
    return _READERS[method](block)


def _all_but(precision: Precision, skipped: Iterable[str]) -> PrecisionOf:
    """One precision for every linear layer but those skipped and, unless it is asked for, the output head."""
    patterns = tuple(skipped)

    def of(module: str) -> Precision | None:
        return None if module == "lm_head" or listed(patterns, module) else precision

    return of


def _fp8(block: Fields) -> PrecisionOf:
    sizes = block.items("weight_block_size")
    precision = Precision(8, _product(sizes, block), _FP32) if sizes else Precision(8)
    return _all_but(precision, block.texts("modules_to_not_convert", "ignored_layers"))


def _gptq(block: Fields) -> PrecisionOf:
    bits = block.count("bits", most=8)
    precision = _grouped(bits, block.number("group_size", default=128), _FP16 + bits)
    of = _all_but(precision, block.texts("modules_in_block_to_not_quantize"))
    return lambda module: precision if module == "lm_head" and block.flag("lm_head") else of(module)


def _awq(block: Fields) -> PrecisionOf:
    bits = block.count("bits", "w_bit", most=8)
    scale = _FP16 + (bits if block.flag("zero_point", True) else 0)
    group = block.number("group_size", "q_group_size", default=128)
    return _all_but(_grouped(bits, group, scale), block.texts("modules_to_not_convert"))


def _bitsandbytes(block: Fields) -> PrecisionOf:
    """NF4 in blocks of 64 with an FP32 scale; double quantisation makes it 8 bits and one more per 256
    (QLoRA, arXiv 2305.14314, section 3). INT8 has a scale per row, too few to count."""
    double = block.flag("bnb_4bit_use_double_quant")
    four = Precision(4, 64, 8 + _FP32 / 256 if double else _FP32)
    precision = four if block.flag("load_in_4bit") else Precision(8)
    return _all_but(precision, block.texts("llm_int8_skip_modules"))


def _mxfp4(block: Fields) -> PrecisionOf:
    """Routed experts only, as gpt-oss has it."""
    of = _all_but(Precision(4, 32, _FP8_SCALE), block.texts("modules_to_not_convert"))
    return lambda module: of(module) if ".experts." in module else None


def _modelopt(block: Fields) -> PrecisionOf:
    skipped = block.texts("ignore", "exclude_modules")
    if block.get("config_groups") is not None:
        return _compressed_tensors(block)
    algo = block.text("quant_algo")
    known = {"NVFP4": Precision(4, 16, _FP8_SCALE), "FP8": Precision(8)}
    if algo not in known:
        raise UsageError(f"{block.where} has the quant_algo {algo[:40]!r}: known are {', '.join(known)}")
    return _all_but(known[algo], skipped)


def _compressed_tensors(block: Fields) -> PrecisionOf:
    """The first group whose targets hold the module; `Linear` holds every one that is not ignored."""
    groups = block.child("config_groups") or Fields({}, block.where)
    ignored = block.texts("ignore")
    schemes = [
        (one.texts("targets") or ["Linear"], _scheme(weights))
        for name in groups.values
        if (one := groups.child(name)) and (weights := one.child("weights"))
    ]

    def of(module: str) -> Precision | None:
        if listed(ignored, module):
            return None
        return next((got for targets, got in schemes if "Linear" in targets or listed(targets, module)), None)

    return of


def _scheme(weights: Fields) -> Precision:
    bits = weights.count("num_bits", most=64)
    if weights.get("block_structure"):
        return Precision(bits, _product(weights.items("block_structure"), weights), _FP32)
    scale = _FP8_SCALE if weights.text("type", "int") == "float" else _FP16
    zero = 0 if weights.flag("symmetric", True) else bits
    return _grouped(bits, weights.number("group_size", default=-1), scale + zero)


def _grouped(bits: int, group: float, scale_bits: float) -> Precision:
    """A group size of −1 or 0 means a scale per channel, too few to count."""
    return Precision(bits, int(group), scale_bits) if group > 0 else Precision(bits)


def _product(sizes: list[object], block: Fields) -> int:
    if not all(isinstance(n, int) and n > 0 for n in sizes):
        raise UsageError(f"{block.where} has blocks of {str(sizes)[:40]}, which are no sizes")
    return math.prod(n for n in sizes if isinstance(n, int))


def listed(patterns: Iterable[str], module: str) -> bool:
    """Whether a module is under any of the patterns, in the ways that configs write them: `re:` and a regular
    expression from the start, a glob, or whole components of the dotted name."""
    return any(_matches(pattern, prefix + module) for pattern in patterns for prefix in _PREFIXES)


def _matches(pattern: str, module: str) -> bool:
    if pattern.startswith("re:"):
        if len(_REPEAT.findall(pattern)) > _MOST_REPEATS or _REPEATED_GROUP.search(pattern):
            raise UsageError(
                f"the quantisation's pattern {pattern[:40]!r} may take hours to match: write it with "
                f"{_MOST_REPEATS} of * + ? at most, and none of them on a group. {BY_HAND}"
            )
        try:
            return re.match(pattern[3:], module) is not None
        except re.error as error:
            raise UsageError(
                f"the quantisation's pattern {pattern[:40]!r} is no regular expression"
            ) from error
    if "*" in pattern:
        return fnmatch.fnmatchcase(module, pattern) or fnmatch.fnmatchcase(module, pattern + ".*")
    return f".{pattern}." in f".{module}."


_READERS: dict[str, Callable[[Fields], PrecisionOf]] = {
    "fp8": _fp8,
    "gptq": _gptq,
    "awq": _awq,
    "compressed-tensors": _compressed_tensors,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": _mxfp4,
    "modelopt": _modelopt,
}
