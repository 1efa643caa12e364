import pytest

from breakeven.drafters.registry import BUILT_IN
from breakeven.report.replay_drafter import engine_of, learns
from breakeven.report.replay_words import ENGINES, engine_name, next_command


@pytest.mark.parametrize("drafter", BUILT_IN)
def test_every_drafters_engine_has_a_name(drafter: str):
    assert engine_of(drafter) in ENGINES


def test_an_engine_without_a_name_is_shown_as_it_is_and_harmless():
    assert engine_name("vllm") == "vLLM"
    assert engine_name("some\x1b[31m\nengine") == "some engine"


def test_only_the_embedded_engines_own_flags_become_a_candidate():
    assert next_command("llama.cpp", "--a 1") == "breakeven trial --candidate '--a 1'"
    assert next_command("vllm", "--a 1") == "breakeven trial --baseline-url URL --candidate-url URL"
    assert next_command("llama.cpp", "") is None


def test_learning_is_a_matter_of_the_settings():
    assert learns("vllm-suffix", {}) and not learns("vllm-suffix", {"max_cached_requests": 0})
    assert learns("trtllm-ngram", {}) and not learns("trtllm-ngram", {"is_public_pool": False})
    assert not learns("vllm-ngram", {})


def test_a_drafter_that_is_not_known_here_is_ones_own():
    assert engine_of("nowhere:Class") == "own"
    assert not learns("nowhere:Class", {}) and not learns("vllm-suffix", {"no": "such setting"})
