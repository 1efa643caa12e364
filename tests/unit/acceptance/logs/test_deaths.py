"""What a log tells of a server that died while it served."""

from __future__ import annotations

import pytest

from breakeven.acceptance.logs.deaths import ABOVE, BELOW
from breakeven.acceptance.logs.reader import read_log
from breakeven.acceptance.logs.summary import LogSummary
from breakeven.acceptance.logs.text import BLOCK
from tests.unit.acceptance.logs.writer import sglang_line, vllm_line, vllm_state_line

BANNER = "(APIServer pid=1) INFO 11-29 11:16:02 [api_utils.py:347]   █▄█▀ █   █  version 0.32.0"
SERVING = "(APIServer pid=1) INFO 11-29 11:16:40 [launcher.py:46] Application startup complete."
POST = 'INFO:     127.0.0.1:46844 - "POST /v1/completions HTTP/1.1" 200 OK'
CORE = "(EngineCore pid=9) ERROR 11-29 11:18:30 [core.py:1138] "
FATAL = f"{CORE}EngineCore encountered a fatal error."
TRACEBACK = (
    f"{CORE}Traceback (most recent call last):",
    f'{CORE}  File "vllm/v1/engine/core.py", line 1129, in run_engine_core',
    f"{CORE}RuntimeError: CUDA error: an illegal memory access was encountered",
)
DEAD = (
    "(APIServer pid=1) ERROR 11-29 11:18:30 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: "
    "EngineCore encountered an issue. See stack trace (above) for the root cause."
)
TERMINATED = (
    "(EngineCore pid=9) INFO 11-29 11:18:29 [core.py:1454] [shutdown] trigger received signal=SIGTERM"
)
STATE = vllm_state_line(0, 1, "11-29 11:18:25")
KILLED = "vllm.service: Main process exited, code=killed, status=9/KILL"


def read(*lines: str) -> LogSummary:
    return read_log(["\n".join(lines).encode()])


def test_a_death_with_its_time_and_the_lines_around_it() -> None:
    death = read(BANNER, SERVING, POST, STATE, FATAL, *TRACEBACK, DEAD, DEAD).death
    assert death is not None
    assert (death.times, death.line, death.at, death.goes_on) == (1, FATAL, "11-29 11:18:30", False)
    assert death.seen == "11-29 11:18:25"
    assert death.lines[-6:] == (FATAL, *TRACEBACK, DEAD, DEAD) and STATE in death.lines


def test_it_is_counted_among_the_events_once_for_each_life() -> None:
    once = (BANNER, SERVING, POST, FATAL, *TRACEBACK, DEAD, DEAD)
    summary = read(*once, *once)
    assert summary.events["died"] == (2, FATAL) and summary.events["restart"][0] == 1
    assert summary.death is not None and summary.death.times == 2 and not summary.death.goes_on
    again = read(*once, BANNER, SERVING, POST).death
    assert again is not None and again.goes_on and again.times == 1


LLAMA = "0.41.531.892 I slot launch_slot_: id  0 | task 0 | processing task, is_child = 0"
TRT = '{"iter": 7, "numDraftTokens": 24, "numAcceptedTokens": 12, "numRequestsWithDraftTokens": 8}'


@pytest.mark.parametrize(
    ("before", "line"),
    [
        (STATE, FATAL),
        (STATE, DEAD),
        (STATE, "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."),
        (STATE, "ERROR 02-21 06:30:25 core.py:291] EngineCore hit an exception: Traceback"),
        (STATE, "ERROR 07-04 17:35:16 [multiproc_executor.py:140] Worker proc Vllm-1 died unexpectedly"),
        (STATE, "ERROR 07-28 23:02:25 [core_client.py:1] Engine core proc EngineCore_0 died unexpectedly"),
        (STATE, "CRITICAL 04-17 03:26:10 [core_client.py:269] Got fatal signal from worker processes"),
        (STATE, "WARNING 11-29 11:18:30 [core_client.py:817] [shutdown] engine core exited unexpectedly"),
        (STATE, "RuntimeError: CUDA error: an illegal memory access was encountered"),
        (STATE, KILLED),
        (STATE, f"Nov 29 11:18:31 host systemd[1]: {KILLED}"),
        (STATE, "vllm@1.service: Main process exited, code=exited, status=1/FAILURE"),
        (STATE, "vllm.service: A process of this unit has been killed by the OOM killer."),
        (STATE, "Fatal Python error: Segmentation fault"),
        (sglang_line(2.0, 0.5), "[2026-07-14 10:40:24] Scheduler hit an exception: Traceback (most"),
        (sglang_line(2.0, 0.5), "[2025-03-09 00:57:15 TP4] Watchdog timeout (self.watchdog_timeout=300)"),
        (sglang_line(2.0, 0.5), "[2025-03-09 00:57:20] Received sigquit from a child process. It usually"),
        (sglang_line(2.0, 0.5), "[2026-07-14 08:34:37] SIGQUIT received. signum=None, frame=None."),
        (LLAMA, "/src/llama.cpp/ggml/src/ggml-cuda/ggml-cuda.cu:107: CUDA error"),
        (LLAMA, "/src/llama.cpp/src/llama-kv.cpp:1050: GGML_ASSERT(n <= tokens.size()) failed"),
        (LLAMA, "0.41.568.358 E CUDA error: an illegal memory access was encountered"),
        (LLAMA, "terminate called after throwing an instance of 'std::runtime_error'"),
        (LLAMA, "./run.sh: line 3: 4711 Segmentation fault      (core dumped) llama-server -m x.gguf"),
        ("2024-08-01T10:01:00.000000Z  INFO text_generation_router::server: router/src/server.rs: Connected",
         "2024-08-01T10:02:00.000000Z ERROR text_generation_launcher: Shard 0 crashed"),
        (TRT, "[TRT-LLM] [E] [_torch][RANK 7] Executor loop crashed on this rank; hard-killing all 8 ranks"),
    ],
)  # fmt: skip
def test_how_engines_die(before: str, line: str) -> None:
    death = read(before, line).death
    assert death is not None and death.line == line


@pytest.mark.parametrize(
    "lines",
    [
        (STATE, TERMINATED, FATAL, DEAD),
        (STATE, "(APIServer pid=1) INFO:     Shutting down", DEAD),
        (STATE, "KeyboardInterrupt", DEAD),
        (LLAMA, "0.99.000.000 I srv  llama_server: cleaning up before exit...", f"Nov 29 1:1:1 h {KILLED}"),
        (STATE, "Nov 29 11:18:28 host systemd[1]: Stopping vllm.service - vLLM...", KILLED),
        (STATE, "Stopping vLLM of the lab...", KILLED),
        (STATE, "vllm.service: Main process exited, code=killed, status=15/TERM"),
        (STATE, "vllm.service: Main process exited, code=exited, status=143/n/a"),
        (STATE, "vllm.service: Main process exited, code=exited, status=0/SUCCESS"),
    ],
)
def test_a_server_that_somebody_stops_does_not_die(lines: tuple[str, ...]) -> None:
    assert read(*lines).death is None


def test_one_that_was_stopped_may_die_in_its_next_life() -> None:
    assert read(BANNER, SERVING, POST, TERMINATED, DEAD, BANNER, SERVING, POST, FATAL).death is not None
    assert read(BANNER, TERMINATED, BANNER, SERVING, POST, FATAL).death is not None


def test_a_start_that_fails_is_no_death_while_serving() -> None:
    failed = "[2025-06-19 15:12:27] Scheduler hit an exception: Traceback (most recent call last):"
    assert read("[2025-06-19 15:12:20] server_args=ServerArgs(model_path='m')", failed).death is None
    core = f"{CORE}EngineCore failed to start."
    assert read(BANNER, core, f"{CORE}ValueError: another vocabulary", DEAD, KILLED).death is None


def test_an_excerpt_that_begins_with_the_death() -> None:
    death = read(FATAL, *TRACEBACK).death
    assert death is not None and death.seen is None


@pytest.mark.parametrize(
    "line",
    [
        'INFO:     6.6.6.6:1 - "GET /EngineDeadError:-x HTTP/1.1" 404 Not Found',
        "user asked: why does EngineCore hit an exception: and what is a Scheduler hit an exception: ?",
        "ERROR 11-29 11:18:25 [serving.py:9] Model 'x.service: Main process exited, code=killed, status=9' "
        "is not here",
        "INFO 01-01 00:00:00 [logger.py:43] Received request 1: prompt: 'Segmentation fault (core dumped)'",
        "[2025-10-22 10:27:57] Receive: obj=GenerateReqInput(text='GGML_ASSERT(x) CUDA error')",
    ],
)
def test_what_a_request_says_is_no_death(line: str) -> None:
    assert read(BANNER, SERVING, POST, line).death is None


def test_so_many_lines_are_kept_and_none_of_the_next_start() -> None:
    lines = [f"(EngineCore pid=9) INFO 11-29 11:17:00 [x.py:1] line {n}" for n in range(1000)]
    death = read(BANNER, SERVING, POST, *lines[:500], FATAL, *lines[500:]).death
    assert death is not None
    assert death.lines == (*lines[500 - ABOVE : 500], FATAL, *lines[500 : 500 + BELOW - 1])
    short = read(BANNER, SERVING, POST, FATAL, *TRACEBACK, BANNER, *lines).death
    assert short is not None and short.lines[-1] == TRACEBACK[-1]


@pytest.mark.parametrize("place", [0, 10, ABOVE + 10, BELOW + 10])
def test_it_does_not_matter_where_a_block_ends(place: int) -> None:
    """So many lines before the end of a block."""
    filler = "(APIServer pid=1) INFO 11-29 11:17:00 [x.py:1] " + "x" * 953
    start, line = f"{BANNER}\n{SERVING}\n{POST}\n".encode(), f"{filler}\n".encode()
    n = (BLOCK - len(start)) // len(line) - place
    tail = "".join(f"{one}\n" for one in (FATAL, *TRACEBACK, *[filler] * 2 * BELOW)).encode()
    whole, cut = start + line * n + tail, BLOCK
    death = read_log([whole[:cut], whole[cut:]]).death
    assert death is not None
    kept = (filler[:500],) * ABOVE + (FATAL, *TRACEBACK) + (filler[:500],) * (BELOW - 1 - len(TRACEBACK))
    assert death.lines == kept


def test_counts_before_it_stay() -> None:
    summary = read(BANNER, SERVING, vllm_line([(5, 5)], 5), FATAL, *TRACEBACK)
    assert (
        summary.counters is not None and summary.counters.accepted_tokens == 5 and summary.death is not None
    )


def test_keys_are_masked_in_what_is_kept() -> None:
    death = read(STATE, FATAL, f"{CORE}ValueError: bad flag --api-key s3cr3t-key-1234").death
    assert death is not None and "s3cr3t" not in str(death)
