"""The trainer library's head, with what it takes over from the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig

from breakeven.errors import RunFormatError, UsageError

EMBEDDING, NORM, LM_HEAD = "embed_tokens.weight", "norm.weight", "lm_head.weight"
OF_TARGET = ("embed_tokens.", "verifier_")
"""Begin the names of what a head shares with its target: neither trained nor stored."""


def new_head(config: Mapping[str, Any], draft_ids: Sequence[int], target: Path, seed: int) -> Any:
    """A head before training, on the CPU, in float32.

    `config` is of config.py; `draft_ids` the target's token ids that it drafts, ascending; `target` a
    target.safetensors. `lm_head` begins with the target's own rows and is trained (the library keeps it
    fixed; EAGLE trains it). What the library does not take from the target is drawn by `seed`. Raises
    UsageError if the target's tensors do not fit the configuration, RunFormatError for a damaged file.
    """
    torch.manual_seed(seed)
    head = Eagle3DraftModel(_library_config(config))
    if head.use_draft_vocab:
        _map_vocabulary(head, draft_ids)
    _take_from_target(head, draft_ids, target)
    head.lm_head.weight.requires_grad_(True)
    return head.train()


def trained(head: Any) -> dict[str, Any]:
    """The parameters that training changes, by name."""
    return {name: one for name, one in head.named_parameters() if one.requires_grad}


def stored(head: Any) -> dict[str, Any]:
    """The tensors of head.safetensors, on the CPU."""
    return {
        name: tensor.detach().cpu().contiguous()
        for name, tensor in head.state_dict().items()
        if not name.startswith(OF_TARGET)
    }


def restore(head: Any, tensors: Mapping[str, Any]) -> None:
    """Puts those of a head.safetensors into a head. Raises KeyError or RuntimeError where they do not fit."""
    with torch.no_grad():
        for name, tensor in head.state_dict().items():
            if not name.startswith(OF_TARGET):
                tensor.copy_(tensors[name])


def _library_config(config: Mapping[str, Any]) -> Any:
    """Attention by torch's own kernel on a CPU: the library's is for GPUs."""
    found = Eagle3SpeculatorConfig(**config)
    kernel = "simple_flex_attention" if torch.cuda.is_available() else "sdpa"
    found.transformer_layer_config._attn_implementation = kernel
    return found


def _map_vocabulary(head: Any, draft_ids: Sequence[int]) -> None:
    ids = torch.tensor(draft_ids, dtype=torch.long)
    drafted = torch.zeros(head.verifier_vocab_size, dtype=torch.bool)
    drafted[ids] = True
    head.load_vocab_mappings(drafted, ids - torch.arange(len(ids)))


def _take_from_target(head: Any, draft_ids: Sequence[int], target: Path) -> None:
    try:
        tensors = load_file(target)
    except (OSError, SafetensorError) as error:
        raise RunFormatError(
            f"{target} cannot be read ({error}): type  breakeven eagle states RECIPE --recheck"
        ) from error
    _check(tensors, head, target)
    rows = tensors[LM_HEAD][torch.tensor(draft_ids)]
    with torch.no_grad():
        head.embed_tokens.weight.copy_(tensors[EMBEDDING])
        head.verifier_norm.weight.copy_(tensors[NORM])
        head.verifier_lm_head.weight.copy_(rows)
        head.lm_head.weight.copy_(rows)


def _check(tensors: Mapping[str, Any], head: Any, target: Path) -> None:
    matrix = (head.verifier_vocab_size, head.hidden_size)
    for name, shape in {EMBEDDING: matrix, NORM: matrix[1:], LM_HEAD: matrix}.items():
        found = tuple(tensors[name].shape) if name in tensors else None
        if found != shape:
            raise UsageError(
                f"{name} in {target} is {found and list(found)}, and the target's configuration says "
                f"{list(shape)}: type  breakeven eagle states RECIPE --fresh"
            )
