"""`breakeven replay` and `breakeven drafters` as typed: kinds of input, JSON, exit codes, bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from breakeven.servers.fake import FakeServer, vllm_script
from tests.e2e.command import Ends, breakeven, run_ahead, write_prompts

NGRAM = ("--drafter", "vllm-ngram", "--k", 3, "--min-n", 2, "--max-n", 2)
RECORDS: Sequence[Mapping[str, Any]] = (
    {
        "id": "copy",
        "category": "copy",
        "prompt_token_ids": [1, 2, 3, 4],
        "generated_token_ids": [1, 2, 3, 4, 9, 9],
    },
    {"id": "other", "category": "new", "prompt_token_ids": [1, 2], "generated_token_ids": [5, 6, 7]},
)
"""Of `copy`, with k 3 and n 2: a step without a draft, one with 3 4 1 of which 3 4 are right, one without."""


def write_jsonl(path: Path, records: Sequence[Mapping[str, Any]] = RECORDS) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same two records as JSON lines, as parquet, and as text with a tokenizer."""
    folder = tmp_path_factory.mktemp("inputs")
    write_jsonl(folder / "ids.jsonl")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(RECORDS)), folder / "ids.parquet")
    tokenizer = Tokenizer(WordLevel({f"w{i}": i for i in range(10)}, unk_token="w0"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    text = [
        {
            "id": record["id"],
            "category": record["category"],
            "prompt": " ".join(f"w{i}" for i in record["prompt_token_ids"]),
            "output": " ".join(f"w{i}" for i in record["generated_token_ids"]),
        }
        for record in RECORDS
    ]
    write_jsonl(folder / "text.jsonl", text)
    return folder


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    prompts = write_prompts(folder / "prompts.jsonl")
    with FakeServer(vllm_script(n_tokens=40)).in_thread() as server:
        words = ("--url", server.url, "--prompts", prompts, "--token-ids", "--out", folder / "run")
        breakeven("measure", *words).succeeded()
    return folder / "run"


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("ids.jsonl", "jsonl", ()),
        ("ids.parquet", "parquet", ()),
        ("text.jsonl", "text", ("--tokenizer", "{inputs}/tokenizer.json")),
    ],
)
def test_every_kind_of_file_gives_the_same_counts(
    name: str, kind: str, words: Sequence[str], inputs: Path
) -> None:
    given = [word.format(inputs=inputs) for word in words]
    done = breakeven("replay", inputs / name, *NGRAM, *given, "--json").succeeded()
    body = done.json()
    assert (body["steps"], body["drafts"], body["drafted_tokens"], body["accepted_tokens"]) == (5, 1, 3, 2)
    assert (body["requests"], body["output_tokens"], body["emitted_tokens"]) == (2, 9, 7)
    assert body["accepted_per_position"] == [1, 1]
    assert body["tokens_per_step"] == 7 / 5
    assert body["by_category"]["copy"]["tokens_per_step"] == 5 / 3
    assert body["settings"] == {"k": 3, "min_n": 2, "max_n": 2}
    assert [one["id"] for one in body["per_request"]] == ["copy", "other"]
    assert body["origin"]["kind"] == kind
    assert body["origin"]["ids"] == ("tokenizer" if words else "recorded")


def test_per_position_gives_what_is_accepted_from_each_output_token_on(inputs: Path) -> None:
    done = breakeven("replay", inputs / "ids.jsonl", *NGRAM, "--per-position", "--json").succeeded()
    lengths = {one["id"]: one["accepted_lengths"] for one in done.json()["per_request"]}
    assert lengths == {"copy": [0, 0, 2, 1, 0, 0], "other": [0, 0, 0]}


def test_without_a_prefill_the_first_token_comes_from_a_step_too(inputs: Path) -> None:
    words = ("--first-token", "replayed", "--json")
    body = breakeven("replay", inputs / "ids.jsonl", *NGRAM, *words).succeeded().json()
    assert (body["first_token"], body["steps"], body["emitted_tokens"]) == ("replayed", 7, 9)


def test_the_words_and_the_page(inputs: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = breakeven("replay", inputs / "ids.jsonl", *NGRAM, "--html", page).succeeded()
    assert "1.400 tokens per step: 20.0 % of the steps drafted" in done.out
    assert "Acceptance is not speedup" in done.out and f"Report: {page}" in done.out
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert "replay" in done.err and "Traceback" not in done.err


def test_a_run_folder_is_replayed_and_its_sweep_leaves_a_page_in_it(run_folder: Path) -> None:
    body = breakeven("replay", run_folder, *NGRAM, "--json").succeeded().json()
    assert body["origin"]["kind"] == "run" and body["origin"]["temperature"] == 0.0
    assert body["requests"] + sum(body["skipped"].values()) == 3
    assert (
        "exact for the recorded tokens, as a lossless drafter cannot change a greedy output"
        in body["meaning"]
    )
    assert not (run_folder / "sweep.html").exists()
    words = ("--sweep", "--drafters", "vllm-ngram", "--ks", "1-3", "--n-ranges", "2-2,2-4")
    done = breakeven("replay", run_folder, *words).succeeded()
    assert f"Report: {run_folder / 'sweep.html'}" in done.out
    assert "Tokens per step by setting" in (run_folder / "sweep.html").read_text()


def test_a_sweep_ranks_all_its_settings(inputs: Path, tmp_path: Path) -> None:
    words = ("--sweep", "--drafters", "vllm-ngram,oracle", "--ks", "1-3", "--n-ranges", "2-2,2-4", "--json")
    body = breakeven("replay", inputs / "ids.jsonl", *words, cwd=tmp_path).succeeded().json()
    rows = body["rows"]
    assert len(rows) == 3 * 2 + 3
    assert [row["tokens_per_step"] for row in rows] == sorted(
        (row["tokens_per_step"] for row in rows), reverse=True
    )
    assert rows[0]["drafter"] == "oracle" and rows[0]["pareto"] and rows[0]["flags"] is None
    same = next(r for r in rows if r["settings"] == {"k": 3, "min_n": 2, "max_n": 2})
    assert (same["steps"], same["drafts"], same["accepted_tokens"]) == (5, 1, 2)
    assert list(tmp_path.iterdir()) == []


def test_one_row_of_a_sweep_is_the_replay_of_its_setting(inputs: Path) -> None:
    words = ("--sweep", "--drafters", "vllm-ngram", "--ks", "3", "--n-ranges", "2", "--json")
    (row,) = breakeven("replay", inputs / "ids.jsonl", *words).succeeded().json()["rows"]
    one = breakeven("replay", inputs / "ids.jsonl", *NGRAM, "--json").succeeded().json()
    same = ("drafter", "settings", "flags", "steps", "drafted_tokens", "accepted_tokens", "tokens_per_step")
    assert {key: row[key] for key in same} == {key: one[key] for key in same}


MINE = """
from dataclasses import dataclass
from breakeven.drafters.base import Drafter
from breakeven.drafters.settings import Settings, setting

@dataclass(frozen=True, slots=True)
class Config(Settings):
    token: int = setting(9, "always drafted", 0)

class Always(Drafter[Config]):
    name, summary, Config = "always", "one token, always", Config

    def propose(self, context, room):
        return (self.settings.token,)
"""


def test_a_drafter_of_ones_own(inputs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    words = ("--drafter", "mine:Always", "--json")
    body = breakeven("replay", inputs / "ids.jsonl", *words, cwd=tmp_path).succeeded().json()
    assert body["drafts"] == body["steps"] == 6 and body["accepted_tokens"] == 1
    assert body["flags"] is None and body["absent"]["flags"]
    shown = breakeven("drafters", "mine:Always", cwd=tmp_path).succeeded()
    assert "token=9 (0 " in shown.out and "): always drafted" in shown.out


def test_what_a_drafter_of_ones_own_prints_is_no_result(inputs: Path, tmp_path: Path) -> None:
    talking = MINE.replace("class Always(", "print('imported')\nclass Always(")
    talking = talking.replace("    def propose", "    learns = True\n\n    def propose")
    (tmp_path / "mine.py").write_text(talking.replace("return (", "print('asked'); return ("))
    for words in (("--drafter", "mine:Always"), ("--sweep", "--drafters", "mine:Always", "--jobs", 1)):
        done = breakeven("replay", inputs / "ids.jsonl", *words, "--json", cwd=tmp_path).succeeded()
        assert done.json()["origin"]["kind"] == "jsonl"
        assert "imported" in done.err and "asked" in done.err


def test_options_of_a_sweep_that_do_nothing_for_a_drafter_are_named(inputs: Path) -> None:
    words = ("--sweep", "--drafters", "vllm-ngram,oracle", "--ks", "3", "--json")
    said = breakeven("replay", inputs / "ids.jsonl", *words, "--n-ranges", "2").succeeded().json()
    assert "--n-ranges does not apply to oracle" in said["warnings"]
    silent = breakeven("replay", inputs / "ids.jsonl", *words).succeeded().json()
    assert not any("does not apply" in warning for warning in silent["warnings"])


def test_what_makes_it_slow_is_said_before_the_work(tmp_path: Path) -> None:
    record = write_jsonl(tmp_path / "broken.jsonl", [RECORDS[0]])
    record.write_text(record.read_text() + "{broken}\n" + record.read_text())
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    words = ("replay", record, *NGRAM)
    assert "plain Python" in breakeven(*words, env={"BREAKEVEN_COMPILED": "0"}).err
    assert "compiling the loops once, some seconds" in breakeven(*words, env=cache).err
    (tmp_path / "ids.jsonl").write_text(json.dumps(RECORDS[0]))
    whole = ("replay", tmp_path / "ids.jsonl", *NGRAM)
    breakeven(*whole, env=cache).succeeded()
    assert "compiling" not in breakeven(*whole, env=cache).succeeded().err


BAD: list[tuple[Sequence[object], list[str]]] = [
    (("ids.jsonl",), ["--drafter vllm-ngram", "breakeven drafters", "--sweep"]),
    (("ids.jsonl", "--drafter", "vllm-ngrams"), ["there is no drafter 'vllm-ngrams'", "vllm-ngram"]),
    (("ids.jsonl", "--drafter", "nowhere:Class"), ["cannot load the drafter nowhere:Class"]),
    (("ids.jsonl", "--drafter", "json:JSONDecoder"), ["is no Drafter"]),
    (("ids.jsonl", "--drafter", "vllm-ngram", "--k", -3), ["k is", "not -3", "type "]),
    (("ids.jsonl", "--drafter", "vllm-ngram", "--min-n", 5, "--max-n", 2), ["min_n", "max_n"]),
    (("ids.jsonl", "--drafter", "vllm-ngram", "--set", "depth=3"), ["has no setting depth", "min_n"]),
    (("ids.jsonl", "--drafter", "vllm-ngram", "--set", "k=few"), ["--set k=few", "whole number"]),
    (("ids.jsonl", "--drafter", "vllm-ngram", "--ks", "1-3"), ["--ks belongs to a sweep", "type --sweep"]),
    (("ids.jsonl", "--drafter", "llamacpp-ngram-mod", "--per-position"), ["leave out --per-position"]),
    (("ids.jsonl", "--sweep", "--per-position"), ["leave out --per-position"]),
    (("ids.jsonl", "--sweep", "--k", 0), ["leave out --k"]),
    (("ids.jsonl", "--sweep", "--ks", "4-2"), ["type --ks 2-4"]),
    (("ids.jsonl", "--sweep", "--drafters", "vllm-ngram,nope"), ["there is no drafter 'nope'"]),
    (("ids.jsonl", "--sweep", "--jobs", 0), ["--jobs"]),
    (("nowhere.jsonl", *NGRAM), ["there is no file or folder nowhere.jsonl"]),
    ((".", *NGRAM), ["run folder"]),
    (("text.jsonl", *NGRAM), ["--tokenizer"]),
    (("empty.jsonl", *NGRAM), ["empty.jsonl"]),
    (("broken.jsonl", *NGRAM), ["broken.jsonl, line 1: not JSON"]),
]


@pytest.fixture(scope="module")
def bad_ended(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ends]:
    folder = tmp_path_factory.mktemp("bad")
    for name in ("ids.jsonl", "text.jsonl"):
        (folder / name).write_bytes((inputs / name).read_bytes())
    (folder / "empty.jsonl").write_text("")
    (folder / "broken.jsonl").write_bytes(b'{"id": "x", \n' + (inputs / "ids.jsonl").read_bytes())
    commands = {str(i): (("replay", *words, "--json"), {"cwd": folder}) for i, (words, _) in enumerate(BAD)}
    with run_ahead(commands) as ends:
        yield ends


@pytest.mark.parametrize("number", range(len(BAD)), ids=lambda i: " ".join(map(str, BAD[i][0])))
def test_what_cannot_be_replayed_says_what_to_type(number: int, bad_ended: Ends) -> None:
    done = bad_ended[str(number)].result()
    message = done.refused(2, *BAD[number][1])
    assert done.json() == {"error": message.removeprefix("breakeven: "), "exit_code": 2}


def test_a_record_that_was_cut_off_is_replayed_without_its_last_line(inputs: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes((inputs / "ids.jsonl").read_bytes()[:-20])
    body = breakeven("replay", cut, *NGRAM, "--json").succeeded().json()
    assert body["requests"] == 1
    assert any("line 2" in warning for warning in body["warnings"])


def test_a_page_that_cannot_be_written_is_an_error_if_it_was_asked_for(inputs: Path, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    message = breakeven("replay", inputs / "ids.jsonl", *NGRAM, "--html", "/dev/full").refused(3, "--html")
    assert "cannot write the page /dev/full" in message and "--resume" not in message
    breakeven("replay", inputs / "ids.jsonl", *NGRAM, "--html", "/dev/null").succeeded()


def test_where_no_page_can_be_is_known_before_the_record_is_read(tmp_path: Path) -> None:
    record = tmp_path / "broken.jsonl"
    record.write_text("no record")
    for target in (tmp_path, tmp_path / "missing" / "page.html", record):
        message = breakeven("replay", record, *NGRAM, "--html", target).refused(2, f"--html {target}: ")
        assert message.endswith("type --html replay.html")
    assert record.read_text() == "no record"


def test_a_folder_that_takes_no_page_costs_no_result(run_folder: Path) -> None:
    words = ("--sweep", "--drafters", "vllm-ngram", "--ks", "2", "--n-ranges", "2", "--json")
    page = run_folder / "sweep.html"
    page.unlink(missing_ok=True)
    run_folder.chmod(0o500)
    try:
        done = breakeven("replay", run_folder, *words, obeys_modes=True).succeeded()
    finally:
        run_folder.chmod(0o700)
    assert len(done.json()["rows"]) == 1
    assert "no report" in done.err and not page.exists()


def test_without_compiled_loops_the_counts_are_the_same_and_it_says_so(inputs: Path) -> None:
    words = ("replay", inputs / "ids.jsonl", *NGRAM, "--json")
    slow = breakeven(*words, env={"BREAKEVEN_COMPILED": "0"}).succeeded().json()
    fast = breakeven(*words).succeeded().json()
    assert any("plain Python" in warning for warning in slow["warnings"])
    for key in ("elapsed_s", "tokens_per_second", "warnings"):
        del slow[key], fast[key]
    assert slow == fast


STUDY = Path(__file__).parents[3] / "shared" / "data"
"""Of a published study with vLLM's ngram, k 20, n 3–7; its acc_len counts the token after a draft too."""


@pytest.mark.parametrize(
    ("name", "positions", "unlike"), [("gsm8k", 49_848, []), ("sharegpt", 225_541, [("98", 405)])]
)
def test_a_published_study_is_met_at_every_position(
    name: str, positions: int, unlike: list[tuple[str, int]]
) -> None:
    path = STUDY / f"specdecode_bench_{name}.jsonl"
    if not path.exists():
        pytest.skip(f"{path.name} is not in a folder shared/data beside the repository")
    words = ("--drafter", "vllm-ngram", "--min-n", 3, "--max-n", 7, "--k", 20, "--per-position", "--json")
    ours = breakeven("replay", path, *words).succeeded().json()["per_request"]
    recorded = [json.loads(line) for line in path.read_text().splitlines()]
    found = []
    for one, record in zip(ours, recorded, strict=True):
        ends = range(len(one["accepted_lengths"]), 0, -1)  # recorded lengths run past the end of the record
        clipped = [min(n - 1, end) for n, end in zip(record["acc_ngram"]["acc_len"], ends, strict=True)]
        pairs = enumerate(zip(one["accepted_lengths"], clipped, strict=True))
        found += [(one["id"], at) for at, (mine, theirs) in pairs if mine != theirs]
    assert sum(len(one["accepted_lengths"]) for one in ours) == positions
    assert found == unlike


def test_a_ray_cluster_counts_the_same(inputs: Path) -> None:
    pytest.importorskip("ray")
    words = ("replay", inputs / "ids.jsonl", *NGRAM, "--json")
    there, here = (breakeven(*words, *where).succeeded().json() for where in (("--ray", "local"), ()))
    for key in ("elapsed_s", "tokens_per_second"):
        del there[key], here[key]
    assert there == here


def test_a_draft_as_long_as_a_long_request_fails_nothing(tmp_path: Path) -> None:
    ids = [i * i % 97 for i in range(200_000)]  # the same 97 tokens again and again
    record = write_jsonl(tmp_path / "long.jsonl", [{"prompt_token_ids": ids[:97], "token_ids": ids[97:]}])
    words = ("--drafter", "vllm-ngram", "--k", 200_000, "--html", tmp_path / "long.html")
    done = breakeven("replay", record, *words).succeeded()
    assert (
        "1 request, 199,903 output tokens" in done.out and "further places in --html and --json" in done.out
    )
    body = breakeven("replay", record, *words, "--json").succeeded().json()
    assert body["emitted_tokens"] == 199_902
    assert body["steps"] == sum(cell["steps"] for cell in body["histogram"]) < 20


HOSTILE = "<img src=x onerror=alert(1)>\x1b[31mred\x1b]0;title\x07\x00\u202e[bold]x"


def test_hostile_ids_and_categories_are_only_text(tmp_path: Path) -> None:
    records = [
        {**record, "id": HOSTILE + record["id"], "category": HOSTILE + record["id"]} for record in RECORDS
    ]
    record, page = write_jsonl(tmp_path / "ids.jsonl", records), tmp_path / "page.html"
    for words in (NGRAM, ("--sweep", "--drafters", "vllm-ngram,oracle", "--ks", 3, "--n-ranges", 2)):
        done = breakeven("replay", record, *words, "--html", page).succeeded()
        assert not set("\x00\x07\x1b\u202e") & {*done.out, *page.read_text()}
        assert "<img" not in page.read_text().split("</main>")[0]


def test_drafters_are_listed_and_shown() -> None:
    listed = breakeven("drafters", "--json").succeeded().json()["drafters"]
    assert [one["name"] for one in listed][:2] == ["vllm-ngram", "vllm-suffix"]
    assert all(one["summary"] and one["engine"] for one in listed)
    one = breakeven("drafters", "vllm-ngram", "--json").succeeded().json()
    assert one == listed[0]
    assert [each["name"] for each in one["settings"]] == ["k", "min_n", "max_n"]
    assert one["settings"][0]["low"] == 1 and "ngram" in one["flags"]
    text = breakeven("drafters").succeeded().out
    assert all(one["name"] in text for one in listed)
    breakeven("drafters", "vllm").refused(2, "there is no drafter 'vllm'")


def test_help_loads_no_compiler() -> None:
    script = (
        "import sys; from breakeven.cli import main; sys.argv = ['breakeven', 'replay', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
