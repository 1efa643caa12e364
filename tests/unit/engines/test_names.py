"""A slip in a method or a setting is told with what was meant, before a server is restarted with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.engines import known_names, llamacpp_server, sglang, trtllm, vllm_flags
from breakeven.engines.argv import is_newer, readable_version
from breakeven.engines.dialects import NAMES, dialect
from breakeven.engines.names import OURS, Named, Names, nearest
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError

NEWER = {"vllm": "0.34.1", "sglang": "0.6", "llama.cpp": "b99999", "tensorrt-llm": "2.0", "tgi": "9.0"}
OWN = {
    "vllm": "suffix_decoding_max_tree_depth",
    "sglang": "speculative-ngram-capacity",
    "llama.cpp": "spec-draft-n-min",
    "tensorrt-llm": "is_public_pool",
}


def config(method: str, **options: object) -> SpeculationConfig:
    return SpeculationConfig(method, 5, options=options)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("slip", ["ngrm", "n-gram", "NGRAMS", "n_gram"])
def test_a_slip_in_a_method_names_the_method(name: str, slip: str) -> None:
    with pytest.raises(UsageError, match=r"did you mean n[gG]ram\? type  --method n[gG]ram"):
        dialect(name).flags(config(slip))


@pytest.mark.parametrize(
    ("name", "slip", "meant"),
    [
        ("vllm", "eagle-3", "eagle3"),
        ("vllm", "EAGLE3", "eagle3"),
        ("vllm", "draftmodel", "draft-model"),
        ("vllm", "sufix", "suffix"),
        ("vllm", "deepsek_mtp", "deepseek_mtp"),
        ("vllm", "dflsh", "dflash"),
        ("sglang", "eagle-3", "eagle3"),
        ("sglang", "standalon", "standalone"),
        ("sglang", "draft_model", "draft-model"),
        ("llama.cpp", "ngram-mapk", "ngram-map-k"),
        ("llama.cpp", "eagle-3", "eagle3"),
        ("llama.cpp", "draft-egle3", "draft-eagle3"),
        ("llama.cpp", "draft-mtp,ngram-mud", "ngram-mod"),
        ("tensorrt-llm", "pard", "PARD"),
        ("tensorrt-llm", "eagle-3", "eagle3"),
        ("tgi", "medussa", "medusa"),
    ],
)
def test_of_several_the_nearest_is_named(name: str, slip: str, meant: str) -> None:
    with pytest.raises(UsageError, match=rf"did you mean {meant}\?"):
        dialect(name).flags(SpeculationConfig(slip, 5, draft="d"))


@pytest.mark.parametrize("name", ["vllm", "sglang", "tensorrt-llm"])
def test_a_method_like_no_other_may_be_a_plug_ins_and_is_doubted(name: str) -> None:
    made = SpeculationConfig("zzz", 5, draft="d")
    assert dialect(name).flags(made)
    assert any(warning.startswith("method zzz is none that") for warning in dialect(name).warnings(made, ()))


@pytest.mark.parametrize("name", ["vllm", "sglang", "llama.cpp", "tensorrt-llm"])
def test_a_setting_that_is_not_known_is_refused_with_the_nearest_and_all(name: str) -> None:
    slip = f"{OWN[name][:-4]}{OWN[name][-3:]}"
    with pytest.raises(UsageError, match=rf"no setting {slip} .*did you mean {OWN[name]}\? it takes .*, "):
        dialect(name).flags(config("ngram", **{slip: 1}))
    with pytest.raises(UsageError, match=r"no setting qqq of speculation: it takes "):
        dialect(name).flags(config("ngram", qqq=1))


@pytest.mark.parametrize("name", ["vllm", "llama.cpp", "tensorrt-llm"])
def test_of_a_newer_version_a_name_is_passed_on_with_a_warning(name: str) -> None:
    known, newer = dialect(name), NEWER[name]
    setting = {"llama.cpp": "spec-ngram-simple-more"}.get(name, "more")
    made = config("ngram", **{setting: 1})
    assert "more" in repr(known.files((), made, newer) or known.flags(made, newer))
    assert any(f"setting {setting} is none" in warning for warning in known.warnings(made, (), newer))
    with pytest.raises(UsageError, match=f"no setting {setting}"):
        known.flags(made)


def test_of_a_newer_sglang_a_name_is_passed_on_with_a_warning() -> None:
    made = SpeculationConfig("eagle4", 5, draft="d")
    assert dialect("sglang").flags(made, NEWER["sglang"])[:2] == ("--speculative-algorithm", "EAGLE4")
    assert any("method eagle4 is none" in one for one in dialect("sglang").warnings(made, (), "0.6"))
    with pytest.raises(UsageError, match="did you mean eagle"):
        dialect("sglang").flags(made, "0.5.19")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_known_is_neither_refused_nor_doubted(name: str) -> None:
    known = dialect(name)
    for method in known.names.methods:
        assert not known.doubts(SpeculationConfig(method, 5))
        known.check_names(SpeculationConfig(method, 5))
    options = dict.fromkeys(known.names.settings, 1)
    known.check_names(SpeculationConfig("ngram", 5, options=options))
    assert known.knows(SpeculationConfig("ngram", 5, options=options))
    assert not known.knows(SpeculationConfig("ngram", 5, options={"qqq": 1}))


@pytest.mark.parametrize("name", NAMES)
def test_names_are_listed_once(name: str) -> None:
    names = dialect(name).names
    assert len(set(names.methods)) == len(names.methods)
    assert list(names.settings) == sorted(set(names.settings))


def test_what_the_dialects_write_themselves_is_known() -> None:
    assert set(vllm_flags.OLD.values()) <= {*known_names.VLLM.settings}
    assert {sglang.STEPS, sglang.TOPK, sglang.TOKENS, sglang.MIN_N, sglang.MAX_N} <= {
        *known_names.SGLANG.settings
    }
    assert {name.removeprefix("--") for name in sglang.SWITCHES} <= {*known_names.SGLANG.settings}
    assert {*sglang.ALGORITHMS} <= {*known_names.SGLANG.methods}
    assert {llamacpp_server.DRAFT_K, *llamacpp_server._OLD_SIZES.values()} <= {*known_names.LLAMACPP.settings}
    assert {*llamacpp_server.METHODS, *llamacpp_server.METHODS.values()} <= {*known_names.LLAMACPP.methods}
    assert {*trtllm.TYPES, *trtllm.TYPES.values()} <= {*known_names.TRTLLM.methods}


def test_hyphens_are_no_slip() -> None:
    flags = dialect("vllm").flags(config("suffix", **{"suffix-decoding-max-tree-depth": 9}))
    assert "suffix-decoding-max-tree-depth" in flags[1]
    assert dialect("sglang").flags(config("ngram", speculative_ngram_capacity=9))[-1] == "9"


def test_our_own_names_are_left_to_the_dialect_that_lacks_them() -> None:
    names = Names("X", "1", ("ngram",))
    for method in OURS:
        names.check(Named((method,)), None)


@given(st.text(max_size=12))
def test_the_nearest_is_one_of_those_there_are(name: str) -> None:
    assert nearest(name, known_names.VLLM.methods) in (None, *known_names.VLLM.methods)


@pytest.mark.parametrize(
    ("version", "than", "newer"),
    [
        (None, "0.33", False),
        ("0.33", "0.33", False),
        ("0.33.1", "0.33", False),
        ("0.34.0rc1", "0.33", True),
        ("v0.9.2", "0.33", False),
        ("1.0", "0.33", True),
        ("0.1.dev9321+g8b6e1d639", "0.33", True),  # a clone without tags
        ("b10442-abc", "b10441", True),
        ("b10441 (abcdef0)", "b10441", False),
    ],
)
def test_is_newer(version: str | None, than: str, newer: bool) -> None:
    assert is_newer(version, than) is newer


@pytest.mark.parametrize(
    "text",
    [
        *("0.32.0", "v0.9.2", "0.33", "0.6.4.post1", "0.11.1rc2", "0.32.0+cpu", "1.3.0rc27", "b8942"),
        *("b10441-1a2b3c4", "0.9.2.dev140+g8b6e1d639", "0.1.dev9321+g8b6e1d", "0.17.0-rc1", "8941"),
    ],
)
def test_versions_that_can_be_read(text: str) -> None:
    assert readable_version(text) == text


@pytest.mark.parametrize("text", ["latest", "0.x", "", "nightly", "0.32.x", "v", "main", "0.32.0 ", "٠.٣"])
def test_versions_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UsageError, match=r"no version that can be read: .*--engine-version 0\.32\.0"):
        readable_version(text)


@pytest.mark.parametrize("name", [each for each in NAMES if each != "vllm"])
@pytest.mark.parametrize("method", ["guard", "guard-off"])
def test_the_guard_is_vllms_only(name: str, method: str) -> None:
    with pytest.raises(UsageError, match=f"has no {method}"):
        dialect(name).flags(SpeculationConfig(method, 5, draft="d"))
