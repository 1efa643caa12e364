"""Sparse upcycling: a mixture-of-experts GGUF out of a dense one: the same text, other memory traffic.

Every feed-forward block is copied into E identical experts (Komatsuzaki et al. 2023, arXiv 2212.05055), and a
random router chooses k of them for each token. The weights of the chosen experts are renormalised to a sum of
1, so that the output stays the dense model's up to rounding. Nothing is trained: routing is random, not
learned. What it shows is cost: how many distinct experts, and so how much memory, a step with several tokens
touches.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breakeven.errors import MissingExtra, UsageError
from breakeven.models.files import Progress, commit, need_space, part_of, silent, storing

if TYPE_CHECKING:
    from numpy.typing import NDArray

RANDOM_ROUTING = "Routing is random, not learned."
"""Said of every upcycled model, in its description too: by that it is known again."""
EXPERT_LIMIT = 512
"""LLAMA_MAX_EXPERTS of llama.cpp's src/llama-hparams.h."""

EXPERT_TENSOR = re.compile(r"blk\.(\d+)\.ffn_(gate|up|down)\.weight")
BIAS_TENSOR = re.compile(r"blk\.\d+\.ffn_(gate|up|down)\.bias")
REPLACED_KEYS = ("general.name", "general.description", "general.file_type")


@dataclass(frozen=True, slots=True)
class _Plan:
    """One tensor of the target. `source` is None for a router."""

    name: str
    source: Any
    kind: Any
    """Its GGMLQuantizationType in the target."""
    shape: tuple[int, ...]
    """As numpy has it: bytes in the last place of a quantised one."""
    n_bytes: int
    dtype: Any


def upcycle(
    source: Path,
    target: Path,
    experts: int,
    top_k: int,
    seed: int = 0,
    quantise: str | None = None,
    progress: Progress = silent,
) -> Path:
    """Write a model with `experts` identical experts of which a random router picks `top_k` for each token.

    `quantise` is a GGML type such as q8_0 for all weight matrices; None keeps every tensor's bytes. Routers
    are float32 (llama.cpp crashes on others), normal with standard deviation 1/√width from `seed`, so that
    their logits have about unit variance. Tensors are streamed: memory is about one of them, times `experts`.
    The target appears whole or not at all; one that exists is replaced.

    Raises UsageError for a source that is not a dense llama GGUF, numbers that do not fit, or a type that
    cannot be written; StorageError; MissingExtra without the gguf package.
    """
    gguf = _gguf()
    _check_numbers(experts, top_k)
    reader = _read(gguf, source)
    _check_source(reader, source)
    kind = _quantisation(gguf, quantise)
    plans = [plan for tensor in reader.tensors for plan in _plans(gguf, tensor, experts, kind)]
    with storing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    need_space(target.parent, sum(plan.n_bytes for plan in plans))
    part = part_of(target)
    try:
        with storing(part):
            writer = _header(gguf, reader, part, source, experts, top_k, kind)
            _write_tensors(gguf, writer, plans, seed, progress)
        commit(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    return target


def writable_types() -> list[str]:
    """The types that `quantise` takes: those which the gguf package can write, not only read."""
    gguf = _gguf()
    return [kind.name.lower() for kind in gguf.GGMLQuantizationType if _can_write(gguf, kind)]


def _can_write(gguf: Any, kind: Any) -> bool:
    try:
        gguf.quants.quantize(np.zeros((1, 256), np.float32), kind)
    except (NotImplementedError, gguf.quants.QuantError, KeyError):
        return False
    return True


def _gguf() -> Any:
    try:
        import gguf
    except ImportError:
        raise MissingExtra("gguf", "local") from None
    return gguf


def _check_numbers(experts: int, top_k: int) -> None:
    if not 1 <= experts <= EXPERT_LIMIT:
        raise UsageError(
            f"--experts must be from 1 to {EXPERT_LIMIT}, which is llama.cpp's limit, not {experts}"
        )
    if not 1 <= top_k <= experts:
        raise UsageError(f"--top-k must be from 1 to the {experts} experts, not {top_k}")


def _read(gguf: Any, source: Path) -> Any:
    try:
        return gguf.GGUFReader(source)
    except FileNotFoundError:
        raise UsageError(f"{source} does not exist: give the path of a dense llama GGUF file") from None
    except (ValueError, IndexError, KeyError, OSError) as error:
        raise UsageError(f"{source} is not a whole GGUF file ({error}): give a dense llama one") from error


def _check_source(reader: Any, source: Path) -> None:
    arch = _field(reader, "general.architecture")
    names = [tensor.name for tensor in reader.tensors]
    if _field(reader, f"{arch}.expert_count") or any("_exps" in name for name in names):
        raise UsageError(f"{source} is a mixture of experts already: give a dense llama model")
    if arch != "llama":
        raise UsageError(f"{source} has the architecture {arch}: only llama can be made a mixture of experts")
    if (_field(reader, "split.count") or 1) > 1:
        raise UsageError(f"{source} is one part of several: join them with  llama-gguf-split --merge")
    if any(BIAS_TENSOR.fullmatch(name) for name in names):
        raise UsageError(
            f"{source} has biases in its feed-forward blocks, for which llama.cpp has no experts"
        )
    if not any(EXPERT_TENSOR.fullmatch(name) for name in names):
        raise UsageError(f"{source} has no feed-forward weights: it is not a whole model")


def _field(reader: Any, name: str) -> Any:
    field = reader.get_field(name)
    return None if field is None else _contents(field)


def _contents(field: Any) -> Any:
    try:
        return field.contents()
    except UnicodeDecodeError as error:
        raise UsageError(f"the GGUF file is damaged: its {field.name} is no text ({error})") from error


def _quantisation(gguf: Any, name: str | None) -> Any:
    if name is None:
        return None
    known = writable_types()
    if name.lower() not in known:
        raise UsageError(f"--quantise takes {', '.join(known)}, not {name!r}")
    return gguf.GGMLQuantizationType[name.upper()]


def _plans(gguf: Any, tensor: Any, experts: int, kind: Any) -> Iterator[_Plan]:
    """What a tensor of the source becomes: itself, or E copies; and a router before each gate."""
    match = EXPERT_TENSOR.fullmatch(tensor.name)
    kind = tensor.tensor_type if kind is None or len(tensor.shape) < 2 else kind
    data_shape, dtype = _layout(gguf, tensor, kind)
    if match is None:
        yield _plan(tensor.name, tensor, kind, data_shape, dtype)
        return
    if match[2] == "gate":
        router, width = f"blk.{match[1]}.ffn_gate_inp.weight", int(tensor.shape[0])
        yield _plan(router, None, gguf.GGMLQuantizationType.F32, (experts, width), np.dtype(np.float32))
    name = f"blk.{match[1]}.ffn_{match[2]}_exps.weight"
    yield _plan(name, tensor, kind, (experts, *data_shape), dtype)


def _plan(name: str, source: Any, kind: Any, shape: tuple[int, ...], dtype: Any) -> _Plan:
    return _Plan(name, source, kind, shape, int(np.prod(shape)) * dtype.itemsize, dtype)


def _layout(gguf: Any, tensor: Any, kind: Any) -> tuple[tuple[int, ...], Any]:
    """Shape and dtype of a tensor's data once it has that type. GGUF lists the fastest dimension first."""
    if kind == tensor.tensor_type:
        return tensor.data.shape, tensor.data.dtype
    shape = tuple(int(n) for n in reversed(tensor.shape))
    plain = {"F32": np.float32, "F16": np.float16}.get(kind.name)
    if plain is not None:
        return shape, np.dtype(plain)
    block = gguf.GGML_QUANT_SIZES[kind][0]
    if shape[-1] % block:
        raise UsageError(
            f"{kind.name.lower()} needs rows of a multiple of {block} numbers, and {tensor.name} has "
            f"{shape[-1]}: choose another --quantise"
        )
    return gguf.quants.quant_shape_to_byte_shape(shape, kind), np.dtype(np.uint8)


def _header(gguf: Any, reader: Any, part: Path, source: Path, experts: int, top_k: int, kind: Any) -> Any:
    writer = gguf.GGUFWriter(part, "llama")
    writer.data_alignment = reader.alignment
    for key, field in reader.fields.items():
        if not key.startswith("GGUF.") and key not in ("general.architecture", *REPLACED_KEYS):
            _copy_field(gguf, writer, key, field)
    name = _field(reader, "general.name") or source.stem
    writer.add_name(f"{name} {experts}x top-{top_k}, random routing")
    writer.add_description(
        f"Made from {source.name}: {experts} identical experts, of which a random router picks {top_k} for "
        f"each token. {RANDOM_ROUTING}"
    )
    writer.add_expert_count(experts)
    writer.add_expert_used_count(top_k)
    file_type = _field(reader, "general.file_type") if kind is None else _file_type(gguf, kind)
    if file_type is not None:
        writer.add_file_type(file_type)
    return writer


def _file_type(gguf: Any, kind: Any) -> int | None:
    """The number in general.file_type that names a quantisation; None where there is none for it."""
    names = gguf.LlamaFileType.__members__
    found = names.get(f"MOSTLY_{kind.name}") or names.get(f"ALL_{kind.name}")
    if kind.name == "F32":
        return int(names["ALL_F32"])
    return None if found is None else int(found)


def _copy_field(gguf: Any, writer: Any, key: str, field: Any) -> None:
    kind = field.types[0]
    of = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
    writer.add_key_value(key, _contents(field), kind, sub_type=of)


def _write_tensors(gguf: Any, writer: Any, plans: list[_Plan], seed: int, progress: Progress) -> None:
    for plan in plans:
        writer.add_tensor_info(plan.name, plan.shape, plan.dtype, plan.n_bytes, raw_dtype=plan.kind)
    random = np.random.default_rng(seed)
    total, done = sum(plan.n_bytes for plan in plans), 0
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for plan in plans:
            writer.write_tensor_data(_data(gguf, plan, random))
            done += plan.n_bytes
            progress(done, total)
    finally:
        writer.close()


def _data(gguf: Any, plan: _Plan, random: np.random.Generator) -> NDArray[Any]:
    """The tensor's numbers, of `plan.shape`: quantised once, then repeated, as all experts are the same."""
    data: NDArray[Any]
    if plan.source is None:
        data = random.standard_normal(plan.shape, np.float32)
        return data / np.float32(plan.shape[-1] ** 0.5)
    data = plan.source.data
    if plan.kind != plan.source.tensor_type:
        data = gguf.quants.quantize(gguf.quants.dequantize(data, plan.source.tensor_type), plan.kind)
    if len(plan.shape) > data.ndim:
        data = np.repeat(data[None], plan.shape[0], axis=0)  # (experts, *dense)
    return data
