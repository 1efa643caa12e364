"""The target's passes by transformers: loaded from its folder, and listened to where a layer begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch
import transformers
from torch import nn

from breakeven.eagle.states.passes import Passed, Wanted, passed
from breakeven.eagle.states.target import TargetWeights
from breakeven.errors import UsageError

KINDS = ("AutoModelForCausalLM", "AutoModelForImageTextToText")
"""Classes of transformers that load a language model; the second, one inside a model that sees."""
APART = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
"""Mean difference of two roads to the same logits, as a share of the greatest, that rounding explains: four
units in the last place of half precisions, and of float32 as many as sums over a hidden state lose."""


class Loaded:
    """A target in memory, on the GPUs that torch finds or the CPU.

    Raises UsageError for a checkpoint that transformers cannot load whole, or whose layers are not found.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._model = _load(wanted)
        self._decoder = _decoder(self._model, wanted.target)
        self._taps = [[*self._decoder.layers, self._decoder.norm][layer] for layer in wanted.layers]
        self._taps.append(self._decoder.norm)

    def passes(self, batch: Sequence[Sequence[int]]) -> list[Passed]:
        """Samples are padded on the right, and masked: no token sees the padding."""
        longest = max(map(len, batch))
        ids = torch.tensor([[*sample, *[0] * (longest - len(sample))] for sample in batch])
        mask = torch.tensor([[1] * len(sample) + [0] * (longest - len(sample)) for sample in batch])
        with torch.inference_mode():
            states = self._listen(ids, mask)
            return [
                passed(states[row, : len(sample)], self._head, self._wanted.top)
                for row, sample in enumerate(batch)
            ]

    def check(self, sample: Sequence[int]) -> None:
        """Raises UsageError where the model's logits are not what its norm and output matrix make of the last
        state, as whoever trains on it will take for granted."""
        states = self.passes([sample])[0].hidden_states[:, -1]
        with torch.inference_mode():
            said = self._model(input_ids=self._there(torch.tensor([list(sample)])), use_cache=False)
            logits = said.logits[0].float().cpu()
            apart = (self._wanted.head(states) - logits).abs().mean() / logits.abs().max()
        if not float(apart) <= APART[self._wanted.dtype]:
            raise UsageError(
                f"the logits of {self._wanted.target.folder} are not lm_head x RMSNorm(last state): it "
                "scales, caps or norms them in a way of its own, and no EAGLE-3 head can be trained for it"
            )

    def _listen(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """States [samples, tokens, 4, hidden], on the CPU."""
        with listening(self._taps) as heard:
            self._decoder(input_ids=self._there(ids), attention_mask=self._there(mask), use_cache=False)
        due = (*ids.shape, self._wanted.target.hidden)
        if any(state.shape != due for state in heard.values()):
            raise _unlike_llama(self._model, self._wanted.target)
        return torch.stack([heard[tap] for tap in self._taps], dim=2)

    def _head(self, states: torch.Tensor) -> torch.Tensor:
        normed = self._decoder.norm(states.to(self._decoder.norm.weight.device))
        logits: torch.Tensor = self._model.get_output_embeddings()(normed)
        return logits.float()

    def _there(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self._model.get_input_embeddings().weight.device)


@contextmanager
def listening(modules: Sequence[nn.Module]) -> Iterator[Mapping[nn.Module, torch.Tensor]]:
    """What each module is given, copied to the CPU, once the model has run."""
    heard: dict[nn.Module, torch.Tensor] = {}

    def keep(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        state = given[0] if given else named["hidden_states"]
        heard[module] = state.detach().to("cpu", copy=True)

    hooks = [module.register_forward_pre_hook(keep, with_kwargs=True) for module in set(modules)]
    try:
        yield heard
    finally:
        for hook in hooks:
            hook.remove()


def _load(wanted: Wanted) -> Any:
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    spread = torch.cuda.is_available() and find_spec("accelerate") is not None
    model, info = _first_that_loads(
        wanted.target,
        dtype=wanted.torch_dtype,
        device_map="auto" if spread else None,
        local_files_only=True,
        trust_remote_code=False,
        output_loading_info=True,
    )
    lacking = sorted([*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])])
    if lacking:
        raise UsageError(
            f"{wanted.target.folder} lacks {lacking[0]} in the shape that its configuration says: "
            "restore it from its source"
        )
    return model if spread else model.to("cuda" if torch.cuda.is_available() else "cpu")


def _first_that_loads(target: TargetWeights, **how: Any) -> Any:
    refusals: list[Exception] = []
    for kind in KINDS:
        try:
            return getattr(transformers, kind).from_pretrained(target.folder, **how)
        except torch.OutOfMemoryError:
            raise
        except ValueError as error:  # not a kind of model that this class loads
            refusals.append(error)
        except (OSError, RuntimeError, KeyError, ImportError) as error:
            refusals.append(error)
            break
    raise UsageError(
        f"transformers {transformers.__version__} cannot load {target.folder} "
        f"({str(refusals[0]).strip().partition(chr(10))[0][:200]}): its architecture is not known there, or "
        'the checkpoint is not whole; vLLM may know it: write  source = "vllm"  under [states]'
    ) from refusals[0]


def _decoder(model: Any, target: TargetWeights) -> Any:
    """The stack of layers with its norm. Raises UsageError where they are not where Llama has them."""
    decoder = model.get_decoder()
    layers, norm = getattr(decoder, "layers", None), getattr(decoder, "norm", None)
    known = isinstance(layers, nn.ModuleList) and len(layers) == target.layers
    if not known or norm is None or model.get_output_embeddings() is None:
        raise _unlike_llama(model, target)
    return decoder


def _unlike_llama(model: Any, target: TargetWeights) -> UsageError:
    return UsageError(
        f"{type(model).__name__} of {target.folder} is not built as Llama is (layers that pass on one state "
        "of a token, then norm, then an output matrix): no EAGLE-3 head can be trained for it"
    )
