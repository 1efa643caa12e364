from dataclasses import replace

import pytest

from breakeven.drafters.registry import BUILT_IN
from breakeven.report.replay_drafter import engine_of, learns
from breakeven.report.replay_words import ENGINES, engine_name, sampling_sentence
from tests.unit.report.replays import GREEDY, replayed, swept


@pytest.mark.parametrize("drafter", BUILT_IN)
def test_every_drafters_engine_has_a_name(drafter: str):
    assert engine_of(drafter) in ENGINES


def test_an_engine_without_a_name_is_shown_as_it_is_and_harmless():
    assert engine_name("vllm") == "vLLM"
    assert engine_name("some\x1b[31m\nengine") == "some engine"


MISCOUNTED = "2 of 6 requests have another number of tokens, made again from text, than the server counted: "


@pytest.mark.parametrize("temperature", [None, 0.0, 0.7])
@pytest.mark.parametrize("make", [replayed, swept])
def test_ids_that_were_made_again_are_not_claimed_to_be_exact(make, temperature):
    for ids, warnings in (
        ("tokenizer", ()),
        ("server tokenizer", (MISCOUNTED + "their drafts are approximate",)),
    ):
        origin = replace(GREEDY, ids=ids, temperature=temperature)
        said = sampling_sentence(make(origin=origin, warnings=warnings))
        assert "approximate" in said and "may differ from those that the model wrote" in said
        assert "exact count" not in said and "exact for" not in said and "exact if" not in said


@pytest.mark.parametrize("temperature", [None, 0.0, 0.7])
def test_as_many_ids_as_the_server_counted_are_exact_if_they_are_the_same(temperature):
    same = "if the ids are those that were generated (they are as many as the server counted)"
    said = sampling_sentence(
        replayed(origin=replace(GREEDY, ids="server tokenizer", temperature=temperature))
    )
    assert same in said and "approximate" not in said
    assert same not in sampling_sentence(replayed(origin=replace(GREEDY, temperature=temperature)))


def test_learning_is_a_matter_of_the_settings():
    assert learns("vllm-suffix", {}) and not learns("vllm-suffix", {"max_cached_requests": 0})
    assert learns("trtllm-ngram", {}) and not learns("trtllm-ngram", {"is_public_pool": False})
    assert not learns("vllm-ngram", {})


def test_a_drafter_that_is_not_known_here_is_ones_own():
    assert engine_of("nowhere:Class") == "own"
    assert not learns("nowhere:Class", {}) and not learns("vllm-suffix", {"no": "such setting"})


def test_what_a_drafter_of_ones_own_prints_is_no_result(tmp_path, monkeypatch, capsys):
    (tmp_path / "talking.py").write_text(
        "from breakeven.drafters.base import Drafter\n"
        "from breakeven.drafters.settings import Settings\n"
        "print('imported')\n"
        "class Mine(Drafter[Settings]):\n"
        "    name, summary, Config, learns = 'mine', 'none', Settings, True\n"
        "    def __init__(self, settings):\n"
        "        print('made')\n"
        "        super().__init__(settings)\n"
        "    def propose(self, context, room):\n"
        "        return ()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert engine_of("talking:Mine") == "own" and learns("talking:Mine", {})
    shown = capsys.readouterr()
    assert shown.out == "" and "imported" in shown.err and "made" in shown.err
