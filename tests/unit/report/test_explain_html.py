import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from breakeven.errors import StorageError
from breakeven.explain.records import Explained, Explanation, Finding, Observation, Part, Prediction
from breakeven.interval import Interval
from breakeven.report.explain_html import explain_page, write_explain_html
from breakeven.report.explain_json import explain_json
from breakeven.report.explain_plots import by_draft_share, taken_apart
from tests.unit.report.builders import HOSTILE
from tests.unit.report.test_html import Page, assert_harmless

PARTS = (
    Part("weights", 3e-3, Interval(0, 0, 0), "read once"),
    Part("experts", 1e-3, Interval(4e-3, 3e-3, 5e-3), "8 → 40 of 128"),
    Part("all_reduce", 6e-3, Interval(1e-3, 1e-3, 1e-3), "122 calls"),
)
FINDING = Finding(
    "graphs",
    "CUDA graphs are off",
    "the log says so",
    "medium",
    "grep graph LOG",
    "Look for PIECEWISE.",
    (1e-3, 2e-3),
)


def explained(**changes: Any) -> Explained:
    """A plain step of 10 ms, 5 ms to verify, 12 ms a token observed."""
    made = Explained(
        Observation("coding", 10e-3, 12e-3, (0.2, 0.4)),
        PARTS,
        Interval(5e-3, 4e-3, 6e-3),
        tuple(Prediction(f, Interval(1 + f, 1 + f / 2, 1 + 2 * f)) for f in (0.0, 0.5, 1.0)),
        10 / 12,
        (2e-3, 20e-3),
        "nothing was ever drafted",
        (1.0, 2.0),
    )
    return replace(made, **changes)


def explanation(**changes: Any) -> Explanation:
    made = Explanation(
        "big-moe",
        "8 × gpu",
        5,
        "ngram",
        "vllm 1.0",
        (explained(), explained(observation=Observation("math", 10e-3, 9e-3), observed_speedup=10 / 9)),
        (replace(FINDING, title="Experts", step_s=None),),
        (FINDING,),
        {"draft_share": "read it from /metrics"},
        ("the profile is of another step",),
    )
    return replace(made, **changes)


PAGES = {
    "whole": explain_page(explanation()),
    "bare": explain_page(
        explanation(
            explained=(explained(predictions=(), break_even_verify=None),),
            engine=None,
            ruled_out=(),
            findings=(),
            unknown={},
            warnings=(),
        )
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_tags_are_balanced_links_have_targets_and_nothing_is_loaded(name: str):
    parsed = Page(PAGES[name])
    ids = [attrs["id"] for _, attrs in parsed.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"].removeprefix("#") for attrs in parsed.all("a")} <= set(ids)
    for _, attrs in parsed.elements:
        assert "src" not in attrs and "style" not in attrs
    assert "url(" not in PAGES[name] and "@import" not in PAGES[name]
    assert len(parsed.all("h1")) == 1


def test_the_data_is_the_json():
    found = json.loads(Page(PAGES["whole"]).scripts[0])
    assert found == json.loads(json.dumps(explain_json(explanation())))


def test_bars_lead_from_the_plain_step_to_what_is_left_over():
    made = taken_apart(explained())
    labels = [
        "plain step",
        "drafted step",
        "per token at 50 %",
        "per token at 100 %",
        "measured",
        "unexplained",
    ]
    assert [bar.label for bar in made.bars] == labels
    plain, drafted, half, whole, measured, left = made.bars
    ms = 100 / (30 * 1.03)  # the longest is the leftover's most, 10 + 20 ms
    assert made.line == pytest.approx(10 * ms, abs=0.01)
    assert plain.pieces[-1].x + plain.pieces[-1].width == pytest.approx(10 * ms, abs=0.01)
    assert [piece.kind for piece in drafted.pieces] == ["part"] * 3 + ["added"] * 2
    assert drafted.whisker == pytest.approx([14 * ms, 15 * ms, 16 * ms], abs=0.01)
    assert half.whisker == pytest.approx([10 / 2 * ms, 10 / 1.5 * ms, 10 / 1.25 * ms], abs=0.01)
    assert whole.pieces[0].width == pytest.approx(10 / 2 * ms, abs=0.01)
    assert measured.pieces[0].width == pytest.approx(12 * ms, abs=0.01)
    assert (left.pieces[0].x, left.pieces[0].width) == pytest.approx((10 * ms, 2 * ms), abs=0.01)
    assert left.hatched == pytest.approx((12 * ms, 30 * ms), abs=0.01)
    assert left.value == "2.00 to 20.00 ms a step"


@pytest.mark.parametrize(
    ("span", "certain"), [((2e-3, 5e-3), 2), ((-3e-3, 5e-3), None), ((-5e-3, -2e-3), -2)]
)
def test_the_leftover_is_solid_as_far_as_it_is_certain(span: tuple[float, float], certain: int | None):
    made = taken_apart(explained(unexplained_s=span))
    left = made.bars[-1]
    ms = made.line / 10
    assert left.hatched == pytest.approx([made.line + 1e3 * end * ms for end in span], abs=0.02)
    if certain is None:
        assert left.pieces == ()
    else:
        (piece,) = left.pieces
        assert piece.width == pytest.approx(abs(certain) * ms, abs=0.02)
        assert piece.x == pytest.approx(made.line + min(certain, 0) * ms, abs=0.02)


def test_a_leftover_of_which_next_to_nothing_is_known_is_cut_but_told_whole():
    left = taken_apart(explained(unexplained_s=(2e-3, 0.5))).bars[-1]
    plain = taken_apart(explained()).bars[0]
    assert left.hatched is not None and left.hatched[1] == pytest.approx(100 / 1.03, abs=0.01)
    assert "2.00 to 500.00 ms" in left.text and plain.pieces[0].width > 5


def test_predictions_stand_beside_what_was_observed():
    made = by_draft_share(explained())
    assert made is not None
    assert [level.label for level in made.levels] == ["break-even", "observed 0.83×"]
    even, observed = (level.y for level in made.levels)
    assert [dot.y < even for dot in made.lines[0].dots] == [False, True, True]
    assert observed > even
    assert by_draft_share(explained(predictions=())) is None


def test_every_plot_tells_its_content_to_those_who_do_not_see_it():
    plots = [attrs for attrs in Page(PAGES["whole"]).all("svg") if attrs.get("role") == "img"]
    labels = [attrs["aria-label"] or "" for attrs in plots]
    assert len(labels) == 4
    assert labels[0].startswith(
        "plain step 10.00 ms; drafted step 15.00 (14.00 to 16.00) ms, verification adds"
    )
    assert "measured 12.00 ms a token; unexplained 2.00 to 20.00 ms a step" in labels[0]
    assert labels[1].startswith("observed 0.83×; predicted 2.00× [1.50, 3.00] at a draft share of 100.0 %")


def test_findings_stand_with_their_checks_and_what_is_unknown():
    text = " ".join(Page(PAGES["whole"]).text.split())
    for said in (
        "CUDA graphs are off",
        "the log says so",
        "grep graph LOG",
        "Look for PIECEWISE.",
        "1.00 to 2.00",
        "medium",
    ):
        assert said in text
    assert "What it is not" in text and "read it from /metrics" in text
    assert "the profile is of another step" in text and "at least when" not in text
    assert 'title="at least when nothing was ever drafted"' in PAGES["whole"]


def test_what_is_absent_says_why_or_is_left_out():
    text = " ".join(Page(PAGES["bare"]).text.split())
    assert "No draft share is possible here, so no speedup was predicted." in text
    assert "Nothing known to this model would cause it." in text
    for said in ("What it is not", "What is not known", "What qualifies this"):
        assert said not in text


def test_many_observations_are_in_the_table_and_the_first_are_drawn():
    many = tuple(explained(observation=Observation(f"p{i}", 10e-3, 12e-3)) for i in range(30))
    source = explain_page(explanation(explained=many))
    assert source.count('<svg width="100%"') < 30 * 3 and "<bdi>p29</bdi>" in source
    assert "The first 20; the other 10 are in the table above." in source


def test_hostile_strings_are_only_text():
    bad = replace(FINDING, id=HOSTILE, title=HOSTILE, evidence=HOSTILE, next_command=HOSTILE, check=HOSTILE)
    one = explained(
        observation=Observation(HOSTILE, 10e-3, 12e-3),
        parts=(Part(HOSTILE, 10e-3, Interval(5e-3, 4e-3, 6e-3), HOSTILE),),
        unexplained_at_least_when=HOSTILE,
    )
    source = explain_page(
        Explanation(
            HOSTILE, HOSTILE, 5, HOSTILE, HOSTILE, (one,), (bad,), (bad,), {HOSTILE: HOSTILE}, (HOSTILE,)
        )
    )
    assert_harmless(source)


def test_a_page_is_written_whole(tmp_path: Path):
    write_explain_html(explanation(), tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == PAGES["whole"]
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(StorageError, match="cannot write to"):
        write_explain_html(explanation(), tmp_path / "missing" / "a.html")
