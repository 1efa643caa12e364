"""TensorRT-LLM's configuration files, its command line and its log."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest
from hypothesis import given

from breakeven.engines import yaml_text
from breakeven.engines.dialect import Address, Phase
from breakeven.engines.speculation import SpeculationConfig
from breakeven.engines.trtllm import Trtllm
from breakeven.errors import UsageError
from tests.unit.engines.dialect_cases import CONFIGS

SERVE = ("trtllm-serve", "org/model", "--port", "8001")
NGRAM = SpeculationConfig("ngram", 3, max_n=4)
TUNED = """\
# tuned in May
disable_overlap_scheduler: false  # for throughput
kv_cache_config:
  free_gpu_memory_fraction: 0.8   # leave room

  enable_block_reuse: true
cuda_graph_config:
- a
"""
SPECULATING = (
    TUNED + "speculative_config:\n  decoding_type: Eagle3\n  max_draft_len: 4\n  speculative_model: d\n"
)


@given(CONFIGS["tensorrt-llm"])
def test_what_is_written_is_read(config: SpeculationConfig) -> None:
    for before in ("", TUNED, SPECULATING):
        disk = {"theirs.yaml": before}
        known = Trtllm(disk.get, "/etc/breakeven")
        argv = (*SERVE, "--extra_llm_api_options", "theirs.yaml")
        changed = known.with_speculation(argv, config)
        disk.update(known.files(argv, config))
        read = known.speculation(changed)
        assert read is not None
        assert known.flags(read) == known.flags(config)
        plain = known.without(changed)
        disk.update(known.files(changed, None))
        assert plain == known.without(argv)
        assert known.speculation(plain) is None
        assert disk["theirs.yaml"] == before


def test_the_last_file_counts_and_theirs_stays() -> None:
    known = Trtllm({"t.yaml": TUNED}.get, "/run/x")
    argv = (*SERVE, "--config", "t.yaml")
    changed = known.with_speculation(argv, NGRAM)
    assert changed[: len(argv)] == argv and changed[-2] == "--config"
    text = known.files(argv, NGRAM)[changed[-1]]
    assert changed[-1].startswith("/run/x/breakeven-speculation-")
    assert text == TUNED.replace("disable_overlap_scheduler: false  # for throughput\n", "") + (
        "disable_overlap_scheduler: true\n"
        'speculative_config:\n  decoding_type: "NGram"\n  max_draft_len: 3\n  max_matching_ngram_size: 4\n'
    )


def test_a_baseline_that_speculates_is_turned_off_by_a_copy() -> None:
    known = Trtllm({"t.yaml": SPECULATING}.get)
    argv = (*SERVE, "--config=t.yaml")
    assert known.speculation(argv) == SpeculationConfig("eagle3", 4, draft="d")
    off = known.without(argv)
    assert off == (*argv, "--config", "breakeven-speculation-off.yaml")
    assert known.files(argv, None) == {off[-1]: TUNED}
    assert known.without(off) == off


def test_a_baseline_without_speculation_needs_no_file() -> None:
    known = Trtllm({"t.yaml": TUNED}.get)
    argv = (*SERVE, "--config", "t.yaml")
    assert known.without(argv) == argv and known.files(argv, None) == {}
    assert known.without(SERVE) == SERVE and known.files(SERVE, None) == {}


def test_the_option_has_the_name_that_the_version_knows() -> None:
    # --config since 1.2: NVIDIA/TensorRT-LLM pull request 9104.
    known = Trtllm({"t.yaml": SPECULATING}.get)
    assert [known.flags(NGRAM, version)[0] for version in ("1.1.0", "1.2.0rc4", None)] == [
        *("--extra_llm_api_options", "--config", "--config")
    ]
    older = (*SERVE, "--extra_llm_api_options=t.yaml")
    assert known.with_speculation(older, NGRAM)[-2] == "--extra_llm_api_options"
    assert known.without(older)[-2] == "--extra_llm_api_options"


@pytest.mark.parametrize(
    ("config", "older", "newer"),
    [
        (
            SpeculationConfig("eagle3", 4, draft="/d"),
            {"decoding_type": "Eagle", "max_draft_len": 4, "speculative_model_dir": "/d"},
            {"decoding_type": "Eagle3", "max_draft_len": 4, "speculative_model": "/d"},
        ),
        (
            SpeculationConfig("mtp", 3),
            {"decoding_type": "MTP", "num_nextn_predict_layers": 3},
            {"decoding_type": "MTP", "max_draft_len": 3},
        ),
        (
            SpeculationConfig("ngram", 3, max_n=4),
            {"decoding_type": "NGram", "max_draft_len": 3, "max_matching_ngram_size": 4},
            {"decoding_type": "NGram", "max_draft_len": 3, "max_matching_ngram_size": 4},
        ),
    ],
)
def test_settings_by_the_names_that_the_version_knows(
    config: SpeculationConfig, older: dict[str, object], newer: dict[str, object]
) -> None:
    known = Trtllm({}.get)
    for version, section in (("1.1.0", older), ("1.2.0", older), ("1.3.0", newer), (None, newer)):
        ((path, text),) = known.files(SERVE, config, version).items()
        assert yaml_text.value(text, "speculative_config") == section
        assert known.with_speculation(SERVE, config, version)[-1] == path
        assert known.flags(config, version)[-1] == path


def test_an_unknown_file_is_not_guessed_at() -> None:
    with pytest.raises(UsageError, match="cannot be read, and may turn speculation on"):
        Trtllm(lambda path: None).speculation((*SERVE, "--config", "gone.yaml"))


def test_the_line_is_for_bash() -> None:
    config = SpeculationConfig("draft-model", 3, draft="it's")
    option, _, value = Trtllm().line(config).partition(" ")
    shown = subprocess.run(["bash", "-c", f"cat {value}"], check=True, capture_output=True)
    assert option == "--config"
    assert json.loads(shown.stdout)["speculative_config"] == {
        "decoding_type": "DraftTarget",
        "max_draft_len": 3,
        "speculative_model": "it's",
    }
    assert shlex.split(Trtllm().line(NGRAM))


@pytest.mark.parametrize(
    ("section", "config"),
    [
        ("speculative_config:\n  decoding_type: MTP\n  num_nextn_predict_layers: 3\n",
         SpeculationConfig("mtp", 3)),
        # Eagle is an alias of Eagle3: docs/source/features/speculative-decoding.md
        ("speculative_config:\n   decoding_type: 'Eagle'\n   max_draft_len: 4\n   speculative_model_dir: d\n",
         SpeculationConfig("eagle3", 4, draft="d")),
        ('speculative_config: {"decoding_type": "PARD", "max_draft_len": 4}\n', SpeculationConfig("PARD", 4)),
        ("speculative_config: null\n", None),
        ("kv_cache_config:\n  speculative_config: x\n", None),
    ],
)  # fmt: skip
def test_read(section: str, config: SpeculationConfig | None) -> None:
    assert Trtllm(lambda path: section).speculation((*SERVE, "--config", "c")) == config


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("speculative_config:\n  max_draft_len: 4\n", "has no decoding_type"),
        ("speculative_config:\n  a:\n    b: 1\n", "nested more deeply"),
        ("{speculative_config: {}}\n", "in one bracket"),
    ],
)
def test_unreadable(section: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Trtllm(lambda path: section).speculation((*SERVE, "--config", "c"))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (SpeculationConfig("ngram"), "type --k 5"),
        (SpeculationConfig("ngram", 3, 2, 4), "leave out --min-n"),
        (SpeculationConfig("eagle3", 3), "type --draft PATH"),
        (SpeculationConfig("suffix", 3), "TensorRT-LLM has no suffix"),
        (SpeculationConfig("mtp", 3, max_n=3), "leave out --max-n"),
    ],
)
def test_refused(config: SpeculationConfig, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Trtllm().flags(config)


def test_traps() -> None:
    found = " | ".join(Trtllm().warnings(NGRAM, SERVE))
    assert "shared by all requests" in found and "overlap scheduler" in found
    private = SpeculationConfig("ngram", 3, options={"is_public_pool": False})
    assert not Trtllm().learns(private)
    assert "shared by all" not in " | ".join(Trtllm().warnings(private, SERVE))
    assert Trtllm().warnings(SpeculationConfig("mtp", 3), SERVE) == ()


def test_address() -> None:
    assert Trtllm().address(("trtllm-serve", "m"), {}) == Address("localhost", 8000)
    assert Trtllm().address((*SERVE, "--host", "0.0.0.0"), {}) == Address("0.0.0.0", 8001)


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("[TensorRT-LLM] TensorRT-LLM version: 0.20.0", Phase("starting")),
        ("[07/24/2025-08:13:02] [TRT-LLM] [I] Rank 0 prefetching model.safetensors to memory...",
         Phase("loading weights")),
        ("Loading weights:  50%|███   | 300/600 [00:01<00:01, 290it/s]", Phase("loading weights", 300, 600)),
        ("[TRT-LLM] [I] Run generation-only CUDA graph warmup for batch size=4, draft_len=3",
         Phase("capturing graphs")),
        ("INFO:     Application startup complete.", Phase("serving")),
        ("[TRT-LLM] [I] get signal from executor worker", None),
    ],
)  # fmt: skip
def test_phase(line: str, phase: Phase | None) -> None:
    assert Trtllm().phase(line) == phase


def test_facts_and_failure() -> None:
    log = ["[TensorRT-LLM] TensorRT LLM version: 1.2.0"]
    log += [
        "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 9.71 GiB for max tokens in paged KV cache (63616)."
    ]
    assert Trtllm().facts(log) == {"version": "1.2.0", "kv_cache_tokens": "63616"}
    error = "[07/24/2025-08:13:02] [TRT-LLM] [E] ValueError: unknown field speculative_confg"
    assert Trtllm().failure([*log, error]) == "ValueError: unknown field speculative_confg"
