"""What holds for every engine, whatever its command line."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.drafters.registry import make_drafter
from breakeven.engines.dialects import NAMES, dialect, dialect_of
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError
from tests.unit.engines.dialect_cases import CONFIGS, FOREIGN, OURS, SERVERS, cases, make

Case = tuple[str, tuple[str, ...], SpeculationConfig]


@given(cases())
def test_to_add_and_take_away_again_leaves_what_was(case: Case) -> None:
    name, argv, config = case
    known = make(name)
    assert known.without(known.with_speculation(argv, config)) == known.without(argv)


@given(cases())
def test_no_other_word_is_touched(case: Case) -> None:
    name, argv, config = case
    known = make(name)
    ours = {word for words in OURS[name] for word in words}
    rest = [word for word in argv if word not in ours]
    assert list(known.without(argv)) == rest
    assert list(known.with_speculation(argv, config))[: len(rest)] == rest


@given(cases())
def test_what_is_written_is_read(case: Case) -> None:
    name, argv, config = case
    if name == "tensorrt-llm":  # it is in a file: see test_trtllm
        return
    known = make(name)
    changed = known.with_speculation(argv, config)
    read = known.speculation(changed)
    assert read is not None
    assert known.flags(read) == known.flags(config)
    assert known.speculation(known.without(changed)) is None
    assert read.k == config.k


@given(cases())
def test_the_address_has_nothing_to_do_with_speculation(case: Case) -> None:
    name, argv, config = case
    known = make(name)
    changed = known.with_speculation(argv, config)
    assert known.address(changed, {}) == known.address(known.without(argv), {})


@given(cases(), st.data())
def test_warnings_are_sentences_for_whatever_is_asked(case: Case, data: st.DataObject) -> None:
    name, argv, config = case
    for warning in make(name).warnings(config, argv, data.draw(st.sampled_from([None, "0.8", "b10000"]))):
        assert warning and warning == warning.strip() and not warning.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_command_lines_are_told_apart(name: str) -> None:
    for argv in SERVERS[name]:
        assert dialect_of(argv).name == name
        assert [other for other in NAMES if make(other).is_mine(argv)] == [name]
    assert not make(name).is_mine(FOREIGN)


@pytest.mark.parametrize("name", NAMES)
@given(st.data())
def test_the_line_is_the_words(name: str, data: st.DataObject) -> None:
    config = data.draw(CONFIGS[name])
    known = make(name)
    if name != "tensorrt-llm":
        assert tuple(shlex.split(known.line(config))) == known.flags(config)


@pytest.mark.parametrize("name", NAMES)
def test_a_method_that_no_engine_has_names_those_it_has(name: str) -> None:
    if name in ("vllm", "sglang", "tensorrt-llm"):  # whose own names are many, and grow
        return
    with pytest.raises(UsageError, match=r"has no teleport: type --method .*ngram"):
        make(name).flags(SpeculationConfig("teleport", 3))


@pytest.mark.parametrize(
    ("name", "message"),
    [("vlm", "did you mean vllm"), ("ollama", "type one of vllm, sglang, llama.cpp, tensorrt-llm, tgi")],
)
def test_unknown_engine(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        dialect(name)
    assert dialect("trtllm").name == "tensorrt-llm" and dialect("LLAMACPP").name == "llama.cpp"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("bash", "-lc", "exec vllm serve m"), "a shell starts this server"),
        (("sh", "-c", "vllm serve m"), "a shell starts this server"),
        (("sleep", "1"), "starts none of vLLM, SGLang"),
        (("vllm", "bench", "serve"), "starts none of"),
    ],
)
def test_a_command_of_no_engine(argv: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        dialect_of(argv)


@pytest.mark.parametrize(
    ("drafter", "settings", "engine", "config"),
    [
        ("vllm-ngram", {"k": 4, "min_n": 2, "max_n": 3}, "vllm", SpeculationConfig("ngram", 4, 2, 3)),
        ("llamacpp-ngram-simple", {"k": 4, "n": 3}, "llama.cpp", SpeculationConfig("ngram", 4, 3, 3)),
        ("llamacpp-ngram-cache", {}, "llama.cpp", SpeculationConfig("ngram-cache")),
        ("sglang-ngram", {"k": 7}, "sglang", SpeculationConfig("ngram", 7)),
    ],
)
def test_a_drafter_names_the_flags_of_its_engine(
    drafter: str, settings: dict[str, int], engine: str, config: SpeculationConfig
) -> None:
    assert make_drafter(drafter, settings).flags() == dialect(engine).line(config)


TRICKY = (
    *(
        "--speculative-config",
        "--speculative-config={",
        "-sc.a",
        "-sc.a.b=1",
        "-sc.=",
        "-sc.+",
        "--spec-tokens=x",
    ),
    *(
        "--speculative-algorithm",
        "--speculative-algorithm=",
        "--speculative-num-steps=1.5",
        "--spec-type",
        ",",
    ),
    *(
        "--spec-type",
        "-md",
        "--draft",
        "--spec-ngram-size-n",
        "[]",
        "{}",
        "null",
        "-1",
        "1e9",
        "NaN",
        "--config",
    ),
    *("--config=", "--speculate", "--speculate=-3", "-", "--", "=", "--=", "--port", "99999999999", "\x00"),
)


@given(st.sampled_from(NAMES), st.lists(st.sampled_from(TRICKY) | st.text(max_size=4), max_size=8))
def test_no_command_line_makes_it_stumble(name: str, words: list[str]) -> None:
    known = make(name)
    argv = (*SERVERS[name][0], *words)
    for read in (known.speculation, known.without, lambda words: known.address(words, {})):
        try:
            read(argv)
        except UsageError as error:
            assert str(error)


@given(st.sampled_from(NAMES), st.lists(st.text(max_size=40) | st.sampled_from(TRICKY)))
def test_no_log_makes_it_stumble(name: str, lines: list[str]) -> None:
    known = make(name)
    assert isinstance(known.facts(lines), dict)
    assert known.failure(lines) is None or known.failure(lines)
    for each in lines:
        known.phase(each)
