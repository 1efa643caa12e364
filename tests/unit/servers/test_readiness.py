"""Ready is a completion with tokens, then a full batch of them; everything else is waited for, or named."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from breakeven.client.endpoint import Endpoint
from breakeven.errors import ServerError, StorageError, UsageError
from breakeven.servers import readiness, restart
from breakeven.servers.fake import FakeServer, Script, empty_body, html_page, http_error, json_not_sse
from breakeven.servers.fake.lifecycle import FakeLifecycle
from breakeven.servers.lifecycle import State
from breakeven.servers.progress import Progress
from breakeven.servers.readiness import Ready, Wanted, wait_until_ready
from breakeven.servers.start_times import keep_start_s, last_start_s
from tests.unit.servers.plain_dialect import PlainDialect

QUICK = Script(ttft_s=0.001, tpot_s=0.0005)
LONG_S = 60.0


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "PAUSE_S", 0.01)


async def wait(
    server: FakeServer | str,
    lifecycle: FakeLifecycle | None = None,
    deadline_s: float = LONG_S,
    concurrency: int = 1,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> Ready:
    url = server if isinstance(server, str) else server.url
    wanted = Wanted(Endpoint(url, model="fake-model"), deadline_s, concurrency, usual_s=90.0)
    return await wait_until_ready(lifecycle or FakeLifecycle(), PlainDialect(), wanted, watch=watch)


def first(n: int, script: Script, then: Script = QUICK) -> Callable[[dict[str, Any], int], Script]:
    return lambda body, number: script if number < n else then


async def test_a_completion_then_a_full_batch():
    async with FakeServer(QUICK) as server:
        ready = await wait(server, concurrency=8)
    assert server.requests == 9
    assert ready.seconds > 0
    prompts = {str(served.body["messages"]) for served in server.log}
    assert len(prompts) == 8


async def test_the_model_is_found_where_none_is_named():
    async with FakeServer(QUICK) as server:
        wanted = Wanted(Endpoint(server.url), LONG_S)
        ready = await wait_until_ready(FakeLifecycle(), PlainDialect(), wanted)
    assert ready.endpoint.model == "fake-model"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (http_error(503, "Loading model"), "503"),
        (http_error(500, "boom"), "500"),
        (empty_body(), "without a token|said|ended"),
        (html_page(), "web page|HTML|html"),
        (Script(error_as_token="object", error_message="CUDA out of memory"), "CUDA out of memory"),
    ],
)
async def test_what_is_no_completion_is_waited_through_and_named(script: Script, said: str):
    async with FakeServer(first(3, script)) as server:
        seen: list[Progress] = []
        await wait(server, watch=seen.append)
        assert server.requests == 5
    assert any(progress.waiting_for for progress in seen)
    async with FakeServer(script) as server:
        with pytest.raises(ServerError, match=f"not ready within .*({said})"):
            await wait(server, deadline_s=0.3)


async def test_a_whole_reply_where_a_stream_was_asked_for_is_a_completion_or_named():
    async with FakeServer(json_not_sse("")) as server:
        with pytest.raises(ServerError, match="not ready within"):
            await wait(server, deadline_s=0.3)


async def test_nobody_there_is_waited_for_until_the_deadline():
    async with FakeServer(QUICK) as server:
        url = server.url
    with pytest.raises(ServerError, match=r"not ready within .*at the last look"):
        await wait(url, deadline_s=0.3)


async def test_a_server_that_hangs_meets_the_deadline_of_the_clock():
    hung = Script(ttft_s=3600)
    async with FakeServer(hung) as server:
        with pytest.raises(ServerError, match="not ready within"):
            await wait(server, deadline_s=0.3)
    async with FakeServer(first(1, QUICK, hung)) as server:
        with pytest.raises(ServerError, match=r"not ready within .*a batch of 2 was not answered"):
            await wait(server, deadline_s=0.5, concurrency=2)


async def test_a_process_that_fails_ends_the_wait_at_once_with_its_log():
    lifecycle = FakeLifecycle(lines=["PHASE loading weights 1/8", "FATAL no room for weights"])
    asyncio.get_running_loop().call_later(0.1, fail, lifecycle)
    with pytest.raises(ServerError, match=r"failed before it was ready \(status 1\): FATAL no room"):
        await wait("http://127.0.0.1:9", lifecycle, deadline_s=3600)


async def test_a_process_that_dies_while_it_is_asked_ends_the_wait():
    lifecycle = FakeLifecycle()
    asyncio.get_running_loop().call_later(0.2, fail, lifecycle)
    async with FakeServer(Script(ttft_s=3600)) as server:
        with pytest.raises(ServerError, match="failed before it was ready"):
            await wait(server, lifecycle, deadline_s=3600)


async def test_without_a_known_reason_the_end_of_the_log_is_shown():
    lifecycle = FakeLifecycle(State("stopped"), [f"line {i}" for i in range(20)])
    with pytest.raises(
        ServerError, match=r"(?s)stopped before it was ready; the end of its log:.*line 19"
    ) as e:
        await wait("http://127.0.0.1:9", lifecycle)
    assert "line 3\n" not in str(e.value)


async def test_an_answer_of_the_server_that_is_being_replaced_does_not_count():
    lifecycle = FakeLifecycle(State("starting", "2 of 3 pods"))
    async with FakeServer(QUICK) as server:
        with pytest.raises(ServerError, match=r"not ready within .*starting \(2 of 3 pods\)"):
            await wait(server, lifecycle, deadline_s=0.3)
        assert server.requests == 0


async def restarted(
    server: FakeServer, lifecycle: FakeLifecycle | None = None, deadline_s: float = LONG_S
) -> Ready:
    wanted = Wanted(Endpoint(server.url, model="fake-model"), deadline_s)
    lifecycle = lifecycle or FakeLifecycle()
    return await wait_until_ready(lifecycle, PlainDialect(), wanted, began=time.monotonic())


async def test_what_answers_all_along_is_not_what_was_restarted(monkeypatch: pytest.MonkeyPatch):
    """A gateway, another replica, or a mistyped port."""
    monkeypatch.setattr(restart, "PATIENCE_S", 0.1)
    async with FakeServer(QUICK) as server:
        with pytest.raises(UsageError, match=r"reaches a server that was not restarted.*--url"):
            await restarted(server)
        assert (await wait(server)).seconds > 0


async def test_one_look_without_an_answer_is_a_sign_of_the_restart():
    async with FakeServer(first(1, http_error(503, "Loading model"))) as server:
        assert (await restarted(server)).seconds > 0


async def test_that_it_serves_by_its_log_is_a_sign_of_the_restart(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(restart, "PATIENCE_S", 0.0)
    lifecycle = FakeLifecycle(lines=["PHASE loading weights 1/8"])
    asyncio.get_running_loop().call_later(0.2, lifecycle.lines.append, "PHASE serving")
    async with FakeServer(QUICK) as server:
        assert (await restarted(server, lifecycle)).seconds > 0.15


async def test_while_its_log_tells_of_a_start_it_is_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(restart, "PATIENCE_S", 0.0)
    async with FakeServer(QUICK) as server:
        with pytest.raises(ServerError, match=r"not ready within .*no sign of a restart"):
            await restarted(server, FakeLifecycle(lines=["PHASE loading weights 1/8"]), deadline_s=0.3)


@pytest.mark.parametrize(("later_s", "is_new"), [(-3600.0, False), (3600.0, True)])
async def test_a_process_that_says_when_it_started(
    monkeypatch: pytest.MonkeyPatch, later_s: float, is_new: bool
):
    monkeypatch.setattr(restart, "PATIENCE_S", 0.1)

    async def page(*given: object) -> str:
        return f"process_start_time_seconds {time.time() + later_s}\n"

    monkeypatch.setattr(restart, "get_text", page)
    async with FakeServer(QUICK) as server:
        if is_new:
            assert (await restarted(server)).seconds > 0
        else:
            with pytest.raises(UsageError, match="not restarted"):
                await restarted(server)


async def returned(
    server: FakeServer,
    usual_s: float | None,
    deadline_s: float = LONG_S,
    lifecycle: FakeLifecycle | None = None,
) -> tuple[Ready, list[Progress]]:
    """What comes back as it was found."""
    seen: list[Progress] = []
    wanted = Wanted(Endpoint(server.url, model="fake-model"), deadline_s, usual_s=usual_s, is_returning=True)
    ready = await wait_until_ready(
        lifecycle or FakeLifecycle(), PlainDialect(), wanted, began=time.monotonic(), watch=seen.append
    )
    return ready, seen


async def test_what_comes_back_slowly_is_given_the_time_that_it_took_before(monkeypatch: pytest.MonkeyPatch):
    """It answers, as what it replaces does; the sign of the restart comes late."""
    monkeypatch.setattr(restart, "PATIENCE_S", 0.0)
    lifecycle = FakeLifecycle()
    asyncio.get_running_loop().call_later(0.4, lifecycle.lines.append, "PHASE serving")
    async with FakeServer(QUICK) as server:
        ready, seen = await returned(server, usual_s=LONG_S, lifecycle=lifecycle)
    assert ready.seconds > 0.3
    assert any("with no sign of a restart" in progress.describe() for progress in seen)


async def test_what_was_never_restarted_is_found_out_once_that_time_is_over(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(restart, "PATIENCE_S", 0.0)
    async with FakeServer(QUICK) as server:
        began = time.monotonic()
        with pytest.raises(UsageError, match="reaches a server that was not restarted"):
            await returned(server, usual_s=0.2)
        assert time.monotonic() - began > 0.4
        with pytest.raises(ServerError, match=r"not ready within .*no sign of a restart"):
            await returned(server, usual_s=LONG_S, deadline_s=0.3)


async def test_where_no_start_was_timed_what_comes_back_has_a_time_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(restart, "PATIENCE_S", 0.0)
    monkeypatch.setattr(readiness, "UNTIMED_S", 0.3)
    async with FakeServer(QUICK) as server:
        began = time.monotonic()
        with pytest.raises(UsageError, match="not restarted"):
            await returned(server, usual_s=None)
        assert time.monotonic() - began > 0.3


async def test_a_candidate_is_given_no_more_time_than_before(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(restart, "PATIENCE_S", 0.0)
    async with FakeServer(QUICK) as server:
        wanted = Wanted(Endpoint(server.url, model="fake-model"), LONG_S, usual_s=LONG_S)
        with pytest.raises(UsageError, match="not restarted"):
            await wait_until_ready(FakeLifecycle(), PlainDialect(), wanted, began=time.monotonic())


async def test_an_address_that_is_dead_while_its_process_starts_is_a_sign_of_the_restart():
    lifecycle = FakeLifecycle(State("starting"))
    async with FakeServer(QUICK) as server:
        url = server.url
    wanted = Wanted(Endpoint(url, model="fake-model"), LONG_S)
    began = asyncio.ensure_future(wait_until_ready(lifecycle, PlainDialect(), wanted, began=time.monotonic()))
    await asyncio.sleep(0.2)
    async with FakeServer(QUICK, port=int(url.rpartition(":")[2])):
        lifecycle.now = State("running", since_s=0.0)
        assert (await began).seconds > 0


async def test_out_of_memory_at_the_first_full_batch():
    """Healthy alone; the process dies under the batch."""
    lifecycle = FakeLifecycle(lines=["PHASE serving"])

    def direct(body: dict[str, Any], number: int) -> Script:
        if number == 0:
            return QUICK
        lifecycle.lines.append("FATAL out of memory")
        fail(lifecycle)
        return http_error(500, "EngineCore died")

    async with FakeServer(direct) as server:
        with pytest.raises(ServerError, match="FATAL out of memory"):
            await wait(server, lifecycle, concurrency=4)


async def test_one_failure_of_a_full_batch_is_too_many():
    script = first(1, QUICK, http_error(500, "no KV cache left"))
    mixed = lambda body, number: script(body, number) if number < 2 else QUICK  # noqa: E731
    async with FakeServer(mixed) as server:
        with pytest.raises(ServerError, match=r"of 4 requests at once 1 failed: .*no KV cache left"):
            await wait(server, concurrency=4)


@pytest.mark.parametrize("status", [400, 401])
async def test_a_refusal_that_no_waiting_changes(status: int):
    async with FakeServer(http_error(status, "no")) as server:
        with pytest.raises(UsageError, match="refuses a plain completion"):
            await wait(server, deadline_s=3600)


async def test_a_server_that_answers_only_errors_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(readiness, "ERROR_PATIENCE_S", 0.1)
    async with FakeServer(http_error(500, "engine is dead")) as server:
        with pytest.raises(ServerError, match=r"answered only errors: .*engine is dead"):
            await wait(server, deadline_s=3600)


async def test_phases_come_from_the_log():
    lifecycle = FakeLifecycle(State("starting"), ["PHASE loading weights 3/8"])
    seen: list[str] = []
    loop = asyncio.get_running_loop()
    loop.call_later(0.1, lifecycle.lines.append, "PHASE capturing graphs 1/67")
    loop.call_later(0.2, setattr, lifecycle, "now", State("running"))
    async with FakeServer(QUICK) as server:
        ready = await wait(server, lifecycle, watch=lambda progress: seen.append(progress.describe()))
    assert any(
        line.startswith("loading weights 3/8, ") and line.endswith("of about 1 min 30 s") for line in seen
    )
    assert any(line.startswith("capturing graphs 1/67") for line in seen)
    assert [phase.name for phase in ready.phases][-2:] == ["loading weights", "capturing graphs"]
    assert sum(phase.seconds for phase in ready.phases) == pytest.approx(ready.seconds, abs=0.2)


async def test_a_log_that_cannot_be_read_takes_only_the_phases(monkeypatch: pytest.MonkeyPatch):
    lifecycle = FakeLifecycle()

    async def broken():
        raise ServerError("no journal here")
        yield ""

    monkeypatch.setattr(lifecycle, "logs", broken)
    async with FakeServer(QUICK) as server:
        assert (await wait(server, lifecycle)).seconds > 0


def test_start_times_are_kept_per_target_and_side(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("platformdirs.user_state_dir", lambda *a, **k: str(tmp_path / "breakeven"))
    assert last_start_s("systemd:a", False) is None
    keep_start_s("systemd:a", False, 1800.0)
    keep_start_s("systemd:a", True, 5400.0)
    assert last_start_s("systemd:a", False) == 1800.0
    assert last_start_s("systemd:a", True) == 5400.0
    assert last_start_s("systemd:b", True) is None
    (file,) = (tmp_path / "breakeven" / "starts").iterdir()
    for nonsense in ("[]", '{"baseline_s": "x"}', '{"baseline_s": NaN}', "{"):
        file.write_text(nonsense)
        assert last_start_s("systemd:a", False) is None
    keep_start_s("systemd:a", False, 1.0)
    assert last_start_s("systemd:a", False) == 1.0


def test_a_state_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("platformdirs.user_state_dir", lambda *a, **k: str(tmp_path / "file" / "breakeven"))
    with pytest.raises(StorageError, match="cannot be made"):
        keep_start_s("systemd:a", False, 1.0)


def fail(lifecycle: FakeLifecycle) -> None:
    lifecycle.now = State("failed", "status 1")
