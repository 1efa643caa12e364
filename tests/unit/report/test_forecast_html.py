import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from breakeven.errors import StorageError
from breakeven.forecast.records import Forecast, Published
from breakeven.interval import Interval
from breakeven.replay.records import Origin
from breakeven.report.forecast_html import forecast_page, write_forecast_html
from breakeven.report.forecast_json import forecast_json
from breakeven.report.forecast_words import FORECAST_DEFINITIONS
from tests.unit.report.builders import HOSTILE
from tests.unit.report.forecasts import (
    MEASURED,
    PUBLISHED,
    coverage,
    forecast,
    given,
    row,
    rows,
    step_parts,
    without_record,
)
from tests.unit.report.test_html import Page, assert_harmless

PAGES = {
    "forecast": forecast_page(forecast()),
    "without a record": forecast_page(without_record()),
    "given": forecast_page(without_record(given=given())),
    "bare": forecast_page(without_record(needed=(), published=(), steps=(), coverage=None)),
}


def one_concurrency() -> Forecast:
    cut = tuple(replace(one, cells=one.cells[:1]) for one in rows())
    return forecast(rows=cut, oracle=(), concurrencies=(1,))


def text_of(made: Forecast) -> str:
    return " ".join(Page(forecast_page(made)).text.split())


@pytest.mark.parametrize("name", PAGES)
def test_tags_are_balanced_links_have_targets_and_nothing_is_loaded(name: str):
    parsed = Page(PAGES[name])
    ids = [attrs["id"] for _, attrs in parsed.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"].removeprefix("#") for attrs in parsed.all("a")} <= set(ids)
    assert {f"def-{definition.key}" for definition in FORECAST_DEFINITIONS} <= set(ids)
    for _, attrs in parsed.elements:
        assert "src" not in attrs and "style" not in attrs
    assert "url(" not in PAGES[name] and "@import" not in PAGES[name]
    assert len(parsed.all("h1")) == 1


def test_the_data_is_the_json():
    assert json.loads(Page(PAGES["forecast"]).scripts[0]) == json.loads(json.dumps(forecast_json(forecast())))


def test_the_answer_and_what_would_try_it_stand_first():
    text = text_of(forecast())
    places = [
        text.index(said)
        for said in (
            "1.54× (1.48× to 1.60×) decode speedup at concurrency 1",
            forecast().recommendation,
            "breakeven trial --baseline-url URL",
            "--flags-of vllm-ngram 8",
            "The concurrency curve of this server",
            "the ids of 3 requests were made again",
            "Decode speedup by window",
        )
    ]
    assert places == sorted(places)


def test_every_plot_tells_its_content_to_those_who_do_not_see_it():
    plots = [attrs for attrs in Page(PAGES["forecast"]).all("svg") if attrs.get("role") == "img"]
    labels = [attrs["aria-label"] or "" for attrs in plots]
    said = (
        "decoding at concurrency 1: vllm-ngram n=2–4 is best at 8 with 1.54× [1.48, 1.60]",
        "decoding by concurrency: k=8 n=2–4 is best at 1 with 1.54× [1.48, 1.60]",
        "throughput by concurrency: k=8 n=2–4 is best at 1 with 1.43×",
        "a step of the target model: plain step: 6.00 (5.82 to 6.18) ms; 1 drafted token: 7.00",
        "9 tokens wake 35.3 (25.2 to 44.4) of 128 experts of a layer, and would wake 72",
    )
    assert len(labels) == len(said)
    for label, start in zip(labels, said, strict=True):
        assert label.startswith(start)
    regions = [attrs for attrs in Page(PAGES["forecast"]).all("div") if attrs.get("role") == "region"]
    assert all(attrs["aria-label"] and attrs["tabindex"] == "0" for attrs in regions)


def test_decoding_and_throughput_are_two_plots_and_undecided_is_told_without_colour():
    source = PAGES["forecast"]
    assert source.count("concurrency, log axis") == 2
    said = dict(re.findall(r'<td class="(faster|slower|undecided)" title="[^"]*">([^<]*)</td>', source))
    assert {name: text.endswith(" ?") for name, text in said.items()} == {
        "faster": False,
        "slower": False,
        "undecided": True,
    }


def test_without_a_record_there_is_what_is_needed_and_why_there_is_no_speedup():
    text = " ".join(Page(PAGES["without a record"]).text.split())
    assert text.count("No drafter was replayed on a record, so no speedup was forecast") == 3
    assert "to break even" in text and "for 1.5×" in text and "Published acceptance lengths" in text
    assert "best setting" not in text and "Next:" not in text


def test_given_acceptance_is_drawn_without_a_record():
    text = " ".join(Page(PAGES["given"]).text.split())
    assert "No drafter was replayed" not in text
    assert 'aria-label="decoding at concurrency 1: eagle3 is best at ' in PAGES["given"]


def test_what_is_absent_says_why():
    text = " ".join(Page(PAGES["bare"]).text.split())
    assert "The model has no experts, or its geometry is not known" in text
    assert "The plain step is not in this forecast" in text
    assert "No window was forecast for a trained drafter." in text
    assert "Published acceptance lengths" not in text
    assert "No published acceptance length of eagle3 is known" in text_of(forecast(published=()))


def test_one_window_one_concurrency_and_no_throughput_are_said():
    one = forecast(rows=(row("vllm-ngram", 5, 0.4, 0.34),), oracle=())
    assert "Only the window of 5 was forecast, so there is a point and no line." in text_of(one)
    free = forecast(rows=(row("free", 2, 0.1, 0.1, settings={"n": 3}),))
    assert "No drafter here has a fixed window" in text_of(free)
    assert "Only concurrency 1 was forecast, so there are points and no lines." in text_of(one_concurrency())
    bare = tuple(
        replace(one, cells=tuple(replace(c, throughput_speedup=None) for c in one.cells)) for one in rows()
    )
    source = forecast_page(forecast(rows=bare))
    assert "Throughput was not simulated" in source and '<td class="text">throughput</td>' not in source
    assert "Throughput was not simulated" not in PAGES["forecast"]


def test_a_measured_cost_is_said_to_be_whole():
    said = "The cost is measured as a whole, so it is not taken apart."
    whole = tuple(replace(one, parts={"step": one.total.estimate}) for one in (step_parts(0), step_parts(3)))
    assert said in text_of(forecast(steps=whole)) and said not in text_of(forecast())


def test_a_record_without_decode_steps_has_no_figures():
    none = Interval(float("nan"), float("nan"), float("nan"))
    cells = tuple(
        replace(c, speedup=none, throughput_speedup=none, by_category={"a": none}) for c in rows()[0].cells
    )
    source = forecast_page(forecast(rows=(replace(rows()[0], cells=cells),), oracle=()))
    assert "<td>nan" not in source and ">–</td>" in source
    assert source.count("No request of the record has a decode step, so there is no speedup to draw.") == 2


def test_the_recommended_setting_is_the_first_row_and_marked():
    unsure = replace(rows()[0], cells=tuple(replace(c, speedup=Interval(2, 0.9, 3)) for c in rows()[0].cells))
    source = forecast_page(forecast(rows=(unsure, rows()[1])))
    table = source[source.index('aria-label="Figures of each setting"') :]
    assert table.index('★ <bdi>vllm-ngram</bdi></th><td class="text"><bdi>k=5 n=2–4') < table.index("k=8")
    assert table.count("★") == 1


def test_windows_that_came_to_the_same_stand_in_one_row():
    same = tuple(replace(rows()[0], settings={"k": k, "min_n": 2, "max_n": 4}) for k in (16, 8, 12))
    text = text_of(forecast(rows=same))
    assert "k=8…16 n=2–4" in text and "3 settings tried: k 8, 12, 16; n 2–4; --ks and --n-ranges for" in text


def test_a_trained_drafter_has_its_sentence_in_its_section():
    text = text_of(forecast())
    section = text.index("What a trained drafter must reach")
    assert text.index("A trained drafter (eagle3) with k=") > section
    assert "A trained drafter (eagle3) with k=" not in text_of(without_record())[:200].replace(
        without_record().recommendation, ""
    )


def test_names_do_not_repeat_the_one_drafter():
    text = text_of(forecast())
    assert "The setting of vllm-ngram to take at concurrency 1" in text
    mixed = forecast(rows=(rows()[0], replace(rows()[1], drafter="other", cells=rows()[3].cells)))
    assert "The setting to take at concurrency 1" in text_of(replace(mixed, given=given()))


def test_many_settings_are_cut_and_all_are_in_the_data():
    many = tuple(row("vllm-ngram", 1, 0.4, 0.5, settings={"k": 1, "n": i + 1}) for i in range(600))
    source = forecast_page(forecast(rows=many))
    assert "The first 500 settings; 100 more are in the data" in source
    assert len(json.loads(Page(source).scripts[0])["rows"]) == 600


def test_hostile_strings_are_only_text():
    hostile = row(HOSTILE, 3, 0.4, 0.4, settings={"k": 3, HOSTILE: HOSTILE}, flags=HOSTILE, engine=HOSTILE)
    named = tuple(replace(c, by_category={HOSTILE: c.speedup, "b": c.speedup}) for c in hostile.cells)
    basis = replace(MEASURED, words=HOSTILE, drafting=HOSTILE, prefill=HOSTILE)
    parts = {HOSTILE: 1e-3, "b": 1e-3}
    source = forecast_page(
        forecast(
            origin=Origin(HOSTILE, "run", 0.0, engine=HOSTILE),
            basis=basis,
            rows=(replace(hostile, cells=named),),
            needed_for=HOSTILE,
            published=(Published(HOSTILE, HOSTILE, 3, 2.5, HOSTILE, HOSTILE), *PUBLISHED),
            steps=tuple(replace(step_parts(k), parts=parts) for k in (0, 3)),
            coverage=coverage(),
            recommendation=HOSTILE,
            next_commands=(HOSTILE,),
            skipped={HOSTILE: 1},
            warnings=(HOSTILE,),
        )
    )
    assert_harmless(source)


def test_a_page_is_written_whole(tmp_path: Path):
    write_forecast_html(forecast(), tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == PAGES["forecast"]
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(StorageError, match="cannot write to"):
        write_forecast_html(forecast(), tmp_path / "missing" / "a.html")
