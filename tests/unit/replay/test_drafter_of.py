"""Which drafter stands for what an engine is told: it gives the same flags back."""

from __future__ import annotations

import pytest

from breakeven.drafters.registry import make_drafter
from breakeven.engines.dialects import dialect
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError
from breakeven.replay.drafter_of import drafter_of

ALIKE = [
    ("vllm", SpeculationConfig("ngram", 5, 2, 4)),
    (
        "vllm",
        SpeculationConfig(
            "suffix",
            8,
            options={
                "suffix_decoding_max_tree_depth": 16,
                "suffix_decoding_max_cached_requests": 0,
                "suffix_decoding_max_spec_factor": 2.0,
                "suffix_decoding_min_token_prob": 0.2,
            },
        ),
    ),
    ("sglang", SpeculationConfig("ngram", 7, options={"speculative-ngram-max-bfs-breadth": 4})),
    ("llama.cpp", SpeculationConfig("ngram", 8, 3, 3)),
    ("llama.cpp", SpeculationConfig("ngram-map-k", 8, 3, 3)),
    ("llama.cpp", SpeculationConfig("ngram-mod", 8, 16, 16, options={"spec-ngram-mod-n-min": 4})),
    ("llama.cpp", SpeculationConfig("ngram-cache")),
    (
        "tensorrt-llm",
        SpeculationConfig(
            "ngram",
            4,
            None,
            3,
            options={"is_keep_all": True, "is_use_oldest": True, "is_public_pool": False},
        ),
    ),
]


@pytest.mark.parametrize(("engine", "config"), ALIKE, ids=lambda value: str(getattr(value, "method", value)))
def test_the_drafter_has_the_same_flags_as_the_candidate(engine: str, config: SpeculationConfig):
    found = drafter_of(engine, config)
    assert found is not None
    name, settings = found
    drafter = make_drafter(name, settings)
    assert drafter.engine == engine
    assert sorted(drafter.flags().split()) == sorted(dialect(engine).line(config).split())


@pytest.mark.parametrize(
    ("engine", "config"),
    [
        ("vllm", SpeculationConfig("eagle3", 3, draft="org/head")),
        ("vllm", SpeculationConfig("ngram_gpu", 5, 2, 4)),
        ("sglang", SpeculationConfig("ngram", 5, 2, 4)),
        ("tgi", SpeculationConfig("ngram", 5)),
        ("llama.cpp", SpeculationConfig("draft-model", 5, draft="m.gguf")),
    ],
)
def test_what_is_not_replayed_has_none(engine: str, config: SpeculationConfig):
    assert drafter_of(engine, config) is None


def test_values_out_of_limits_are_refused():
    with pytest.raises(UsageError):
        drafter_of("llama.cpp", SpeculationConfig("ngram", 5000))
