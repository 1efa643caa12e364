"""A watched server that answers, goes away, starts anew, is slow, or says what is no page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from breakeven.client.endpoint import ApiKey, Endpoint
from breakeven.client.transport import Pool
from breakeven.watch import server as server_module
from breakeven.watch.run import look_twice, watch
from breakeven.watch.server import Server
from breakeven.watch.yardstick import Yardstick
from tests.unit.watch.answering import Answering, answering, vllm_page
from tests.unit.watch.pages import calibration


def clock() -> Callable[[], float]:
    """Five seconds from one call to the next."""
    ticks = iter(range(0, 100_000, 5))
    return lambda: float(next(ticks))


def watched(answer: Answering, calibrated: bool = True) -> Server:
    return Server(Endpoint(answer.url), 60.0, Yardstick(calibration()) if calibrated else None, clock())


async def look(server: Server) -> None:
    async with Pool() as pool:
        await server.look(pool, 0.1)


async def test_two_readings_give_every_figure():
    with answering(body=vllm_page(400, 1000)) as answer:
        server = watched(answer)
        await look(server)
        assert server.state.now is not None and server.state.now.speculation.why == "one reading so far"
        answer.body = vllm_page(600, 1700)
        await look(server)
    state = server.state
    assert (state.url, state.model, state.problem) == (answer.url, "some-model", "")
    now = state.now
    assert now is not None and now.engine == "vllm" and now.seconds == 5.0
    assert now.per_position == (0.75, 0.5, 0.25, 0.0)
    ratios = {one.name: one.value.estimate for one in now.ratios if one.value}
    assert ratios["acceptance_rate"] == 0.375 and ratios["draft_share"] == 0.5
    assert ratios["mean_acceptance_length"] == 2.5
    assert (now.running, now.waiting, now.kv_usage, now.output_tokens_per_s) == (1, 0, 0.25, 140)
    assert now.speculation.answer == "pays"


async def test_the_model_is_asked_once_and_again_after_the_server_was_away():
    with answering(body=vllm_page(4)) as answer:
        server = watched(answer)
        await look(server)
        await look(server)
        assert answer.asked.count("/v1/models") == 1
        answer.status, answer.model = 503, "another"
        await look(server)
        assert server.state.now is None and "HTTP 503" in server.state.problem
        answer.status = 200
        await look(server)
        assert server.state.model == "another" and server.state.problem == ""


async def test_a_server_that_starts_anew_is_told():
    with answering(body=vllm_page(400)) as answer:
        server = watched(answer)
        await look(server)
        answer.body = vllm_page(4)
        await look(server)
        assert server.state.resets == 1
        assert server.state.now is not None and server.state.now.counters is None
        answer.body = vllm_page(12)
        await look(server)
        assert server.state.now.counters is not None and server.state.now.counters.drafts == 8


async def test_a_server_that_goes_away_and_one_that_never_was():
    with answering(body=vllm_page(4)) as answer:
        server = watched(answer)
        await look(server)
        read_at = server.state.read_at
    await look(server)
    assert server.state.now is None and "nothing answers" in server.state.problem
    assert server.state.read_at == read_at and server.state.model == "some-model"
    never = Server(Endpoint("http://127.0.0.1:9"), 60.0)
    await look(never)
    assert "nothing answers" in never.state.problem and never.state.read_at is None


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"status": 404, "body": b"{}"}, "--metrics"),
        ({"status": 501, "body": b"{}"}, "--metrics"),
        ({"status": 401, "body": b"{}"}, "--api-key-env"),
        ({"body": b"<!doctype html><title>Sign in</title>"}, "no metrics of an engine"),
        ({"body": b""}, "no metrics of an engine"),
        ({"body": b"up 1\nnode_load1 0.5\n"}, "no metrics of an engine"),
        ({"body": b"\x00\xff\xfe" * 1000}, "no metrics of an engine"),
        ({"body": b"x" * (65 * 2**20)}, "64 MiB"),
    ],
)
async def test_what_is_no_page_is_said(how: dict[str, object], said: str):
    with answering(**how) as answer:
        server = watched(answer)
        await look(server)
    assert server.state.now is None and said in server.state.problem


@pytest.mark.parametrize(
    "line",
    [
        b"vllm:num_requests_running NaN",
        b"vllm:num_requests_running +Inf",
        b"vllm:num_requests_running 1e300",
        b"vllm:num_requests_running -4",
        b"vllm:kv_cache_usage_perc 1e308",
        b"vllm:generation_tokens_total 1e308",
        b"vllm:spec_decode_num_drafts_total NaN",
        b'vllm:spec_decode_num_drafts_total{engine="',
        b"vllm:num_requests_running \x1b]0;title\x07",
    ],
)
async def test_a_page_that_lies_is_watched_on(line: bytes):
    with answering(body=vllm_page(400) + line + b"\n") as answer:
        server = watched(answer)
        await look(server)
        answer.body = vllm_page(440) + line + b"\n"
        await look(server)
        answer.body = vllm_page(480)
        await look(server)
    assert server.state.problem == "" and server.state.now is not None


async def test_a_slow_server_does_not_hold_up_another(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server_module, "LEAST_PATIENCE_S", 1.0)
    with answering(body=vllm_page(4)) as quick, answering(body=vllm_page(4), delay_s=5.0) as slow:
        servers = [Server(Endpoint(one.url), 60.0) for one in (slow, quick)]
        told: list[bool] = []
        await watch(servers, 0.05, lambda: told.append(servers[1].state.now is not None), 0.05, 2.0)
        assert "does not answer" in servers[0].state.problem or servers[0].state.problem == "not read yet"
        assert quick.asked.count("/metrics") >= 3 and told[-1]


async def test_looking_twice_is_enough_for_counts():
    with answering(body=vllm_page(400)) as answer:
        server = Server(Endpoint(answer.url), 60.0)

        async def drafts() -> None:
            """Between the two looks."""
            while server.state.now is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            answer.body = vllm_page(440)

        await asyncio.gather(look_twice([server], 0.3), drafts())
    assert server.state.now is not None and server.state.now.counters is not None
    assert server.state.now.counters.drafts == 40


async def test_a_key_that_the_server_quotes_is_not_shown():
    with answering(status=401, body=b'{"error": "bad key sk-secret"}') as answer:
        server = Server(Endpoint(answer.url, api_key=ApiKey("sk-secret")), 60.0)
        await look(server)
    assert "sk-secret" not in server.state.problem and "HTTP 401" in server.state.problem


async def test_what_telling_raises_ends_the_watch():
    def tell() -> None:
        raise OSError("the disk is full")

    with answering(body=vllm_page(4)) as answer, pytest.raises(OSError, match="disk is full"):
        await watch([Server(Endpoint(answer.url), 60.0)], 0.05, tell, 0.1)
