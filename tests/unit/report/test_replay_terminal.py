import io
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from breakeven.acceptance.record import DECILES, Acceptance
from breakeven.replay.records import Origin, Replay, Sweep
from breakeven.report.definitions import REPLAY_DEFINITIONS, texts
from breakeven.report.replay_json import replay_json, sweep_json
from breakeven.report.replay_terminal import print_replay, print_sweep
from breakeven.units import share
from tests.unit.report.builders import HOSTILE
from tests.unit.report.replays import FLAGS, GREEDY, no_steps, replayed, request, row, swept


def shown(record: Replay | Sweep, width: int = 100, report: str | None = None) -> str:
    console = Console(file=io.StringIO(), width=width)
    if isinstance(record, Sweep):
        print_sweep(record, console, report)
    else:
        print_replay(record, console, report)
    return console.file.getvalue()


def test_the_numbers_are_those_of_the_json():
    text, body = shown(replayed()), replay_json(replayed())
    assert f"{body['tokens_per_step']:.3f} tokens per step: {share(body['draft_share'])} of the steps" in text
    assert f"{share(body['acceptance_rate'])} of the drafted tokens were accepted" in text
    counts = "40 steps, 16 drafts, 42 drafted tokens, 24 accepted, 64 tokens emitted; mean acceptance length"
    assert f"{counts} {body['mean_acceptance_length']:.3f}" in " ".join(text.split())


def test_tables_of_places_categories_and_parts():
    rows = [" ".join(line.split()) for line in shown(replayed()).splitlines()]
    assert "2 14 8 57.1 %" in rows  # of 14 drafts with a second token, 8 had two accepted
    assert "even 3 1.600 57.1 % 40.0 %" in rows
    assert "10–20 % 4 0.500 33.3 % 50.0 %" in rows
    assert "answer 16 1.375 68.8 % 75.0 %" in rows
    assert not any(line.startswith("reasoning") for line in shown(replayed(total=plain())).splitlines())


def plain() -> Acceptance:
    return replace(replayed().total, parts={})


def test_all_that_qualifies_the_figures_is_there():
    text = " ".join(shown(replayed(), report="out.html").split())
    for words in (
        "runs/measure-1 (run): 6 requests, 70 output tokens",
        "vllm-ngram k=5 n=2–4",
        "acceptance rate = accepted draft tokens / drafted tokens",
        "exact for the recorded tokens, as a lossless drafter cannot change a greedy output",
        "Steps start after each first output token",
        "Acceptance is not speedup",
        "`breakeven trial` decides",
        "! 2 records left out: no tokens were generated",
        "! the ids of 3 requests were made again",
        "Next: breakeven trial --baseline-url URL --candidate-url URL",
        "Report: out.html",
    ):
        assert words in text


def test_flags_of_the_embedded_engine_become_the_next_command():
    flags = "--spec-type ngram-simple --spec-ngram-simple-size-n 4"
    text = shown(replayed(drafter="llamacpp-ngram-simple", flags=flags))
    assert f"To turn it on: {flags}\n" in text
    noted = "(… are the model, prompts and lengths of that run)"
    assert f"Next: breakeven trial … --candidate '{flags}'\n{noted} " in text
    assert "breakeven forecast runs/measure-1 --calibration FILE" in " ".join(text.split())


def test_a_drafter_without_flags_has_no_next_command():
    text = shown(replayed(drafter="oracle", flags=""))
    assert "oracle names no flags" in text and "Next:" not in text


def test_what_is_copied_is_not_wrapped():
    assert f"To turn it on: {FLAGS}\n" in shown(replayed(), 40)


def test_ids_made_from_text_are_named():
    text = shown(replayed(origin=Origin("x.jsonl", "jsonl", None, "tokenizer")), 200)
    assert "token ids made from the text by a tokenizer" in text
    assert "Temperature unknown." in text


def test_nothing_to_step_through_and_nothing_drafted():
    assert "No decode step to replay: every output has one token" in shown(no_steps())
    histogram = np.array([(0, 0, 40)])
    total = Acceptance(6, 46, 40, histogram, np.zeros((DECILES, 4), np.int64))
    said = shown(replayed(total=total))
    assert "1.000 tokens per step: not one of 40 steps drafted anything" in said
    assert "Next: breakeven replay runs/measure-1 --sweep\n(or a smaller n)\n" in said
    assert "To turn it on" not in said and "breakeven trial -" not in said
    assert "Next:" not in shown(no_steps()) and "To turn it on" not in shown(no_steps())


def test_where_the_lengths_at_every_position_are_is_said_if_they_were_asked_for():
    said = "Accepted lengths at every position are in --json."
    assert said in shown(replayed(requests=(request(0, lengths=True),)))
    assert said not in shown(replayed())


def test_a_long_draft_is_cut_and_says_so():
    histogram = np.array([(20, 7, 5)])
    text = shown(replayed(total=replace(replayed().total, histogram=histogram)))
    assert "8 further places in --html and --json" in text


def test_a_sweep_shows_the_best_rows_and_the_best_of_each_drafter():
    rows = [" ".join(line.split()) for line in shown(swept()).splitlines()]
    table = [line for line in rows if line.split(" ")[0] in ("vllm-ngram", "trtllm-ngram", "sglang-ngram")]
    body = sweep_json(swept())["rows"]
    assert len(table) == 16 and table[-1].startswith("sglang-ngram")
    assert table[0].startswith(f"vllm-ngram k=12 n=2–4 {body[0]['tokens_per_step']:.3f}")
    assert table[0].endswith("*") and not table[2].endswith("*")
    assert (
        f"{len(body) - 16} further settings in --html and --json; the best of every drafter is above" in rows
    )


def test_a_sweep_names_its_best_by_both_measures():
    text = " ".join(shown(swept()).split())
    best = sweep_json(swept())["rows"]
    most = min(best, key=lambda one: one["rank_by_acceptance_rate"])
    assert f"21 settings; most tokens per step: {best[0]['tokens_per_step']:.3f} with vllm-ngram" in text
    assert f"Highest acceptance rate: {share(most['acceptance_rate'])} with {most['drafter']}" in text
    assert "To turn it on: --flags-of vllm-ngram" in text


def test_k_n_and_the_settings_that_differ_stand_in_the_table_and_no_others():
    rows = tuple(row("vllm-suffix", 1.5 - 0.1 * i, 0.5, k=8, depth=24, n=3, factor=i) for i in range(2))
    text = shown(swept(rows))
    line = next(line for line in text.splitlines() if line.startswith("vllm-suffix"))
    assert "k=8 n=3 factor=0" in line and "depth" not in line
    assert "with vllm-suffix k=8 n=3 factor=0, which drafts" in " ".join(text.split())


@pytest.mark.parametrize("width", [60, 100])
def test_rows_alike_are_folded_into_the_first(width: int):
    alike = [row("vllm-ngram", 1.5, 0.5, k=k) for k in (4, 6, 8)]
    rows = (*alike[:2], row("trtllm-ngram", 1.5, 0.5, k=1), alike[2], row("vllm-ngram", 1.4, 0.5, k=1))
    text = shown(swept(rows), width)
    assert "k=4 and 2 alike" in text and "k=6" not in text and "k=8" not in text
    assert text.count("alike") == 1 and "further" not in text
    many = tuple(row("vllm-ngram", 1.9 - 0.01 * (i // 2), 0.5, k=i) for i in range(40))
    cut = shown(swept(many), width)
    assert cut.count("and 1 alike") == 15 and "10 further settings in --html and --json" in cut


@pytest.mark.parametrize("width", [40, 60, 79, 80, 100, 200])
@pytest.mark.parametrize("record", [replayed(), no_steps(), swept()], ids=range(3))
def test_no_line_but_those_to_copy_is_wider_than_the_terminal(record: Replay | Sweep, width: int):
    copied = ("runs/", "To turn it on", "Next:")
    lines = [line for line in shown(record, width).splitlines() if not line.startswith(copied)]
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", [60, 120])
def test_hostile_strings_are_harmless(width: int):
    one = replayed(
        drafter=HOSTILE,
        settings={HOSTILE: HOSTILE},
        flags=HOSTILE,
        origin=Origin(HOSTILE, "jsonl", 0.0),
        by_category={HOSTILE: replayed().total, "b": replayed().total},
        requests=(replace(request(0), id=HOSTILE),),
        skipped={HOSTILE: 1},
        warnings=(HOSTILE,),
    )
    many = swept((row(HOSTILE, 1.5, 0.5, x=HOSTILE), row(HOSTILE, 1.4, 0.5, x=1)), warnings=(HOSTILE,))
    for text in (shown(one, width), shown(many, width)):
        assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cs") and c != "\n"]
        assert "\u202e" not in text
        assert "[bold red]x[/bold red][/]" in text


def test_a_sweep_suggests_what_the_records_engine_has():
    origin = replace(GREEDY, engine="tensorrt-llm")
    said = shown(swept(origin=origin), 120)
    best = next(row for row in swept().rows if row.drafter == "trtllm-ngram")
    assert f"On TensorRT-LLM, which served this record: {best.tokens_per_step:.3f} with trtllm-ngram" in said
    assert "To turn it on: --flags-of trtllm-ngram" in said
    assert sweep_json(swept(origin=origin))["suggested"]["drafter"] == "trtllm-ngram"
    assert sweep_json(swept())["suggested"]["drafter"] == swept().rows[0].drafter


def test_reasoning_and_answer_are_told_apart_only_where_both_have_steps():
    told = replayed().total
    only = replace(told, parts={"reasoning": told.parts["reasoning"] * 0, "answer": told.parts["answer"]})
    assert "reasoning" in shown(replayed(), 120)
    assert "reasoning" not in shown(replayed(total=only), 120)


def test_parts_of_fewer_steps_than_all_say_so():
    told = replayed().total
    some = replace(told, parts={name: counts // 2 for name, counts in told.parts.items()})
    said = "Reasoning and answer are told apart in 20 of 40 steps only."
    assert said in shown(replayed(total=some), 120)
    assert "told apart" not in shown(replayed(), 120)


def test_a_drafter_that_learns_says_on_which_server_and_how_it_warmed_up():
    requests = tuple(map(request, range(20)))
    said = shown(replayed(drafter="vllm-suffix", settings={}, requests=requests), 200)
    assert "What vllm-suffix learned is as on a server that takes one request at a time, in the" in said
    assert "Warm-up: 1.600 tokens per step in the first 2 requests, 1.600 in the 18 after." in said
    alone = replayed(drafter="vllm-suffix", settings={"max_cached_requests": 0}, requests=requests)
    assert "learned" not in shown(alone, 200) and "Warm-up" not in shown(alone, 200)


def test_a_sweep_says_how_many_of_its_drafters_learn():
    names = ("vllm-suffix", "vllm-ngram", "sglang-ngram", "trtllm-ngram")
    said = shown(swept(tuple(row(name, 1.5, 0.5) for name in names)), 200)
    assert "What 3 of these drafters learned is as on a server" in said


def test_what_a_server_counts_besides_is_said():
    assert "past the end of the reply (up to k tokens).\n" in shown(replayed(), 300)
    said = shown(replayed(drafter="llamacpp-ngram-simple", settings={}), 300)
    assert "(up to k tokens), and llama.cpp one token less where the end-of-sequence token" in said


def test_a_sweep_says_that_its_best_was_chosen_on_what_it_is_scored_on():
    assert "chosen and scored on the same 6 requests: expect somewhat less on others" in shown(swept(), 200)
    assert "chosen" not in shown(swept((row("vllm-ngram", 1.5, 0.5, k=1),)), 200)


def test_a_sweep_that_found_next_to_nothing_gives_no_command():
    rows = (row("vllm-ngram", 1.9, 0.5, k=1), row("trtllm-ngram", 1.025, 0.2))
    said = shown(swept(rows, origin=replace(GREEDY, engine="tensorrt-llm")), 200)
    enough = "here drafts enough to matter (at most 1.025 tokens per step)."
    assert f"None of the drafters of TensorRT-LLM {enough}" in said
    assert "Next:" not in said and "To turn it on" not in said
    unknown = shown(swept(rows[1:]), 200)
    assert f"None of the drafters {enough}" in unknown


def test_a_sweep_in_which_nothing_was_drafted():
    never = row("vllm-ngram", 1.0, 0.0, k=1)
    never = replace(never, counters=replace(never.counters, drafts=0))
    assert "1 setting; none of them drafted anything." in shown(swept((never,)), 200)


def test_settings_that_are_empty_leave_no_gap():
    rows = (row("vllm-suffix", 1.5, 0.5), row("trtllm-ngram", 1.4, 0.6))
    said = shown(swept(rows, origin=replace(GREEDY, engine="tensorrt-llm")), 200)
    sentences = [line for line in said.splitlines() if " with " in line]
    assert len(sentences) == 3 and not any("  " in line or " ," in line for line in sentences)


def test_the_front_is_explained_as_the_definition_does():
    assert f"* is on the Pareto front: {texts(REPLAY_DEFINITIONS)['pareto']}" in shown(swept(), 200)
