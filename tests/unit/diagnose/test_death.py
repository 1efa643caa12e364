"""A server that never came to serve."""

from __future__ import annotations

from typing import Any

import pytest

from breakeven.acceptance.logs.reader import read_log
from breakeven.diagnose.causes.death import died_at_start
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
    assert first.next_command.endswith(" CANDIDATE.log")


def test_the_baseline_is_named() -> None:
    found = died_at_start(Evidence(log=logged(STARTED + SERVED), baseline_log=logged(STARTED + DIED)))
    assert found and found.evidence.startswith("The baseline: ") and "BASELINE.log" in found.next_command


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
