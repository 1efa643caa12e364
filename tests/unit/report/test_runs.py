from dataclasses import replace
from typing import Any

import orjson

from breakeven.acceptance.counters import SpecCounters
from breakeven.latency import RunSummary, summarize
from breakeven.report import runs
from breakeven.report.jsonout import measure_json
from breakeven.trace.records import Kind, RequestError, RequestTrace
from tests.unit.report.builders import HOSTILE, trace, traces
from tests.unit.report.test_jsonout import nulls

MEASURE = {"run_dir", "requests", "errors", "truncated_in_reasoning", "tokens", "ttft_ms", "ttft_content_ms"}
MEASURE |= {
    "tpot_ms",
    "e2e_ms",
    "decode_tokens_per_s",
    "output_tokens_per_s",
    "tokens_per_chunk",
    "speculation",
}
MEASURE |= {"self_check", "warnings"}


def self_check(ok: bool = True, reasons: tuple[str, ...] = ()) -> dict[str, Any]:
    lag = {"p50": 0.1, "p99": 0.4, "max": None}
    return {"ok": ok, "reasons": list(reasons), "event_loop_lag_ms": lag, "asked_rate_per_s": None}


def truncated(prompt_id: str = "p") -> RequestTrace:
    """All reasoning, cut at max_tokens."""
    one = trace(prompt_id, "reasoning", 0.02, reasoning_share=1.0, text="")
    return replace(one, reasoning="hm", events=tuple(e._replace(kind=Kind.REASONING) for e in one.events))


def failed() -> RequestTrace:
    error = RequestError("HttpError", HOSTILE, 500)
    return replace(trace("e", "c", 0.02), error=error, events=(), usage=None)


def of(*some: RequestTrace, wall_s: float | None = 10.0) -> RunSummary:
    return summarize(some, wall_s)


def test_measure_keys_and_values():
    summary = of(*traces(2)[0])
    body = measure_json("runs/x", summary, self_check())
    assert MEASURE - body.keys() == set()
    assert body["tpot_ms"]["p50"] == summary.tpot.p50 * 1e3
    assert {"mean", "p50", "p90", "p99", "n"} - body["tpot_ms"].keys() == set()
    assert body["tokens"]["output"] == 16 * 96
    assert body["self_check"]["ok"] is True
    assert orjson.loads(orjson.dumps(body)) == body


def test_every_null_of_a_run_has_a_reason_beside_it():
    some = (of(), of(failed()), of(truncated()), of(*traces(1)[0], wall_s=None))
    bodies = [measure_json("runs/x", summary, check) for summary in some for check in (None, self_check())]
    found = [one for body in bodies for one in nulls(body)]
    assert len(found) > 50
    assert [path for path, explained in found if not explained] == []


def test_a_run_that_is_void_says_why():
    body = measure_json("runs/x", of(*traces(1)[0]), self_check(False, ("the client fell behind",)))
    assert body["self_check"]["ok"] is False
    assert body["self_check"]["reasons"] == ["the client fell behind"]


def test_truncated_replies_say_what_to_type():
    said = list(runs.warnings(of(truncated())))
    assert said[0].startswith("1 of 1 request ended inside reasoning, at max_tokens, with no content")
    assert "raise --max-tokens" in said[0]


def test_the_max_tokens_that_would_do_is_named():
    ended = [replace(trace(f"p{n}", "c", 0.02, tokens=64), finish_reason="stop") for n in range(3)]
    assert ": --max-tokens 64 would let the median reply end by itself" in next(
        runs.warnings(of(truncated(), *ended))
    )


def test_absent_figures_have_their_reason():
    assert runs.latencies(of())["TPOT"] == ("–", "–", "–", "–", "0")
    assert "TPOT: no request was made" in runs.absences(of())
    assert "Decode speed: – (no request was made)" in list(runs.sentences(of()))
    assert any(reason.startswith("TTFT to content: ") for reason in runs.absences(of(truncated())))


def test_speculation_names_what_is_unknown():
    counted = SpecCounters(50, None, 60, 30, None, "llama.cpp timings")
    said = list(runs.sentences(of(replace(trace("p", "c", 0.02), speculation=counted))))
    assert said[-1] == (
        "Speculation: acceptance 50.0 %, draft share unknown (llama.cpp timings does not count drafts), "
        "tokens per step 1.60"
    )


def test_the_metrics_page_stands_in_for_replies_without_counts():
    counters = SpecCounters(100, 50, 100, 25, None, "vLLM /metrics")
    summary = of(trace("p", "c", 0.02))
    body = measure_json("runs/x", summary, self_check(), counters)
    assert (body["speculation"]["acceptance_rate"], body["speculation"]["draft_share"]) == (0.25, 0.5)
    assert list(runs.sentences(summary, counters))[-1] == (
        "Speculation, with all other traffic of the server: acceptance 25.0 %, draft share 50.0 %, "
        "tokens per step 1.25"
    )


def test_categories_sum_tokens_and_time():
    slow, fast = trace("a", "x", 0.04), trace("b", "y", 0.02)
    found = runs.by_category([slow, fast, replace(fast, repeat=1), failed()])
    assert list(found) == ["x", "y", "c"]
    assert (found["y"].requests, found["c"].requests) == (2, 1)
    assert found["c"].tpot_s is None and found["c"].tokens_per_s is None
    assert 24 < found["x"].tokens_per_s < 26 and 48 < found["y"].tokens_per_s < 52
