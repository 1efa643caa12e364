from dataclasses import replace

import pytest

from breakeven.drafters.registry import BUILT_IN, drafter_class
from breakeven.report.replay_words import ENGINES, engine_name, sampling_sentence
from tests.unit.report.replays import GREEDY, replayed, swept


@pytest.mark.parametrize("drafter", BUILT_IN)
def test_every_drafters_engine_has_a_name(drafter: str):
    assert drafter_class(drafter).engine in ENGINES


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
