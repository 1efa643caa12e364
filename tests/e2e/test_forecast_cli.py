"""`breakeven forecast` as typed: kinds of input, JSON, pages, and what is refused with what to type."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.acceptance.counters import SpecCounters
from breakeven.cost.calibration import FILE, Calibration, save_calibration
from breakeven.cost.curve import CurvePoint
from breakeven.servers.fake import FakeServer, vllm_script
from breakeven.trace.run import ServerInfo, load_run
from breakeven.workload.prompts import Sampling
from tests.e2e.command import Ends, breakeven, run_ahead, write_prompts
from tests.unit.cost.test_calibration import CALIBRATION
from tests.unit.cost.test_routing import GOLDEN as ROUTING
from tests.unit.forecast.served import a_run, served

STEPS_MS = {1: 10.0, 2: 10.5, 4: 11.5, 8: 14.0}
H100 = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm")
OWN = ("--model", "qwen3-0.6b", "--hardware", "h100-sxm")
"""Whose plain step is about that of the fake server."""
STABLE = {
    *("speedup", "throughput_speedup", "by_category", "by_concurrency", "best", "break_even"),
    *("recommendation", "source_of_cost"),
}
QWEN3 = ("--model", "qwen3-30b-a3b", "--hardware", "h100-sxm")
"""128 experts, of which each token uses 8; ROUTING is of 2 of 8."""
HOSTILE = ("<script>alert(1)</script>", "a\nb\x1b[31mred", "x" * 5000, "", "\u202eevil", "NaN", "{{7*7}}")
SMALL = ("--ks", "1,3", "--n-ranges", "1-3", "--concurrency", "1,4")


def points(steps_ms: Mapping[int, float]) -> tuple[CurvePoint, ...]:
    return tuple(
        CurvePoint(c, ms / 1e3, ms * 0.99e-3, ms * 1.01e-3, 20, 8, 0, 64.0) for c, ms in steps_ms.items()
    )


def calibrated(path: Path, **changes: Any) -> Path:
    """A calibration of the fake server of these tests, unless changed."""
    made = Calibration(
        **{
            **{name: getattr(CALIBRATION, name) for name in Calibration.__slots__},
            "points": points(STEPS_MS),
            "moe": False,
            "notes": (),
            **changes,
        }
    )
    save_calibration(made, path)
    return path


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def copies(n: int = 6) -> list[dict[str, Any]]:
    """Outputs that repeat their prompts, in which n-grams are found."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n):
        prompt = rng.integers(0, 50, 60).tolist()
        rows.append(
            {
                "category": "odd" if i % 2 else "even",
                "prompt_token_ids": prompt,
                "generated_token_ids": prompt[10:50],
            }
        )
    return rows


def run_of_ids(path: Path, n: int = 6, **changes: Any) -> Path:
    """A run of replies that repeat, with their ids, and times of 12 ms a token."""
    made = []
    for i, row in enumerate(copies(n)):
        ids = {name: tuple(row[name]) for name in ("prompt_token_ids", "generated_token_ids")}
        output = ids.pop("generated_token_ids")
        made.append(served(f"{i}#0", 60, 0.1, 0.012, len(output), at_s=2 * i, output_token_ids=output, **ids))
    a_run(path, made, **changes)
    return path


def finite(text: str) -> dict[str, Any]:
    """JSON as the standard has it, without NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    value = json.loads(text, parse_constant=refuse)
    assert isinstance(value, dict)
    return value


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, calibrations of its server and of others, and records of other kinds."""
    folder = tmp_path_factory.mktemp("forecast")
    prompts = write_prompts(folder / "prompts.jsonl")
    with FakeServer(vllm_script(tpot_s=0.002, n_tokens=40)).in_thread() as server:
        for name, words in (("run", ("--token-ids",)), ("no-ids", ())):
            asked = ("--url", server.url, "--prompts", prompts, *words, "--out", folder / name)
            breakeven("measure", *asked).succeeded()
    told = folder / "run" / "run.json"
    told.write_text(told.read_text().replace('"version": null', '"version": "0.32.0"'))
    meta = load_run(folder / "run").meta
    same = {"server": meta.server, "model": meta.model}
    (folder / "calibration").mkdir()
    calibrated(folder / "calibration" / FILE, **same)
    calibrated(folder / "falls.json", **{**same, "points": points({**STEPS_MS, 4: 9.0})})
    calibrated(folder / "few.json", **{**same, "points": points({1: 10.0, 2: 11.0})})
    calibrated(folder / "other-model.json", **{**same, "model": "another"})
    sglang = ServerInfo("sglang", meta.server.version)
    calibrated(folder / "other-engine.json", **{**same, "server": sglang})
    calibrated(folder / "other-version.json", **{**same, "server": replace(meta.server, version="0.1")})
    write_rows(folder / "copies.jsonl", copies())
    write_rows(folder / "one.jsonl", copies(1))
    one_token = [{**row, "generated_token_ids": row["generated_token_ids"][:1]} for row in copies()]
    write_rows(folder / "one-token.jsonl", one_token)
    named = zip(copies(2 * len(HOSTILE)), HOSTILE * 2, strict=True)
    write_rows(folder / "hostile.jsonl", [{**row, "category": name} for row, name in named])
    shutil.copy(ROUTING, folder / "routing.npz")
    drafted = SpecCounters(steps=90, drafts=30, drafted_tokens=90, accepted_tokens=40)
    own = {"server": ServerInfo("vllm", "0.32.0")}
    flags = {"server": replace(own["server"], flags={"speculative_config": "ngram"})}
    run_of_ids(folder / "speculated", counters=drafted, **flags)
    run_of_ids(folder / "sampled", sampling=Sampling(temperature=0.8))
    calibrated(folder / "own.json", **own, model="m")
    drawn = np.random.default_rng(0).integers(0, 100_000, (10, 100)).tolist()
    random = [{"prompt_token_ids": ids, "generated_token_ids": [1, 2, 3]} for ids in drawn]
    write_rows(folder / "random.jsonl", random)
    write_rows(folder / "no-ids.jsonl", [{"prompt": "a", "output": "b"}])
    (folder / "unknown.json").write_text(json.dumps({"architectures": ["MambaForCausalLM"]}))
    impossible = {"layers": 0, "hidden": 64, "vocab": 10, "attention": {}}
    (folder / "impossible.json").write_text(json.dumps(impossible))
    return folder


BAD: Mapping[str, tuple[tuple[object, ...], tuple[str, ...]]] = {
    "no cost": (("{}/run",), ("breakeven calibrate URL", "--calibration FILE", "--model X --hardware Y")),
    "no hardware": (("{}/run", "--model", "qwen3-8b"), ("type --hardware Y",)),
    "no model": (("{}/run", "--hardware", "b200"), ("type --model X",)),
    "two costs": (
        ("{}/run", "--calibration", "{}/calibration", "--step-ms", 3),
        ("--step-ms", "leave out one of the two"),
    ),
    "another model": (
        ("{}/run", "--calibration", "{}/other-model.json"),
        ("model is 'another' there", "type  breakeven calibrate URL"),
    ),
    "another engine": (
        ("{}/run", "--calibration", "{}/other-engine.json"),
        ("engine is 'sglang' there and 'vllm' here",),
    ),
    "another version": (("{}/run", "--calibration", "{}/other-version.json"), ("version is '0.1' there",)),
    "too few points": (
        ("{}/run", "--calibration", "{}/few.json"),
        ("2 measured points cannot show a curve", "breakeven calibrate URL --max-concurrency 4"),
    ),
    "no calibration": (("{}/run", "--calibration", "{}/copies.jsonl"), ("type  breakeven calibrate URL",)),
    "no calibration in the folder": (("{}/run", "--calibration", "{}/run"), ("breakeven calibrate URL",)),
    "unknown architecture": (
        ("--model", "{}/unknown.json", "--hardware", "h100-sxm"),
        ("MambaForCausalLM", "LlamaForCausalLM", "--geometry FILE"),
    ),
    "impossible geometry": (
        ("--geometry", "{}/impossible.json", "--hardware", "h100-sxm"),
        ("impossible geometry", "layers"),
    ),
    "geometry is a folder": (
        ("--geometry", "{}", "--hardware", "h100-sxm"),
        ("has no config.json: name the folder of a model",),
    ),
    "unknown hardware": (("--model", "qwen3-8b", "--hardware", "h100"), ("did you mean h100-sxm?",)),
    "unknown model": (("--model", "qwen3-8", "--hardware", "h100-sxm"), ("did you mean qwen3-8b?",)),
    "impossible tp": ((*H100, "--tp", 3), ("32 attention heads", "type --tp 2")),
    "impossible ep": ((*H100, "--tp", 4, "--ep", 3), ("ep must divide tp",)),
    "tp of zero": ((*H100, "--tp", 0), ("--tp",)),
    "acceptance above 1": ((*H100, "--per-position", "0.7,1.2"), ("1.2 at position 2", "0 to 1")),
    "acceptance that rises": ((*H100, "--per-position", "0.5,0.7"), ("rises to 0.7 at position 2", "give")),
    "acceptance that is none": ((*H100, "--per-position", "70%"), ("type --per-position 0.7,0.5",)),
    "length beyond the window": (
        (*H100, "--ks", 3, "--acceptance-length", 4.2),
        ("gives 1 to 4 tokens", "type  --ks"),
    ),
    "length below 1": ((*H100, "--ks", 3, "--acceptance-length", 0.5), ("--acceptance-length",)),
    "length of no window": ((*H100, "--acceptance-length", 2.5), ("type --ks 3 too",)),
    "acceptance twice": (
        (*H100, "--ks", 3, "--acceptance-length", 2, "--per-position", "0.5"),
        ("leave out one of the two",),
    ),
    "concurrency 0": ((*H100, "--concurrency", "0,4"), ("no number from 1", "type --concurrency")),
    "concurrency of a million": ((*H100, "--concurrency", "1000000"), ("type 1024 at most",)),
    "reuse above 1": ((*H100, "--reuse", 1.5), ("--reuse",)),
    "step of no time": ((*H100, "--step-ms", 0), ("--step-ms",)),
    "drafter without a record": ((*H100, "--drafter", "vllm-ngram"), ("name a RECORD too",)),
    "drafter of an engine by its method": (
        ("{}/run", *H100, "--drafter", "ngram"),
        ("did you mean vllm-ngram?",),
    ),
    "calibration as the record": (
        ("{}/calibration", *H100),
        ("is a calibration", "breakeven forecast RUN --calibration"),
    ),
    "concurrency in words": ((*H100, "--concurrency", "all"), ("type --concurrency 1,4,16",)),
    "unknown drafter": (("{}/run", *H100, "--drafter", "vllm-ngrm"), ("did you mean vllm-ngram?",)),
    "no record there": (("{}/none", *H100), ("there is no file or folder",)),
    "run without ids": (("{}/no-ids", *H100), ("has no token ids", "--token-ids", "--tokenizer FOLDER")),
    "file without ids": (("{}/no-ids.jsonl", *H100), ("--tokenizer",)),
    "random prompts": (("{}/random.jsonl", *H100), ("look like random tokens", "breakeven measure")),
    "page over the record": (
        ("{}/copies.jsonl", *H100, "--html", "{}/copies.jsonl"),
        ("--html", "it is", "itself"),
    ),
    "two reuses": (
        (*QWEN3, "--routing", "{}/routing.npz", "--reuse", 0.3),
        ("--reuse", "leave out one of the two"),
    ),
    "routing of another model": (
        (*QWEN3, "--routing", "{}/routing.npz"),
        ("experts is 8 there and 128 here", "breakeven models routing MODEL --out"),
    ),
    "no routing": ((*QWEN3, "--routing", "{}/copies.jsonl"), ("no trace of routing", "models routing")),
    "page over the routing": (
        (*QWEN3, "--routing", "{}/routing.npz", "--html", "{}/routing.npz"),
        ("--html", "itself", "type --html forecast.html"),
    ),
    "one token each": (("{}/one-token.jsonl", *H100), ("type --first-token replayed",)),
    "page over the calibration": (
        ("{}/run", "--calibration", "{}/few.json", "--html", "{}/few.json"),
        ("--html", "itself"),
    ),
}


@pytest.fixture(scope="module")
def ends(folder: Path) -> Iterator[Ends]:
    commands = {
        name: (("forecast", *(str(word).replace("{}", str(folder)) for word in words)), {})
        for name, (words, _) in BAD.items()
    }
    with run_ahead(commands) as found:
        yield found


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_with_2_and_one_line_that_says_what_to_type(name: str, ends: Ends) -> None:
    ends[name].result().refused(2, *BAD[name][1])


def test_a_run_and_a_calibration_give_the_whole_forecast(folder: Path) -> None:
    words = (folder / "run", "--calibration", folder / "calibration", *SMALL)
    done = breakeven("forecast", *words, "--json").succeeded()
    body = done.json()
    assert body.keys() >= STABLE
    assert body["source_of_cost"] == "measured" and body["concurrencies"] == [1, 4]
    assert {row["drafter"] for row in body["rows"]} == {"vllm-ngram", "vllm-suffix"}
    said = " ".join(body["warnings"])
    assert "vllm-suffix learned is as on a server that takes one request at a time" in said
    assert "chosen and scored on the same 3 requests" in said
    assert body["origin"]["engine"] == "vllm" and body["requests"] == 3
    assert "concurrency curve of the server itself" in body["basis"]["words"]
    assert "prompt of the record" in body["basis"]["prefill"] or "prompt token" in body["basis"]["prefill"]
    assert (folder / "run" / "forecast.html").read_text().startswith("<!DOCTYPE html>")
    assert "forecast" in done.err


def test_a_curve_that_falls_is_fitted_and_named(folder: Path) -> None:
    words = (folder / "run", "--calibration", folder / "falls.json", *SMALL, "--json")
    body = breakeven("forecast", *words).succeeded().json()
    assert any("not monotone" in warning and "larger error" in warning for warning in body["warnings"])


def test_the_run_ties_the_model_to_its_own_step(folder: Path) -> None:
    body = breakeven("forecast", folder / "run", *OWN, *SMALL, "--json").succeeded().json()
    assert body["source_of_cost"] in ("anchored", "modelled"), "a busy client tells no step"
    said = [body["basis"]["words"], *body["warnings"]]
    assert any("record's own" in text for text in said)


def test_a_run_of_another_machine_is_refused(folder: Path) -> None:
    done = breakeven("forecast", folder / "speculated", *H100, "--step-ms", 70, *SMALL)
    done.refused(2, "9.84 times what a model of llama-3.1-8b", "breakeven calibrate URL", "--hardware")


def test_what_to_type_next_has_the_records_own_server_and_prompts(folder: Path) -> None:
    words = (folder / "run", "--calibration", folder / "calibration", *SMALL, "--json")
    commands = breakeven("forecast", *words).succeeded().json()["next_commands"]
    url = load_run(folder / "run").meta.url
    assert not commands or f"--baseline-url {url}" in commands[-1]
    assert not commands or f"--prompts {folder / 'run' / 'prompts.jsonl'}" in commands[-1]


def test_a_file_without_an_engine_says_whose_drafters_are_tried(folder: Path) -> None:
    body = breakeven("forecast", folder / "copies.jsonl", *H100, *SMALL, "--json").succeeded().json()
    assert any("does not say which engine" in said and "--engine" in said for said in body["warnings"])


def test_a_file_says_not_what_served_it_but_the_user_may(folder: Path) -> None:
    words = (folder / "copies.jsonl", *H100, *SMALL, "--engine", "sglang", "--prefill-ms", 0.1, "--json")
    body = breakeven("forecast", *words).succeeded().json()
    assert {row["drafter"] for row in body["rows"]} == {"sglang-ngram"}
    assert body["origin"]["engine"] == "sglang" and body["source_of_cost"] == "modelled"
    assert set(body["by_category"]) == {"even", "odd"}
    assert body["basis"]["prefill"] == "100 µs per prompt token, as given."
    assert not (folder / "forecast.html").exists()


def test_drafting_as_given_makes_every_setting_slower(folder: Path) -> None:
    named = ("--drafter", "vllm-ngram", "--ks", 3, "--n-ranges", "2-2", "--concurrency", 1)
    common = (folder / "copies.jsonl", *H100, *named, "--json")
    free, dear = (
        breakeven("forecast", *common, "--draft-ms", ms, "--flat-ms", ms).succeeded().json() for ms in (0, 50)
    )
    assert free["speedup"]["estimate"] > 1 > dear["speedup"]["estimate"]
    assert "as given" in dear["basis"]["drafting"]


def test_without_a_record_what_a_head_must_reach(folder: Path) -> None:
    page = folder / "heads.html"
    words = (*H100, "--ks", "2,4", "--concurrency", "1,32", "--per-position", "0.7,0.5", "--html", page)
    body = breakeven("forecast", *words, "--json").succeeded().json()
    assert body["speedup"] is None and body["absent"]["speedup"]
    assert {(one["k"], one["concurrency"]) for one in body["needed"]} == {(2, 1), (2, 32), (4, 1), (4, 32)}
    assert [row["settings"]["k"] for row in body["given"]] == [1, 2]
    assert body["rows"] == [] and page.exists()
    told = breakeven("forecast", *words).succeeded().out
    assert "eagle3" in told and str(page) in told


def test_the_routing_of_real_replies_says_how_far_experts_are_reused(folder: Path) -> None:
    file = folder / "routing.npz"
    words = ("--calibration", folder / "own.json", "--routing", file, "--ks", "2", "--json")
    with_moe = calibrated(folder / "moe.json", server=ServerInfo("vllm", "0.32.0"), model="m", moe=True)
    body = finite(breakeven("forecast", *words[:1], with_moe, *words[2:]).succeeded().out)
    assert body["concurrencies"] == [1, 2, 4, 8], "as far as the curve goes"
    found = re.search(r"Experts are reused at ([\d.]+) \(([\d.]+) to ([\d.]+)\)", body["basis"]["words"])
    assert found is not None
    reuse, low, high = map(float, found.groups())
    assert low <= reuse <= high
    assert any(f"with {low:.0%} to {high:.0%} of experts reused" in said for said in body["warnings"])
    assert any("Routing is random, not learned" in said for said in body["warnings"])
    breakeven("forecast", *words).refused(2, "made with --dense", "leave out one of the two")


def test_a_run_that_speculated_gives_outputs_and_no_times(folder: Path) -> None:
    record = folder / "speculated"
    body = finite(breakeven("forecast", record, "--calibration", folder / "own.json", *SMALL, "--json").out)
    said = " ".join(body["warnings"])
    assert "its times are no baseline's" in said and "was not compared" not in said
    assert "calibration's last slope" in body["basis"]["prefill"]
    body = finite(breakeven("forecast", record, *H100, *SMALL, "--json").succeeded().out)
    assert body["source_of_cost"] == "modelled" and "modelled step" in body["basis"]["prefill"]
    assert any("--step-ms gives the step of a baseline" in warning for warning in body["warnings"])


def test_what_acceptance_of_sampled_outputs_means_is_said(folder: Path) -> None:
    body = finite(breakeven("forecast", folder / "sampled", *H100, *SMALL, "--json").succeeded().out)
    assert any(warning.startswith("Temperature 0.8: an exact count") for warning in body["warnings"])
    body = finite(breakeven("forecast", folder / "run", *OWN, *SMALL, "--json").succeeded().out)
    assert not any("emperature" in warning for warning in body["warnings"])


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ("one.jsonl", ()),
        ("one-token.jsonl", ("--first-token", "replayed")),
        ("hostile.jsonl", ()),
        ("copies.jsonl", ("--concurrency", "1,1024")),
    ],
)
def test_odd_records_give_finite_figures_and_a_page(
    record: str, words: tuple[str, ...], folder: Path
) -> None:
    page = folder / f"{record}.html"
    asked = (folder / record, *H100, *SMALL, *words, "--html", page, "--json")
    body = finite(breakeven("forecast", *asked).succeeded().out)
    assert body["speedup"]["low"] <= body["speedup"]["estimate"] <= body["speedup"]["high"]
    assert body["concurrencies"][0] == 1
    assert HOSTILE[0] not in page.read_text() and "\x1b" not in page.read_text()


def test_without_compiled_loops_it_gives_the_same_and_says_that_it_is_slow(folder: Path) -> None:
    asked = ("forecast", folder / "copies.jsonl", *H100, *SMALL, "--json")
    compiled = finite(breakeven(*asked).succeeded().out)
    plain = breakeven(*asked, env={"BREAKEVEN_COMPILED": "0"}).succeeded()
    assert finite(plain.out)["rows"] == compiled["rows"]
    assert "plain Python" in plain.err and "pip install 'breakeven[replay]'" in plain.err


def test_help_shows_the_commonest_uses() -> None:
    told = breakeven("forecast", "--help").succeeded().out
    assert told.count("\n  breakeven forecast ") == 3
    assert "60 settings" in " ".join(told.split()) and "--geometry" in told
