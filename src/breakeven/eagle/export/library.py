"""What a head drafts on an input, as the `speculators` library runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakeven.eagle.export.tensors import OF_TARGET
from breakeven.eagle.shape import HeadShape, library_config

STEPS, TOKENS, SEED = 3, 16, 0
"""Of the input that heads are compared on."""


def draft_logits(shape: HeadShape, tensors: Mapping[str, Any]) -> Any:
    """What the library's own model makes of random states and tokens, in float32 on the CPU.

    Teacher-forced drafts of STEPS tokens, each with the state that the step before hands on; shape
    (STEPS, TOKENS, draft vocabulary). Raises RuntimeError for tensors that do not fit the shape.
    """
    import torch

    model = _model(shape, tensors)
    found: list[Any] = []
    model.lm_head.register_forward_hook(lambda _module, _inputs, logits: found.append(logits[0].detach()))
    random = torch.Generator().manual_seed(SEED)
    with torch.compiler.set_stance("force_eager"), torch.no_grad():
        model(
            hidden_states=torch.randn(1, TOKENS, len(shape.layers) * shape.hidden, generator=random),
            input_ids=torch.randint(shape.vocabulary, (1, TOKENS), generator=random),
            document_ids=torch.zeros(1, TOKENS, dtype=torch.long),
            ttt_steps=STEPS,
        )
    return torch.stack(found)


def _model(shape: HeadShape, tensors: Mapping[str, Any]) -> Any:
    from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig

    config = Eagle3SpeculatorConfig(**library_config(shape))
    config.transformer_layer_config._attn_implementation = "sdpa"
    model = Eagle3DraftModel(config)
    of_target = {name for name in model.state_dict() if name.startswith(OF_TARGET)}
    wide = {name: one.float() if one.is_floating_point() else one for name, one in tensors.items()}
    missing, unexpected = model.load_state_dict(wide, strict=False)
    if set(missing) != of_target or unexpected:
        raise RuntimeError(f"missing {sorted(set(missing) - of_target)}, unknown {sorted(unexpected)}")
    return model.float().eval()
