"""A head for vLLM: the format of the `speculators` library, which vLLM reads as it is.

Fields, names and defaults from vLLM 0.32.0: transformers_utils/configs/speculators/, config/speculative.py,
model_executor/models/llama_eagle3.py and v1/worker/gpu_model_runner.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version as installed
from typing import Any, ClassVar

from breakeven.eagle.export.format import Format
from breakeven.eagle.export.source import Source
from breakeven.eagle.shape import HeadShape, library_config, older_rope, shape_of

READ = "0.32.0"
"""The version by whose source this was written."""
SINCE = "0.8.5"
"""As breakeven.engines.vllm_flags has it."""


class Vllm(Format):
    """`vllm serve TARGET --speculative-config '{"method": "eagle3", "model": FOLDER, …}'`; or `vllm serve
    FOLDER`.

    The embedding is there for pipeline parallelism; else vLLM finds that it is the target's and shares it.
    """

    name: ClassVar[str] = "vllm"
    with_embedding: ClassVar[bool] = True

    def config(self, source: Source, k: int) -> dict[str, Any]:
        """Every norm is said: vLLM takes norm_before_residual for true where it is left out.

        Beside rope_parameters stands what transformers 4 had in its place: an older vLLM reads that alone,
        and would take base 10,000 without a word.
        """
        found = library_config(source.shape)
        layer = {**found["transformer_layer_config"], **_older(source.shape), "dtype": source.weight_type}
        return {
            **found,
            "transformer_layer_config": layer,
            "speculators_version": installed("speculators"),
            "speculators_config": {
                "algorithm": "eagle3",
                "default_proposal_method": "greedy",
                "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": k}],
                "verifier": {
                    "name_or_path": source.name,
                    "architectures": source.target.get("architectures", []),
                },
            },
            "tie_word_embeddings": False,
            "dtype": source.weight_type,
        }

    def shape(self, config: Mapping[str, Any], source: Source) -> HeadShape:
        return shape_of({"norm_before_residual": True, **config})

    def notes(self, source: Source) -> Iterator[str]:
        shape = source.shape
        yield f"vLLM takes eagle3 from {SINCE} on; the folder was written by the source of {READ}"
        if not source.has_default_layers:
            yield (
                "vLLM older than October 2025 (pull request 25961) reads its default layers instead of "
                f"{list(shape.layers)}, without a word, and accepts less"
            )
        if shape.norm_before_fc:
            yield _left_out("the norm before fc", "March 2026", "36545 and 38111")
        if shape.fc_norm or shape.norm_output:
            yield _left_out("the norms of EAGLE-3.1", "June 2026", "42764 and 46488")


def _older(shape: HeadShape) -> dict[str, Any]:
    """Without a rope_scaling of null: to transformers 5 that is rope_parameters, which it would empty."""
    return {name: value for name, value in older_rope(shape.rope).items() if value is not None}


def _left_out(what: str, since: str, requests: str) -> str:
    return (
        f"vLLM older than {since} (pull requests {requests}) leaves {what} out, without a word, and accepts "
        f"less; {READ} has them"
    )
