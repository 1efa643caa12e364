"""A server that never came to serve, or died while it served."""

from __future__ import annotations

from typing import Any

import pytest

from breakeven.acceptance.logs.reader import read_log
from breakeven.diagnose.causes.death import died_at_start, died_while_serving
from breakeven.diagnose.diagnose import diagnose
from breakeven.diagnose.evidence import Evidence
from tests.unit.diagnose.healthy import healthy

STARTED = "INFO 11-29 10:00:00 [api_server.py:1772] vLLM API server version 0.32.0\n"
DIED = (
    "(EngineCore pid=9) ERROR 11-29 10:00:09 [core.py:900] EngineCore failed to start.\n"
    "(EngineCore pid=9) ERROR 11-29 10:00:09 [core.py:900] ValueError: the drafter has another vocabulary.\n"
    "(APIServer pid=7) ERROR 11-29 10:00:10 [api.py:7] RuntimeError: Engine core initialization failed. "
    "See root cause above.\n"
)
TERMINATED = (
    "(EngineCore pid=9) INFO 11-29 10:00:08 [core.py:1454] [shutdown] trigger received signal=SIGTERM\n"
)
SERVED = "INFO 11-29 10:01:00 [launcher.py:46] Application startup complete.\n"
GOES_ON = "INFO 11-29 10:01:00 [loader.py:46] Loading a part of the weights.\n" * 120


def logged(text: str) -> Any:
    return read_log([text.encode()])


def test_the_reason_comes_first() -> None:
    first = diagnose(Evidence(log=logged(STARTED + DIED))).findings[0]
    assert (first.id, first.confidence) == ("died_at_start", "high")
    assert "The server: ValueError: the drafter has another vocabulary. Nothing" in first.evidence
    assert first.next_command.endswith(" <candidate-log>")


def test_the_baseline_is_named() -> None:
    found = died_at_start(Evidence(log=logged(STARTED + SERVED), baseline_log=logged(STARTED + DIED)))
    assert found and found.evidence.startswith("The baseline: ") and "<baseline-log>" in found.next_command


def test_the_last_start_counts() -> None:
    again = logged(STARTED + SERVED + 'INFO:     127.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK\n')
    assert died_at_start(Evidence(log=again)) is None
    died = logged(
        STARTED + SERVED + 'INFO:  127.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK\n' + STARTED + DIED
    )
    assert died_at_start(Evidence(log=died))


@pytest.mark.parametrize(
    "text",
    [
        "",
        STARTED,
        STARTED + SERVED,
        STARTED + DIED + SERVED,
        STARTED + TERMINATED + DIED,
        STARTED + DIED + GOES_ON,
    ],
    ids=["empty", "starting", "serving", "it served all the same", "stopped", "it goes on"],
)
def test_what_is_no_death(text: str) -> None:
    assert died_at_start(healthy(log=logged(text))) is None


POST = 'INFO:     127.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK\n'
FATAL = "(EngineCore pid=9) ERROR 11-29 11:18:30 [core.py:1138] EngineCore encountered a fatal error.\n"
RAISED = "(EngineCore pid=9) ERROR 11-29 11:18:30 [core.py:1138] {}\n"
SERVES = STARTED + SERVED + POST


def crashed(*raised: str) -> str:
    return SERVES + FATAL + "".join(map(RAISED.format, raised))


def test_a_death_while_serving_says_when_and_why() -> None:
    text = crashed("Traceback (most recent call last):", "RuntimeError: CUDA error: an illegal memory access")
    first = diagnose(Evidence(engine="vllm", log=logged(text))).findings[0]
    assert (first.id, first.confidence) == ("died_while_serving", "high")
    assert first.evidence.startswith(
        "The server, at 11-29 11:18:30: RuntimeError: CUDA error: an illegal memory access; the log shows no "
        "start after it. "
    )
    assert "Xid" in first.next_command and "vllm#48966" in first.check
    assert [one.id for one in diagnose(Evidence(log=logged(text))).findings] == ["died_while_serving"]


def test_one_that_serves_again_is_less_telling() -> None:
    again = logged(crashed("ValueError: x") + SERVES + crashed("ValueError: y") + SERVES)
    found = died_while_serving(Evidence(engine="vllm", log=again))
    assert found and found.confidence == "medium" and "vllm#48966" not in found.check
    assert "the last of 2 times: ValueError: y; it started anew afterwards" in found.evidence


def test_the_side_that_died_is_named() -> None:
    found = died_while_serving(
        Evidence(log=logged(SERVES), baseline_log=logged(crashed("ValueError: a shape is odd")))
    )
    assert found and found.evidence.startswith("The baseline, at ") and found.confidence == "high"
    assert found.next_command.startswith("grep ") and found.next_command.endswith(" <baseline-log>")


@pytest.mark.parametrize(
    ("lines", "why", "command"),
    [
        (crashed("torch.OutOfMemoryError: CUDA out of memory."), "torch.OutOfMemoryError", "nvidia-smi"),
        (
            SERVES + "vllm.service: A process of this unit has been killed by the OOM killer.\n"
            "vllm.service: Main process exited, code=killed, status=9/KILL\n",
            "OOM killer",
            "journalctl -k --grep 'Out of memory",
        ),
        (
            SERVES + "vllm.service: Main process exited, code=killed, status=9/KILL\n",
            "status=9/KILL",
            "journalctl -k --grep 'Out of memory",
        ),
        (
            SERVES + "vllm.service: Main process exited, code=dumped, status=11/SEGV\n",
            "status=11/SEGV",
            "journalctl -k --grep 'NVRM: Xid'",
        ),
        (
            "0.41.531.892 I slot launch_slot_: id  0 | task 0 | processing task, is_child = 0\n"
            "/src/ggml/src/ggml-cuda/ggml-cuda.cu:107: CUDA error\n"
            "0.41.568.358 E CUDA error: an illegal memory access was encountered\n",
            "CUDA error: an illegal memory access",
            "journalctl -k --grep 'NVRM: Xid'",
        ),
        (
            "[2026-07-14 10:40:23] Decode batch. #running-req: 1, accept len: 3.36, cuda graph: True\n"
            "[2026-07-14 10:40:24] Scheduler hit an exception: Traceback (most recent call last):\n"
            '  File "scheduler.py", line 4329, in run_scheduler_process\n'
            "TypeError: 'NoneType' object cannot be interpreted as an integer\n"
            "\n"
            "[2026-07-14 10:40:24] SIGQUIT received. signum=None, frame=None.\n",
            "at 2026-07-14 10:40:24: TypeError: 'NoneType' object",
            "grep ",
        ),
    ],
)
def test_what_to_type_goes_with_the_reason(lines: str, why: str, command: str) -> None:
    found = died_while_serving(Evidence(log=logged(lines)))
    assert found and why in found.evidence and found.next_command.startswith(command)


def test_a_time_before_it_stands_in_for_its_own() -> None:
    state = "INFO 11-29 11:18:25 [loggers.py:9] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg "
    state += (
        "generation throughput: 9.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%\n"
    )
    killed = "vllm.service: Main process exited, code=killed, status=9/KILL\n"
    found = died_while_serving(Evidence(log=logged(SERVES + state + killed)))
    assert found and found.evidence.startswith("The server, after 11-29 11:18:25: vllm.service: ")


def test_no_death_no_finding() -> None:
    assert died_while_serving(healthy(log=logged(SERVES))) is None
    assert died_while_serving(Evidence()) is None


def test_a_death_while_serving_is_none_at_the_start() -> None:
    assert died_at_start(Evidence(log=logged(FATAL + RAISED.format("ValueError: x")))) is None
