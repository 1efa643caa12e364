"""llama-server's command line, of all builds, and its log."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.engines.dialect import Address, Phase
from breakeven.engines.llamacpp_server import LlamacppServer
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError

GOLDEN = Path(__file__).parents[2] / "golden" / "engines"
SERVE = ("llama-server", "-m", "m.gguf")
SIMPLE = SpeculationConfig("ngram-simple", 5, 3, 3)


def test_flags() -> None:
    words = ("--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "3")
    words += ("--spec-ngram-simple-size-m", "5")
    assert LlamacppServer().flags(SIMPLE) == words
    assert LlamacppServer().flags(SpeculationConfig("ngram", 5, 3)) == words
    assert LlamacppServer().speculation((*SERVE, *words)) == SIMPLE


def test_older_flags() -> None:
    # ggml-org/llama.cpp pull request 22397, of 26 April 2026; b8941 of 27 April is without it.
    words = ("--spec-type", "ngram-simple", "--spec-ngram-size-n", "3", "--spec-ngram-size-m", "5")
    assert LlamacppServer().flags(SIMPLE, "b8941") == LlamacppServer().flags(SIMPLE, "8000") == words
    assert LlamacppServer().speculation((*SERVE, *words)) == SIMPLE
    assert "--spec-ngram-size-n" not in LlamacppServer().flags(SIMPLE, "b9006")
    draft = SpeculationConfig("draft-model", 8, draft="d.gguf", options={"spec-draft-n-min": 2})
    old = ("--model-draft", "d.gguf", "--draft-max", "8", "--draft-min", "2")
    assert LlamacppServer().flags(draft, "b8000") == old
    mod = SpeculationConfig("ngram-mod", 64, 24, 24, options={"spec-ngram-mod-n-min": 48})
    assert LlamacppServer().flags(mod, "b8000") == (
        *("--spec-type", "ngram-mod", "--spec-ngram-size-n", "24", "--draft-max", "64", "--draft-min", "48"),
    )
    with pytest.raises(UsageError, match="only in newer builds"):
        LlamacppServer().flags(SpeculationConfig("mtp", 2), "b8000")


def test_a_build_that_does_not_know_its_number_is_taken_for_a_new_one() -> None:
    new = LlamacppServer().flags(SIMPLE)
    assert LlamacppServer().flags(SIMPLE, "b0-unknown") == LlamacppServer().flags(SIMPLE, "b10069") == new


@pytest.mark.parametrize(
    ("words", "config"),
    [
        (("-md", "d.gguf"), SpeculationConfig("draft-model", draft="d.gguf")),
        (("--model-draft", "d.gguf", "--draft", "8", "-ngld", "99"),
         SpeculationConfig("draft-model", 8, draft="d.gguf", options={"spec-draft-ngl": 99})),
        (("-hfd", "org/d"), SpeculationConfig("draft-model", options={"spec-draft-hf": "org/d"})),
        (("--spec_type", "ngram-mod", "--draft-max", "64"), SpeculationConfig("ngram-mod", 64)),
        (("--spec-type", "draft-mtp", "--spec-draft-n-max", "2"), SpeculationConfig("mtp", 2)),
        (("--spec-type", "draft-mtp,ngram-mod", "--spec-draft-n-max", "2", "--spec-ngram-mod-n-max", "9"),
         SpeculationConfig("draft-mtp,ngram-mod", 2, options={"spec-ngram-mod-n-max": 9})),
        (("--spec-default",), SpeculationConfig("default", options={"spec-default": True})),
        (("--spec-type", "none"), None),
        (("--spec-type", "ngram-simple", "--spec-type", "none"), None),
        (("--draft-p-min", "0.5"), None),
    ],
)  # fmt: skip
def test_read(words: tuple[str, ...], config: SpeculationConfig | None) -> None:
    argv = (*SERVE, *words, "-c", "4096", "--special")
    assert LlamacppServer().speculation(argv) == config
    assert LlamacppServer().without(argv) == (*SERVE, "-c", "4096", "--special")


def test_a_switch_takes_no_word() -> None:
    argv = (*SERVE, "-md", "d", "-cmoed", "--spec-draft-backend-sampling", "--metrics")
    assert LlamacppServer().without(argv) == (*SERVE, "--metrics")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (SpeculationConfig("suffix"), "llama.cpp has no suffix"),
        (SpeculationConfig("ngram", 5, 2, 4), "type --min-n 4 --max-n 4"),
        (SpeculationConfig("draft-model", 5), "type --draft PATH"),
        (SpeculationConfig("ngram", 5, draft="d"), "leave out --draft"),
        (SpeculationConfig("ngram-cache", 5), "leave out --k"),
        (SpeculationConfig("ngram", 5, options={"threads": 2}), "has no setting threads of speculation"),
    ],
)
def test_refused(config: SpeculationConfig, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LlamacppServer().flags(config)


def test_traps() -> None:
    known = LlamacppServer()
    assert known.warnings(SIMPLE, SERVE) == ()
    assert "drafts 48" in known.warnings(SpeculationConfig("ngram"), SERVE)[0]
    assert "k 2 drafts nothing" in known.warnings(SpeculationConfig("ngram", 2, 3, 3), SERVE)[0]
    for method in ("ngram-mod", "ngram-cache", "draft-mtp,ngram-mod"):
        assert known.learns(SpeculationConfig(method))
        assert "learns across requests" in known.warnings(SpeculationConfig(method), SERVE)[0]
    assert not known.learns(SIMPLE)


def test_address() -> None:
    known = LlamacppServer()
    assert known.address(SERVE, {}) == Address("127.0.0.1", 8080)
    variables = {"LLAMA_ARG_PORT": "1", "LLAMA_ARG_HOST": "::"}
    assert known.address(SERVE, variables) == Address("::", 1)
    assert known.address((*SERVE, "--port", "2"), variables) == Address("::", 2)
    assert known.address(("env", "LLAMA_ARG_PORT=3", *SERVE), variables) == Address("::", 3)


def test_elsewhere() -> None:
    known = LlamacppServer()
    assert known.elsewhere(SERVE, {"LLAMA_ARG_SPEC_TYPE": "none"}) is None
    assert "LLAMA_ARG_SPEC_TYPE" in (known.elsewhere(SERVE, {"LLAMA_ARG_SPEC_TYPE": "ngram-mod"}) or "")
    argv = ("env", "LLAMA_ARG_SPEC_DRAFT_MODEL=d.gguf", *SERVE)
    assert "LLAMA_ARG_SPEC_DRAFT_MODEL" in (known.elsewhere(argv, {}) or "")
    assert "draft model too" in (known.elsewhere(("llama-server", "--fim-qwen-7b-spec"), {}) or "")


def test_phases_of_a_real_start() -> None:
    log = (GOLDEN / "llamacpp-ngram-simple.log").read_text().splitlines()
    seen = list(dict.fromkeys(filter(None, map(LlamacppServer().phase, log))))
    assert seen == [*map(Phase, ("starting", "loading weights", "warming up", "serving"))]
    # Its build is unknown to it (b0-unknown), and nothing else is told.
    assert LlamacppServer().facts(log) == {}
    assert LlamacppServer().failure(log) is None


def test_older_builds_listen_before_they_load() -> None:
    # As in ggml-org/llama.cpp issue 12968.
    log = ["main: HTTP server is listening, hostname: 127.0.0.1, port: 8080", "main: loading model"]
    log += ["common_init_from_params: warming up the model with an empty run - please wait"]
    log += ["main: server is listening on http://127.0.0.1:8080 - starting the main loop"]
    assert [LlamacppServer().phase(line) for line in log] == [
        *map(Phase, ("starting", "loading weights", "warming up", "serving"))
    ]


def test_facts() -> None:
    # As in ggml-org/llama.cpp pull request 22546.
    log = [
        "build: 4941 (ba932dfb) with cc for x86_64-linux-gnu",
        "sched_reserve: Flash Attention was auto, set to enabled",
        "llama_kv_cache: size = 8192.00 MiB (262144 cells,   8 layers,  1/1 seqs), K (f16): 4096.00 MiB",
    ]
    assert LlamacppServer().facts(log) == {
        "version": "4941 (ba932dfb)",
        "attention_backend": "flash attention",
        "kv_cache_tokens": "262144",
    }
    assert LlamacppServer().facts(["0.00.02 I srv  init: build_info: b11549-9d1c2f0"]) == {
        "version": "b11549-9d1c2f0"
    }


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (["error: invalid argument: --draft-model"], "error: invalid argument: --draft-model"),
        (['error while handling argument "--draft-max": the argument has been removed.', "usage:"],
         'error while handling argument "--draft-max": the argument has been removed.'),
        (["0.01.264.877 E srv  load_model: failed to load model, 'm.gguf'", "0.01.3 I srv: cleaning up"],
         "srv  load_model: failed to load model, 'm.gguf'"),
        (["ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory",
          "llama_model_load: error loading model: unable to allocate CUDA0 buffer"],
         "ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory"),
        (["0.01.952.697 E ggml_aligned_malloc: insufficient memory (attempted to allocate  29.50 MB)",
          "0.01.952.739 E decode: could not reserve space for batch with 59 outputs",
          "0.01.954.363 E srv  update_slots: decode() failed: Compute error."],
         "ggml_aligned_malloc: insufficient memory (attempted to allocate  29.50 MB)"),
        (["couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080"],
         "couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080"),
    ],
)  # fmt: skip
def test_failure(log: list[str], message: str) -> None:
    assert LlamacppServer().failure(log) == message
