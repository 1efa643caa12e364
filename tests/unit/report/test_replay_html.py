import html
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from breakeven.errors import StorageError
from breakeven.replay.records import Origin
from breakeven.report.definitions import REPLAY_DEFINITIONS
from breakeven.report.replay_html import replay_page, sweep_page, write_replay_html, write_sweep_html
from breakeven.report.replay_json import replay_json, sweep_json
from breakeven.units import share
from tests.unit.report.builders import HOSTILE
from tests.unit.report.replays import no_steps, replayed, request, row, swept
from tests.unit.report.test_html import Page, assert_harmless

PAGES = {
    "replay": replay_page(replayed()),
    "no steps": replay_page(no_steps()),
    "sweep": sweep_page(swept()),
}


@pytest.mark.parametrize("name", PAGES)
def test_tags_are_balanced_links_have_targets_and_nothing_is_loaded(name: str):
    parsed = Page(PAGES[name])
    ids = [attrs["id"] for _, attrs in parsed.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"].removeprefix("#") for attrs in parsed.all("a")} <= set(ids)
    assert {f"def-{definition.key}" for definition in REPLAY_DEFINITIONS} <= set(ids)
    for _, attrs in parsed.elements:
        assert "src" not in attrs and "style" not in attrs
    assert len(parsed.all("h1")) == 1


@pytest.mark.parametrize("name", ["replay", "sweep"])
def test_what_the_figures_mean_stands_before_them(name: str):
    text = Page(PAGES[name]).text
    assert "exact for the recorded tokens, as a lossless drafter cannot change a greedy output" in text
    assert "Acceptance is not speedup" in text
    assert "Steps start after each first output token" in text


def test_the_data_is_the_json():
    scripts = Page(PAGES["replay"]).scripts
    assert json.loads(scripts[0]) == json.loads(json.dumps(replay_json(replayed())))
    assert json.loads(Page(PAGES["sweep"]).scripts[0]) == json.loads(json.dumps(sweep_json(swept())))


def test_many_requests_are_cut_and_lengths_left_out():
    many = replayed(requests=tuple(request(number, lengths=True) for number in range(1000)))
    source = replay_page(many)
    assert "The first 200 requests; --json has the other 800 too." in source
    data = json.loads(Page(source).scripts[0])
    assert len(data["per_request"]) == 200 and "accepted_lengths" not in data["per_request"][0]
    assert len(source.encode()) < 300_000


def test_the_numbers_of_the_sweep_are_those_of_its_json():
    rows = re.findall(r"<tr><td>.*?</tr>", PAGES["sweep"], re.DOTALL)
    body = sweep_json(swept())["rows"]
    assert len(rows) == len(body)
    for place, (text, one) in enumerate(zip(rows, body, strict=True), 1):
        cells = [html.unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<t[dh].*?</t[dh]>", text)]
        assert cells[:2] == [str(place), one["drafter"]]
        assert cells[3] == f"{one['tokens_per_step']:.3f}"
        assert cells[4] == share(one["acceptance_rate"])
        assert (cells[7] == "◆") == one["pareto"]


def test_every_setting_of_a_heat_map_has_its_cell():
    source = PAGES["sweep"]
    assert source.count('<table class="heat">') == 2
    assert len(re.findall(r'<td class="h\d', source)) == 20
    best = re.findall(r'<td class="h9 best" title="(.*?)">(.*?)</td>', source)
    assert best == [("vllm-ngram k=12 n=2–4", "1.88")]


def test_plots_tell_their_content_to_those_who_do_not_see_them():
    outer = [attrs for attrs in Page(PAGES["sweep"]).all("svg") if attrs.get("role") == "img"]
    assert len(outer) == 1 and "21 settings, " in (outer[0]["aria-label"] or "")
    regions = [attrs for attrs in Page(PAGES["sweep"]).all("div") if attrs.get("role") == "region"]
    assert all(attrs["aria-label"] and attrs["tabindex"] == "0" for attrs in regions)


def test_sections_without_content_are_left_out():
    parsed = Page(PAGES["no steps"])
    ids = {attrs["id"] for _, attrs in parsed.elements if "id" in attrs}
    assert not ids & {"positions", "histogram", "categories", "parts"}
    assert "No decode step to replay" in parsed.text


def test_many_settings_are_cut_and_all_are_in_the_data():
    rows = tuple(row("vllm-ngram", 2 - i / 1000, 0.5, k=i + 1) for i in range(700))
    source = sweep_page(swept(rows))
    assert "200 more are in the data" in source
    assert len(json.loads(Page(source).scripts[0])["rows"]) == 700


def test_a_long_draft_has_a_short_table():
    long = np.array([(0, 0, 5), (200_000, 7, 3)])
    source = replay_page(replayed(total=replace(replayed().total, histogram=long)))
    assert "The first 100 places; what was accepted at the other 199,900 is in the data" in source
    assert len(source.encode()) < 200_000


def test_what_follows_is_as_on_the_terminal():
    flags = "--spec-type ngram-simple"
    source = replay_page(replayed(drafter="llamacpp-ngram-simple", settings={}, flags=flags))
    text = " ".join(Page(source).text.split())
    assert f"breakeven trial … --candidate '{flags}' (… are the model, prompts and lengths" in text
    nothing = replace(replayed().total, histogram=np.array([(0, 0, 40)]))
    text = Page(replay_page(replayed(total=nothing))).text
    assert "breakeven replay runs/measure-1 --sweep" in text and "flags" not in text.split("What this")[0]


def test_where_the_lengths_at_every_position_are_is_said_if_they_were_asked_for():
    said = "Accepted lengths at every position are in --json."
    assert said in replay_page(replayed(requests=(request(0, lengths=True),)))
    assert said not in PAGES["replay"]


def test_warm_up_and_parts_are_as_on_the_terminal():
    told = replayed().total
    some = replace(told, parts={name: counts // 2 for name, counts in told.parts.items()})
    requests = tuple(map(request, range(20)))
    source = replay_page(replayed(drafter="vllm-suffix", settings={}, requests=requests, total=some))
    assert "Warm-up: 1.600 tokens per step in the first 2 requests, 1.600 in the 18 after." in source
    assert "Reasoning and answer are told apart in 20 of 40 steps only." in source
    assert "What vllm-suffix learned is as on a server" in source
    assert "Warm-up:" not in PAGES["replay"] and "told apart in" not in PAGES["replay"]


def test_a_sweep_that_found_next_to_nothing_gives_no_command():
    source = sweep_page(swept((row("vllm-ngram", 1.025, 0.5, k=1),)))
    assert "drafts enough to matter (at most 1.025 tokens per step)" in source
    assert "to try next" not in source and "Next:" not in source
    assert "to try next" in PAGES["sweep"] and "Next:" in PAGES["sweep"]


def test_hostile_strings_are_only_text():
    one = replayed(
        drafter=HOSTILE,
        settings={HOSTILE: HOSTILE},
        flags=HOSTILE,
        origin=Origin(HOSTILE, "jsonl", 0.0),
        by_category={HOSTILE: replayed().total, "b": replayed().total},
        requests=(replace(request(0), id=HOSTILE, category=HOSTILE),),
        skipped={HOSTILE: 1},
        warnings=(HOSTILE,),
    )
    many = swept((row(HOSTILE, 1.5, 0.5, x=HOSTILE), row(HOSTILE, 1.4, 0.5, x=1)), warnings=(HOSTILE,))
    for source in (replay_page(one), sweep_page(many)):
        assert_harmless(source)


def test_pages_are_written_whole(tmp_path: Path):
    write_replay_html(replayed(), tmp_path / "a.html")
    write_sweep_html(swept(), tmp_path / "b.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == PAGES["replay"]
    assert (tmp_path / "b.html").read_text(encoding="utf-8") == PAGES["sweep"]
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(StorageError, match="cannot write to"):
        write_sweep_html(swept(), tmp_path / "missing" / "c.html")
