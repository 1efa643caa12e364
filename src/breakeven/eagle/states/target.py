"""The target's checkpoint, as far as a head needs it: its shape, embedding, final norm and output matrix.

Only those tensors are read, whatever else the folder holds. A norm that is stored as its distance from one
becomes a plain one: whoever reads target.safetensors finds x / √(mean(x²) + eps) · weight. Where a model has
several modalities, its text_config says the shape, and the tensors are those of its language model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from breakeven.eagle.shape import RMS_EPS
from breakeven.errors import UsageError

CONFIG, INDEX = "config.json", "model.safetensors.index.json"
EMBEDDING, NORM, HEAD = "embed_tokens.weight", "norm.weight", "lm_head.weight"
WEIGHTS, TEXT_CONFIG = "target.safetensors", "target_config.json"
"""What a states folder keeps of the target."""
CAPS = "final_logit_softcapping"
"""Changes the logits so little where they are small that half precision may hide it."""
LEAST_BITS = 16
FROM_ONE = frozenset(
    (
        *("gemma", "gemma3", "gemma3_text"),
        *("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"),
    )
)
"""Kinds of model, as `model_type` has them, whose norms scale by 1 + weight (transformers 5.19; Gemma 3n and
Gemma 4 do not). One that is not named here is noticed by its logits, before the first shard (passes.py)."""


@dataclass(frozen=True, slots=True)
class TargetWeights:
    """A folder in the Hugging Face format, looked at but not loaded."""

    folder: Path
    config: Mapping[str, Any]
    """Of its language model."""
    layers: int
    hidden: int
    vocab: int
    eps: float
    places: Mapping[str, tuple[Path, str]]
    """Where EMBEDDING, NORM and HEAD stand: a file, and the name in it. HEAD is EMBEDDING if tied."""

    @property
    def positions(self) -> int | None:
        """Tokens that it takes at most, if the configuration says so."""
        said = self.config.get("max_position_embeddings")
        return said if isinstance(said, int) and said > 0 else None


def open_weights(folder: Path) -> TargetWeights:
    """Raises UsageError for a folder that holds no such model, or one whose parts are named otherwise."""
    config = _config(folder)
    layers, hidden, vocab = (
        _whole(folder, config, name) for name in ("num_hidden_layers", "hidden_size", "vocab_size")
    )
    eps = config.get("rms_norm_eps", RMS_EPS)
    if not isinstance(eps, float):
        raise UsageError(f"{folder / CONFIG}: rms_norm_eps is {eps!r}: only targets with RMSNorm can be read")
    if config.get(CAPS):
        raise UsageError(
            f"the logits of {folder} are not lm_head x RMSNorm(last state): {CAPS} = {config[CAPS]} caps "
            "them, and no EAGLE-3 head can be trained for it"
        )
    places = _places(folder, config)
    _check_shapes(folder, places, hidden, vocab)
    return TargetWeights(folder, config, layers, hidden, vocab, eps, places)


def read_weights(target: TargetWeights) -> dict[str, torch.Tensor]:
    """EMBEDDING and HEAD [vocab, hidden], NORM [hidden], as they are stored; a norm that is stored as its
    distance from one as a plain norm, in float32. Raises UsageError."""
    weights = {name: _tensor(*place).clone() for name, place in target.places.items()}
    for name, tensor in weights.items():
        if not tensor.is_floating_point() or torch.finfo(tensor.dtype).bits < LEAST_BITS:
            raise UsageError(
                f"{target.places[name][1]} of {target.folder} is stored as {tensor.dtype}: name a checkpoint "
                "whose embedding, final norm and output matrix are not quantised"
            )
    if target.config.get("model_type") in FROM_ONE:
        weights[NORM] = 1 + weights[NORM].float()
    return weights


def weights_file(weights: Mapping[str, torch.Tensor]) -> bytes:
    """The same tensors always as the same bytes."""
    data: bytes = save(dict(weights))
    return data


def config_file(target: TargetWeights) -> bytes:
    return orjson.dumps(dict(target.config), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)


def _config(folder: Path) -> dict[str, Any]:
    whole = _json(folder / CONFIG)
    text = whole.get("text_config", whole)
    if not isinstance(text, dict):
        raise UsageError(f"{folder / CONFIG} has a text_config that is no table: restore it from its source")
    inherited = {key: whole[key] for key in ("architectures", "tie_word_embeddings") if key in whole}
    return {**inherited, **text}


def _json(path: Path) -> dict[str, Any]:
    try:
        said = orjson.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({error.strerror}): name a folder in the Hugging Face format as  model  "
            "under [target] of the recipe"
        ) from error
    except ValueError as error:
        raise UsageError(f"{path} is no JSON ({error}): restore it from its source") from error
    if not isinstance(said, dict):
        raise UsageError(f"{path} holds no table: restore it from its source")
    return said


def _whole(folder: Path, config: Mapping[str, Any], name: str) -> int:
    value = config.get(name)
    if type(value) is not int or value < 1:
        said = "has no" if value is None else f"says {str(value)[:40]!r} for"
        raise UsageError(f"{folder / CONFIG} {said} {name}: this architecture is not known here")
    return value


def _places(folder: Path, config: Mapping[str, Any]) -> dict[str, tuple[Path, str]]:
    files = _files(folder)
    embedding = _shortest(files, EMBEDDING)
    if embedding is None:
        raise _unknown(folder, EMBEDDING)
    norm = embedding.removesuffix(EMBEDDING) + NORM
    if norm not in files:
        raise _unknown(folder, norm)
    own_head = _shortest(files, HEAD)
    tied = config.get("tie_word_embeddings", own_head is None)
    head = embedding if tied else own_head
    if head is None:
        raise _unknown(folder, HEAD)
    return {name: (files[key], key) for name, key in ((EMBEDDING, embedding), (NORM, norm), (HEAD, head))}


def _files(folder: Path) -> dict[str, Path]:
    """The file of every tensor."""
    if not (folder / INDEX).exists():
        return {key: path for path in sorted(folder.glob("*.safetensors")) for key in _keys(path)}
    weight_map = _json(folder / INDEX).get("weight_map")
    if not isinstance(weight_map, dict):
        raise UsageError(f"{folder / INDEX} has no weight_map: restore it from its source")
    return {key: folder / Path(str(file)).name for key, file in weight_map.items()}


def _shortest(files: Mapping[str, Path], name: str) -> str | None:
    """A model's own, and not one of a layer's or of another model inside it."""
    found = [key for key in files if key == name or key.endswith(f".{name}")]
    return min(found, key=lambda key: (len(key), key), default=None)


def _check_shapes(folder: Path, places: Mapping[str, tuple[Path, str]], hidden: int, vocab: int) -> None:
    for name, (path, key) in places.items():
        with _opened(path) as file:
            found = tuple(file.get_slice(key).get_shape())
        due = (hidden,) if name == NORM else (vocab, hidden)
        if found != due:
            raise UsageError(
                f"{key} in {path} is {list(found)}, and {CONFIG} says {list(due)}: the two are of different "
                f"models, restore {folder} from its source"
            )


def _keys(path: Path) -> list[str]:
    with _opened(path) as file:
        return list(file.keys())


def _tensor(path: Path, key: str) -> torch.Tensor:
    with _opened(path) as file:
        return file.get_tensor(key)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Raises UsageError for a file that is absent, damaged, or without what is asked of it."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (OSError, SafetensorError) as error:
        raise UsageError(
            f"{path} cannot be read ({str(error).partition(chr(10))[0]}): restore it from its source"
        ) from error


def _unknown(folder: Path, name: str) -> UsageError:
    return UsageError(
        f"{folder} has no tensor {name} in safetensors files: this architecture is not known here, or the "
        "checkpoint is not whole"
    )
