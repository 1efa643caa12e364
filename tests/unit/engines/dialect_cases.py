"""Ways to speculate and command lines that tests of all dialects share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from breakeven.engines.dialects import dialect
from breakeven.engines.speculation import SpeculationConfig

SERVERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "vllm": (
        ("vllm", "serve", "org/model"),
        ("/opt/venv/bin/python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "m"),
        ("numactl", "-C", "0-7", "-m", "0", "/usr/bin/vllm", "serve", "m"),
        ("env", "NCCL_DEBUG=INFO", "python", "-m", "vllm.entrypoints.cli.main", "serve", "m"),
    ),
    "sglang": (
        ("python3", "-m", "sglang.launch_server", "--model-path", "m"),
        ("sglang", "serve", "--model-path", "m"),
        ("/usr/bin/python", "/opt/sglang/launch_server.py", "--model", "m"),
    ),
    "llama.cpp": (
        ("llama-server", "-m", "m.gguf"),
        ("taskset", "-c", "0-3", "./build/bin/llama-server", "-hf", "org/model:Q4_K_M"),
        ("llama", "serve", "-hf", "org/model"),
    ),
    "tensorrt-llm": (
        ("trtllm-serve", "org/model"),
        ("mpirun", "-n", "1", "trtllm-serve", "serve", "org/model"),
        ("python3", "-m", "tensorrt_llm.commands.serve", "org/model"),
    ),
    "tgi": (
        ("text-generation-launcher", "--model-id", "m"),
        ("/tgi-entrypoint.sh", "--model-id", "m"),
    ),
}
FOREIGN = (
    *("--host", "10.0.0.1", "--port=9000", "--max-num-seqs", "16", "--enforce-eager", "--api-key", "k"),
    *(
        "--hf-overrides",
        '{"a": 1}',
        "--dtype",
        "bfloat16",
        "-tp",
        "2",
        "--trust-remote-code",
        "-np",
        "-c",
        "8",
    ),
    *("--special", "--speed", "-s", "a=b", "", "%i", "$OPTIONS", "déjà vu"),
)
"""Words of no option that concerns speculation."""
OURS: dict[str, tuple[tuple[str, ...], ...]] = {
    "vllm": (
        ("--speculative-config", '{"method": "eagle3", "model": "e", "num_speculative_tokens": 3}'),
        ('--speculative_config={"model":"[ngram]","num_speculative_tokens":2}',),
        ("--speculative-config.method", "suffix"),
        ("-sc.method=ngram", "-sc.num_speculative_tokens", "4"),
        ("--spec-method", "ngram", "--spec-tokens=4"),
        ("--speculative-model", "[ngram]", "--num-speculative-tokens", "5", "--ngram-prompt-lookup-max", "4"),
        ("--speculative-conf", '{"method": "mtp"}'),
    ),
    "sglang": (
        ("--speculative-algorithm", "EAGLE", "--speculative-draft-model-path", "d"),
        ("--speculative-algo=NGRAM", "--speculative-num-draft-tokens", "12"),
    ),
    "llama.cpp": (
        ("--spec-type", "ngram-mod", "--spec-ngram-mod-n-max", "9"),
        ("-md", "draft.gguf", "--draft-max", "12", "-ngld", "99"),
    ),
    "tensorrt-llm": (("--config", "breakeven-speculation-12345678.yaml"),),
    "tgi": (("--speculate", "3"), ("--speculate=2",)),
}
"""Options that turn speculation on, in any version."""

small = st.integers(1, 32)
pairs = st.tuples(small, small).map(sorted)
paths = st.sampled_from(["org/draft", "/models/a b", "it's"])


def _lookup(k: st.SearchStrategy[Any] = small) -> st.SearchStrategy[SpeculationConfig]:
    return st.builds(lambda k, n: SpeculationConfig("ngram", k, *n), k, pairs)


def _learned(*methods: str) -> st.SearchStrategy[SpeculationConfig]:
    return st.builds(
        lambda method, k, draft: SpeculationConfig(method, k, draft=draft),
        st.sampled_from(methods),
        small,
        paths,
    )


CONFIGS: dict[str, st.SearchStrategy[SpeculationConfig]] = {
    "vllm": st.one_of(
        _lookup(),
        _learned("eagle", "eagle3", "draft-model", "custom_class"),
        st.builds(SpeculationConfig, st.just("mtp"), st.none() | small),
        st.builds(
            lambda k, depth: SpeculationConfig(
                "suffix", k, options={"suffix_decoding_max_tree_depth": depth}
            ),
            st.none() | small,
            small,
        ),
    ),
    "sglang": st.one_of(
        st.builds(SpeculationConfig, st.just("ngram"), st.none() | small),
        _learned("eagle", "eagle3", "draft-model", "mtp"),
        st.builds(
            lambda k, tokens: SpeculationConfig(
                "eagle",
                k,
                draft="d",
                options={"speculative-eagle-topk": 4, "speculative-num-draft-tokens": tokens},
            ),
            small,
            small,
        ),
    ),
    "llama.cpp": st.one_of(
        st.builds(
            lambda method, k, n: SpeculationConfig(method, k, n, n),
            st.sampled_from(["ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod"]),
            st.none() | small,
            st.none() | small,
        ),
        _learned("draft-model", "eagle3"),
        st.builds(SpeculationConfig, st.sampled_from(["mtp", "draft-dflash"]), st.none() | small),
        st.just(SpeculationConfig("ngram-cache")),
    ),
    "tensorrt-llm": st.one_of(
        st.builds(lambda k, n: SpeculationConfig("ngram", k, max_n=n), small, st.none() | small),
        _learned("eagle3", "draft-model"),
        st.builds(SpeculationConfig, st.sampled_from(["mtp", "SA"]), small),
    ),
    "tgi": st.builds(SpeculationConfig, st.just("ngram"), small),
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, tuple[str, ...], SpeculationConfig]:
    """An engine, a command line of it, which may speculate already, and another way to speculate."""
    name = draw(st.sampled_from(sorted(SERVERS)))
    start = draw(st.sampled_from(SERVERS[name]))
    others = st.lists(st.sampled_from(FOREIGN), max_size=4).map(tuple)
    ours = st.sampled_from((*OURS[name], ()))
    words = (*start, *draw(others), *draw(ours), *draw(others))
    return name, words, draw(CONFIGS[name])


def make(name: str) -> Any:
    """The dialect, for which no file is there."""
    return dialect(name, lambda path: None)
