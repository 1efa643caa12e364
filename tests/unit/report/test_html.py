import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from breakeven.errors import StorageError
from breakeven.report.definitions import DEFINITIONS
from breakeven.report.evidence import Evidence
from breakeven.report.html import trial_page, write_trial_html
from breakeven.report.jsonout import trial_json
from breakeven.report.provenance import fact_rows
from breakeven.report.standalone import embedded
from breakeven.trial.result import TrialResult
from breakeven.units import ABSENT, change, rate
from tests.unit.report.builders import HOSTILE, result, run_on_disk, traces
from tests.unit.report.test_jsonout import bare

VOID = {"meta", "br", "img", "link", "input", "hr"}
MODES = ("faster", "slower", "same", "undecided", "refused")


class Page(HTMLParser):
    """Elements, their attributes and text; every end tag must match the element it closes."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self.comments: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            self.scripts[-1] += data
        elif self.open[-1:] != ["style"]:
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]


def assert_harmless(source: str) -> None:
    """A page full of the hostile text shows it, and does nothing of what it says."""
    parsed = Page(source)
    assert not {tag for tag, _ in parsed.elements} & {"img", "b"}
    assert not [name for _, attrs in parsed.elements for name in attrs if name.startswith("on")]
    assert parsed.comments == [] and len(parsed.scripts) == 2
    assert "<img src=x onerror=alert(1)>" in parsed.text
    assert not set("\x00\x1b\x07\u202e\ud800") & set(source)


def page(trial: TrialResult | None = None, repeats: int = 8) -> str:
    sides = traces(repeats)
    provenance = ({"engine": {"port": 1, "name": "llama.cpp"}}, {"engine": {"port": 2, "name": "llama.cpp"}})
    evidence = [Evidence(tuple(side), facts) for side, facts in zip(sides, provenance, strict=True)]
    return trial_page(trial or result(sides=sides), *evidence)


def hostile_page() -> str:
    prompts = ((HOSTILE, HOSTILE, 1.2, 0.4), ("b", HOSTILE, 1.1, 0.0))
    sides = traces(2, prompts)
    sides = (
        [replace(one, text=HOSTILE + "a") for one in sides[0]],
        [replace(one, text=HOSTILE + "b" + HOSTILE) for one in sides[1]],
    )
    trial = result(Path(HOSTILE), sides)
    trial = replace(
        trial,
        model=HOSTILE,
        workload=HOSTILE,
        confounders=(HOSTILE,),
        stop_reason=HOSTILE,
        verdict=replace(trial.verdict, reason=HOSTILE, next_command=HOSTILE),
        candidate=replace(trial.candidate, description=HOSTILE, url=HOSTILE),
    )
    return trial_page(
        trial,
        Evidence(tuple(sides[0]), {HOSTILE: {HOSTILE: [HOSTILE]}}),
        Evidence(tuple(sides[1]), missing=HOSTILE),
    )


@pytest.mark.parametrize("outcome", MODES)
def test_tags_are_balanced_and_the_verdict_is_the_headline(outcome: str):
    source = page(result(outcome=outcome))
    parsed = Page(source)
    words = {"same": "Same", "refused": "No verdict"}.get(outcome, outcome.capitalize())
    assert [attrs["class"] for attrs in parsed.all("h1")] == [outcome]
    assert f"{words}: decode speed +" in parsed.text


def test_it_loads_nothing():
    parsed = Page(page())
    assert not {tag for tag, _ in parsed.elements} & {
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
    }
    for tag, attrs in parsed.elements:
        assert "src" not in attrs and "style" not in attrs
        assert attrs.get("href", "#").startswith("#"), tag
    assert "url(" not in page() and "@import" not in page()


def test_the_policy_lets_only_these_inline_parts_run():
    source = page()
    policy = next(
        a["content"] for a in Page(source).all("meta") if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    style = re.search(r"<style>(.*?)</style>", source, re.DOTALL).group(1)
    script = re.search(r"<script>(.*?)</script>", source, re.DOTALL).group(1)
    for kind, content in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_the_numbers_are_those_of_the_json():
    trial = result(sides=traces())
    rows = re.findall(r"<tr><th scope=\"row\" title.*?</tr>", page(trial), re.DOTALL)
    prompts = trial_json(trial)["prompts"]
    assert len(rows) == len(prompts)
    for row, prompt in zip(rows, prompts, strict=True):
        text = html.unescape(re.sub("<.*?>", " ", row))
        assert prompt["id"] in text
        assert rate(1e3 / prompt["baseline_tpot_ms"]) in text
        assert rate(1e3 / prompt["candidate_tpot_ms"]) in text
        assert change(prompt["speedup"]) in text


def test_the_data_is_the_json():
    trial = result(sides=traces())
    parsed = Page(page(trial))
    assert json.loads(parsed.scripts[0]) == json.loads(json.dumps(trial_json(trial)))


def test_every_link_has_its_target_and_every_term_is_defined():
    parsed = Page(page())
    ids = [attrs["id"] for _, attrs in parsed.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"].removeprefix("#") for attrs in parsed.all("a")} <= set(ids)
    assert {f"def-{definition.key}" for definition in DEFINITIONS} <= set(ids)
    for definition in DEFINITIONS:
        assert definition.text in parsed.text


def test_headings_of_figures_lead_to_definitions():
    linked = {attrs["href"] for attrs in Page(page()).all("a")}
    assert {
        "#def-tpot",
        "#def-speedup",
        "#def-acceptance_rate",
        "#def-draft_share",
        "#def-lossless",
    } <= linked


def test_plots_tell_their_content_to_those_who_do_not_see_them():
    outer = [attrs for attrs in Page(page()).all("svg") if attrs.get("role") == "img"]
    assert len(outer) == 4 + 8
    assert all(attrs["aria-label"] for attrs in outer)


def test_absent_values_have_their_reason():
    parsed = Page(page(bare()))
    for words in (
        "the temperature is 0.7",
        "No prompt has a pair of replies",
        "the baseline was running already, the candidate was running already",
        "no counts to use",
    ):
        assert words in parsed.text
    assert "llama.cpp timings does not count drafts" in Page(page()).text


def test_hostile_strings_are_only_text():
    source = hostile_page()
    parsed = Page(source)
    assert not {tag for tag, _ in parsed.elements} & {"img", "b"}
    assert not [name for _, attrs in parsed.elements for name in attrs if name.startswith("on")]
    assert parsed.comments == []
    assert len(parsed.scripts) == 2
    assert "<img src=x onerror=alert(1)>" in parsed.text
    assert not set("\x00\x1b\x07\u202e\ud800") & set(source)
    assert "{{7*7}}" in parsed.text
    source.encode()


def test_a_script_cannot_be_ended_from_within_the_data():
    assert "<" not in embedded({"x": "</script><!--<script>"})
    assert json.loads(embedded({"x": "</script>&\u2028"})) == {"x": "</script>&\u2028"}


def test_differing_facts_are_marked():
    source = page()
    assert re.search(r'class="differs"><th scope="row">≠ engine port</th><td>1</td><td>2</td>', source)
    assert re.search(r'<th scope="row">engine name</th><td colspan="2">llama.cpp</td>', source)


def test_size():
    assert len(page(repeats=8).encode()) < 200_000
    long = [replace(one, events=tuple(one.events * 30)) for one in traces(1)[0]]
    many = traces(3, tuple((f"p{n}", "c", 1.1, 0.0) for n in range(300)))
    assert (
        len(trial_page(result(sides=(long, long)), Evidence(tuple(long)), Evidence(tuple(long))).encode())
        < 500_000
    )
    source = trial_page(result(sides=many), Evidence(tuple(many[0])), Evidence(tuple(many[1])))
    assert "100 more are in the data" in source
    assert len(source.encode()) < 1_500_000


def test_a_run_that_cannot_be_read_leaves_the_figures(tmp_path: Path):
    path = tmp_path / "report.html"
    write_trial_html(result(tmp_path / "nowhere"), path)
    parsed = Page(path.read_text(encoding="utf-8"))
    assert "The baseline run is not shown:" in parsed.text
    assert "Speedup of each prompt" in parsed.text
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_the_page_of_runs_on_disk(tmp_path: Path):
    sides = traces(2)
    for name, side, port in zip(("baseline", "candidate"), sides, ("1", "2"), strict=True):
        run_on_disk(tmp_path / name, side, {"ok": True, "reasons": []}, port=port)
    path = tmp_path / "report.html"
    write_trial_html(result(tmp_path, sides), path)
    parsed = Page(path.read_text(encoding="utf-8"))
    assert "coding, repeat" in parsed.text
    assert "≠ server flags port12" in parsed.text
    assert "workload sha256" in parsed.text
    assert "self_check okyes" in parsed.text


def test_why_repeats_are_left_out_is_no_fact_of_each_of_them():
    side = {
        "left_out": {"0": ["fell behind by 9"], "2": ["by 8"]},
        "self_check": {"ok": False, "reasons": ["so"]},
    }
    rows = [(row.name, row.baseline, row.candidate) for row in fact_rows(side, {"left_out": {}})]
    assert rows == [("repeats left out", "1, 3", ABSENT), ("self_check ok", "no", ABSENT)]


def test_a_folder_that_is_not_there_is_a_storage_error(tmp_path: Path):
    with pytest.raises(StorageError, match="cannot write to"):
        write_trial_html(result(tmp_path), tmp_path / "missing" / "report.html")
