"""LlamaSettings reads and writes llama-server flags, and refuses what llama-server would refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.engines.llamacpp import (
    LlamaSettings,
    NgramLookup,
    NgramMod,
    baseline_settings,
    candidate_settings,
)
from breakeven.engines.llamacpp_flags import CACHE_TYPES, FLAGS, FLASH_ATTN, SPEC_TYPES
from breakeven.errors import UsageError

sizes = st.integers(1, 1024)
lookups = st.builds(NgramLookup, sizes, sizes, sizes)
mods = st.tuples(sizes, sizes, sizes).map(lambda t: NgramMod(t[0], min(t[1:]), max(t[1:])))
counts = st.integers(1, 10_000)
settings = st.builds(
    LlamaSettings,
    threads=counts,
    threads_batch=st.none() | counts,
    ctx_size=st.integers(0, 1 << 20),
    parallel=counts,
    batch_size=counts,
    ubatch_size=counts,
    gpu_layers=st.none() | st.integers(0, 200),
    flash_attn=st.sampled_from(FLASH_ATTN),
    cache_type_k=st.sampled_from(CACHE_TYPES),
    cache_type_v=st.sampled_from(CACHE_TYPES),
    cache_prompt=st.booleans(),
    kv_unified=st.booleans(),
    cache_ram_mib=st.integers(-1, 1 << 20),
    spec_types=st.lists(st.sampled_from(SPEC_TYPES[1:]), unique=True).map(tuple),
    ngram_simple=lookups,
    ngram_map_k=lookups,
    ngram_map_k4v=lookups,
    ngram_mod=mods,
)


@given(settings)
def test_flags_are_read_back_as_the_same_settings(some: LlamaSettings) -> None:
    assert LlamaSettings.parse(some.flags()) == some


@given(st.text())
def test_any_text_is_settings_or_a_usage_error(text: str) -> None:
    try:
        LlamaSettings.parse(text)
    except UsageError as error:
        assert str(error)


@given(
    st.lists(st.sampled_from([n for f in FLAGS for n in f.names] + ["3", "none", "x", "-1", "ngram-simple"]))
)
def test_any_mix_of_flags_and_values_is_settings_or_a_usage_error(words: list[str]) -> None:
    try:
        assert isinstance(LlamaSettings.parse(" ".join(words)), LlamaSettings)
    except UsageError as error:
        assert str(error)


def test_long_and_short_names_are_read() -> None:
    read = LlamaSettings.parse(
        "-t 3 --threads-batch 4 -c 4096 -np 2 -b 64 -ub 32 -ngl 0 -fa on -ctk q8_0 --cache-type-v f32 "
        "-cram 64 --cache-prompt -kvu --spec-type ngram-map-k,ngram-mod --spec-ngram-map-k-size-n 3 "
        "--spec-ngram-map-k-size-m 4 --spec-ngram-map-k-min-hits 2 --spec-ngram-mod-n-min 8"
    )
    assert read == LlamaSettings(
        threads=3,
        threads_batch=4,
        ctx_size=4096,
        parallel=2,
        batch_size=64,
        ubatch_size=32,
        gpu_layers=0,
        flash_attn="on",
        cache_type_k="q8_0",
        cache_type_v="f32",
        cache_prompt=True,
        kv_unified=True,
        cache_ram_mib=64,
        spec_types=("ngram-map-k", "ngram-mod"),
        ngram_map_k=NgramLookup(3, 4, 2),
        ngram_mod=NgramMod(n_min=8),
    )


def test_the_last_of_two_switches_counts_and_the_long_name_is_written() -> None:
    assert not LlamaSettings.parse("-kvu --no-kv-unified").kv_unified
    assert "--kv-unified" in LlamaSettings.parse("-kvu").flags()
    assert "kv" not in LlamaSettings.parse("-no-kvu").flags()


def test_a_drafter_without_sizes_gets_llama_cpps_own_and_a_warning_with_what_to_try() -> None:
    read = LlamaSettings.parse("-t 1 --spec-type ngram-simple")
    assert read.ngram_simple == NgramLookup(12, 48, 1)
    assert read.warnings() == (
        "ngram-simple drafts 48 tokens at a time, which rarely pays on a CPU: "
        "try --spec-ngram-simple-size-n 3 --spec-ngram-simple-size-m 3",
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--spec-ngram-simpel-size-n 3", "did you mean --spec-ngram-simple-size-n?"),
        ("--thread 3", "did you mean --threads?"),
        ("--qqqqqqqqqq 3", "it takes --threads"),
        ("--threads=3", "type  --threads 3"),
        ("--threads", "type  --threads 3"),
        ("--threads --parallel 2", "--threads needs a value"),
        ("--threads two", "whole number, not 'two'"),
        ("--threads 0", "from 1 to"),
        ("--spec-ngram-simple-size-m 0", "from 1 to 1024, not 0"),
        ("--spec-ngram-simple-size-m 1025", "from 1 to 1024, not 1025"),
        ("--spec-type ngram-simpel", "did you mean ngram-simple?"),
        ("--spec-type draft-eagle3", "--candidate-url"),
        ("--spec-type ngram-mod,ngram-mod", "each drafter once"),
        ("--spec-ngram-mod-n-min 65", "must not exceed"),
        ("-fa maybe", "auto, on, off"),
        ("-m x.gguf", "--model"),
        ("--port 80", "leave it out"),
        ("--draft-max 5", "--spec-ngram-simple-size-m"),
        ("ngram-simple", "is not a flag"),
        ("--spec-type 'ngram", "cannot read"),
    ],
)
def test_a_wrong_flag_says_what_to_type(flags: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        LlamaSettings.parse(flags)
    assert message in str(caught.value)


def test_a_value_out_of_range_is_refused_without_flags_too() -> None:
    with pytest.raises(UsageError, match="size-n takes a number from 1"):
        LlamaSettings(ngram_simple=NgramLookup(0, 3))


def test_describe_is_one_short_line() -> None:
    base = LlamaSettings(threads=1)
    assert base.describe() == "no speculation, 1 thread"
    assert candidate_settings(base).describe() == "ngram-simple n=3 m=3, 1 thread"
    both = LlamaSettings(threads=2, threads_batch=4, spec_types=("ngram-map-k", "ngram-mod", "ngram-cache"))
    assert both.describe() == (
        "ngram-map-k n=12 m=48 + ngram-mod match=24 min=48 max=64 + ngram-cache, 2 threads (4 for batches)"
    )


def test_default_sides_differ_in_speculation_only() -> None:
    base, candidate = baseline_settings(), candidate_settings()
    assert base.spec_types == () and base.warnings() == ()
    assert candidate.warnings() == ()
    assert LlamaSettings.parse(f"{candidate.flags()} --spec-type none") == LlamaSettings.parse(
        f"{base.flags()} --spec-ngram-simple-size-n 3 --spec-ngram-simple-size-m 3"
    )


@pytest.mark.parametrize("name", ["ngram-mod", "ngram-cache"])
def test_a_drafter_that_keeps_state_is_warned_about(name: str) -> None:
    some = LlamaSettings(spec_types=(name,))
    assert some.stateful() == (name,)
    assert some.warnings() == (f"{name} learns across requests: a repeated prompt is not a repeat",)


def test_a_prompt_cache_is_warned_about() -> None:
    assert "leave out --cache-prompt" in LlamaSettings.parse("--cache-prompt").warnings()[0]
    assert LlamaSettings.parse("--cache-prompt --no-cache-prompt").warnings() == ()


def test_unlike_threads_for_verification_are_warned_about() -> None:
    sizes = NgramLookup(3, 3)
    uneven = LlamaSettings(threads=1, threads_batch=2, spec_types=("ngram-simple",), ngram_simple=sizes)
    assert "set --threads and --threads-batch alike" in uneven.warnings()[0]
    assert LlamaSettings(threads=1, threads_batch=2).warnings() == ()
