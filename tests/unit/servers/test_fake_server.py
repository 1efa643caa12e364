"""The fake over real sockets, asked by an independent client."""

import asyncio
import gc
import json
import socket
import ssl
import statistics
import subprocess
import sys
from dataclasses import replace
from typing import Any

import httpx
import pytest
import trustme

from breakeven.acceptance.prometheus import read_page
from breakeven.servers.fake import (
    FakeServer,
    Noise,
    Script,
    Speculation,
    Wire,
    empty_body,
    html_page,
    http_error,
    json_not_sse,
    llamacpp_script,
    new_event_loop,
    vllm_script,
)

FAST = Script(ttft_s=0.002, tpot_s=0.0005, n_tokens=8)


def body(prompt: str = "Hello", **fields: Any) -> dict[str, Any]:
    usage = {"include_usage": True}
    messages = [{"role": "user", "content": prompt}]
    return {"messages": messages, "stream": True, "stream_options": usage, **fields}


def chat(server: FakeServer) -> str:
    return server.url + "/v1/chat/completions"


def events(text: str) -> list[dict[str, Any]]:
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def content(text: str) -> str:
    choices = [choice for event in events(text) for choice in event["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


async def test_a_reply_is_cut_at_max_tokens():
    async with FakeServer(FAST) as server, httpx.AsyncClient() as client:
        reply = events((await client.post(chat(server), json=body(max_tokens=5))).text)
    assert reply[-1]["usage"]["completion_tokens"] == 5
    assert reply[-2]["choices"][0]["finish_reason"] == "length"
    assert {event["id"] for event in reply} == {"chatcmpl-000000000000000"}


@pytest.mark.parametrize(
    "wire",
    [
        Wire(transfer="close"),
        Wire(gzip=True),
        Wire(split="utf8", split_gap_s=0.001),
        Wire(split="anywhere"),
        Wire(events_per_write=3),
        Wire(trickle_header=True),
        Wire(header_at_s=0.02),
    ],
    ids=str,
)
async def test_the_wire_does_not_change_the_text(wire: Wire):
    odd_one = FakeServer(replace(FAST, wire=wire))
    async with odd_one, FakeServer(FAST) as plain, httpx.AsyncClient() as client:
        odd = await client.post(chat(odd_one), json=body())
        even = await client.post(chat(plain), json=body())
    assert content(odd.text) == content(even.text) != ""


async def test_one_connection_serves_many_requests():
    async with FakeServer(FAST) as server, httpx.AsyncClient() as client:
        for prompt in ("a", "b", "a"):
            await client.post(chat(server), json=body(prompt))
        replies = [json.dumps(served.body["messages"]) for served in server.log]
    assert {served.connection for served in server.log} == {0}
    assert [served.index for served in server.log] == [0, 1, 2]
    assert len(set(replies)) == 2


async def test_ids_differ_by_request_though_the_text_is_kept():
    async with FakeServer(FAST) as server, httpx.AsyncClient() as client:
        one, two = [(await client.post(chat(server), json=body())).text for _ in range(2)]
    assert content(one) == content(two)
    assert events(one)[0]["id"] != events(two)[0]["id"]


async def test_the_log_tells_due_and_written_times():
    script = Script(ttft_s=0.05, tpot_s=0.01, n_tokens=20)
    async with FakeServer(script) as server, httpx.AsyncClient() as client:
        await client.post(chat(server), json=body())
    served = server.log[0]
    assert served.tokens == (1,) * 20
    offsets = [(due - served.start_ns) / 1e9 for due in served.due_ns]
    assert offsets == pytest.approx([0.05 + 0.01 * i for i in range(20)])
    late_ns = [written - due for written, due in zip(served.written_ns, served.due_ns, strict=True)]
    assert min(late_ns) >= 0
    assert statistics.median(late_ns) < 8e6


async def test_lateness_does_not_add_up():
    script = Script(ttft_s=0.01, tpot_s=0.002, n_tokens=300)
    async with FakeServer(script) as server, httpx.AsyncClient() as client:
        await asyncio.gather(*(client.post(chat(server), json=body(str(i))) for i in range(8)))
    for served in server.log:
        late_ns = [written - due for written, due in zip(served.written_ns, served.due_ns, strict=True)]
        assert statistics.median(late_ns[-100:]) < statistics.median(late_ns[:100]) + 20e6


async def test_slots_make_requests_wait_their_turn():
    script = Script(ttft_s=0.02, tpot_s=0.001, n_tokens=10)
    async with FakeServer(script, slots=1) as server, httpx.AsyncClient() as client:
        await asyncio.gather(*(client.post(chat(server), json=body(str(i))) for i in range(4)))
    ends = [served.written_ns[-1] for served in server.log]
    assert all(later.start_ns >= end for end, later in zip(ends, list(server.log)[1:], strict=False))
    waits = [served.start_ns - served.received_ns for served in server.log]
    assert max(waits) > 2.5 * 0.029e9  # the requests do not come at one instant


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("after", [0, 3])
async def test_a_stream_dies(how: str, after: int):
    script = replace(FAST, die_at=after, die_how=how)
    got = ""
    async with FakeServer(script) as server, httpx.AsyncClient() as client:
        with pytest.raises(httpx.TransportError):
            async with client.stream("POST", chat(server), json=body()) as response:
                async for piece in response.aiter_text():
                    got += piece
        assert server.log[0].outcome == "died"
        assert sum(server.log[0].tokens) == after
    assert got.count("data: ") == (after + 1 if after else 0)


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_death_before_the_header(how: str):
    async with FakeServer(replace(FAST, die_at=-1, die_how=how)) as server, httpx.AsyncClient() as client:
        with pytest.raises(httpx.TransportError):
            await client.post(chat(server), json=body())


async def test_a_client_that_leaves_frees_its_slot():
    slow = Script(ttft_s=0.001, tpot_s=0.01, n_tokens=10_000)
    async with FakeServer(slow, slots=1) as server, httpx.AsyncClient() as client:
        async with client.stream("POST", chat(server), json=body()) as response:
            await anext(response.aiter_bytes())
        reply = await client.post(chat(server), json=body(max_tokens=2))
        assert reply.status_code == 200
    assert [served.outcome for served in server.log] == ["aborted", "served"]


async def test_a_slow_reader_gets_everything():
    script = Script(ttft_s=0, tpot_s=0, n_tokens=30_000)
    async with FakeServer(script) as server, httpx.AsyncClient() as client:
        size = 0
        async with client.stream("POST", chat(server), json=body()) as response:
            await asyncio.sleep(0.3)
            async for piece in response.aiter_bytes():
                size += len(piece)
    assert sum(server.log[0].tokens) == 30_000
    assert size > 30_000 * 150


@pytest.mark.parametrize(
    ("script", "status", "kind", "start"),
    [
        (http_error(401, "no key"), 401, "application/json", b'{"error"'),
        (http_error(503, "loading", retry_after_s=3), 503, "application/json", b'{"error"'),
        (html_page(), 200, "text/html", b"<!DOCTYPE"),
        (json_not_sse(), 200, "application/json", b'{"id"'),
        (empty_body(), 200, "text/event-stream", b""),
    ],
    ids=["401", "503", "html", "json", "empty"],
)
async def test_plain_answers(script: Script, status: int, kind: str, start: bytes):
    async with FakeServer(script) as server, httpx.AsyncClient() as client:
        reply = await client.post(chat(server), json=body())
        assert reply.status_code == status
        assert reply.headers["content-type"].startswith(kind)
        assert reply.content.startswith(start)
        assert reply.headers.get("retry-after") == ("3" if status == 503 else None)
        again = await client.get(server.url + "/health")
    assert again.status_code == 200


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"max_tokens": 0}, 400),
        ({"max_tokens": "many"}, 400),
        ({"messages": []}, 400),
        ({"model": "nope"}, 404),
        ({"model": "a"}, 200),
    ],
    ids=str,
)
async def test_wrong_requests(fields: dict[str, Any], status: int):
    async with FakeServer(FAST, models=("a", "b")) as server, httpx.AsyncClient() as client:
        reply = await client.post(chat(server), json=body(**fields))
        assert reply.status_code == status
        listed = (await client.get(server.url + "/v1/models")).json()
    assert [card["id"] for card in listed["data"]] == ["a", "b"]


async def test_what_is_not_there_and_what_is_no_json():
    async with FakeServer(FAST) as server, httpx.AsyncClient() as client:
        assert (await client.get(server.url + "/nothing")).json()["error"]["code"] == 404
        assert (await client.post(server.url + "/v1/embeddings", json={})).status_code == 404
        assert (await client.post(chat(server), content=b"{")).status_code == 400


async def test_garbage_is_refused():
    async with FakeServer(FAST) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 400")
        writer.close()


async def test_an_api_key_is_asked_for():
    async with FakeServer(FAST, api_key="secret") as server, httpx.AsyncClient() as client:
        assert (await client.post(chat(server), json=body())).status_code == 401
        headers = {"Authorization": "Bearer secret"}
        assert (await client.post(chat(server), json=body(), headers=headers)).status_code == 200


async def test_tls():
    authority = trustme.CA()
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(serving)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with FakeServer(FAST, tls=serving) as server, httpx.AsyncClient(verify=trusting) as client:
        assert server.url.startswith("https://")
        assert content((await client.post(chat(server), json=body())).text)


async def test_a_director_chooses_by_body_and_number():
    def direct(asked: dict[str, Any], index: int) -> Script:
        return replace(FAST, n_tokens=3 if asked["messages"][0]["content"] == "short" else 5 + index)

    async with FakeServer(direct) as server, httpx.AsyncClient() as client:
        for prompt in ("short", "long", "long"):
            await client.post(chat(server), json=body(prompt))
    assert [served.n_tokens for served in server.log] == [3, 6, 7]


@pytest.mark.parametrize("preset", [vllm_script, llamacpp_script])
async def test_metrics_agree_with_the_log(preset: Any):
    script = preset(ttft_s=0.001, tpot_s=0.0001, n_tokens=60, speculation=Speculation(4, 0.7, 0.8))
    async with FakeServer(script) as server, httpx.AsyncClient() as client:
        for prompt in "abc":
            await client.post(chat(server), json=body(prompt))
        page = (await client.get(server.url + "/metrics")).text
    counters = read_page(page).spec
    assert counters.drafts == sum(served.counters.drafts for served in server.log) > 0
    assert counters.drafted_tokens == sum(served.counters.drafted_tokens for served in server.log)
    assert counters.accepted_tokens == sum(served.counters.accepted_tokens for served in server.log)
    assert sum(counters.accepted_per_position) == counters.accepted_tokens


async def test_a_baseline_has_no_speculation_metrics():
    async with FakeServer(FAST) as server, httpx.AsyncClient() as client:
        await client.post(chat(server), json=body())
        page = (await client.get(server.url + "/metrics")).text
    assert "spec_decode" not in page
    assert read_page(page).spec is None
    assert 'vllm:generation_tokens_total{engine="0",model_name="fake-model"} 8' in page


async def test_a_reply_that_is_not_streamed():
    async with FakeServer(FAST) as server, httpx.AsyncClient() as client:
        whole = (await client.post(chat(server), json=body(stream=False))).json()
        streamed = (await client.post(chat(server), json=body())).text
    assert whole["choices"][0]["message"]["content"] == content(streamed)
    assert whole["usage"]["completion_tokens"] == 8


async def test_requests_on_one_connection_are_answered_in_order():
    async with FakeServer(FAST) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
        text = (await reader.readuntil(b"}")) + (await reader.readuntil(b"404"))
        assert text.index(b"200 OK") < text.index(b"404")
        writer.close()


def test_in_a_thread():
    with FakeServer(replace(FAST, noise=Noise(token_sigma=0.1))).in_thread() as server:
        assert content(httpx.post(chat(server), json=body()).text)
        port = server.port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_on_the_loop_that_is_fastest():
    async def ask() -> int:
        async with FakeServer(FAST) as server, httpx.AsyncClient() as client:
            return (await client.post(chat(server), json=body())).status_code

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        assert runner.run(ask()) == 200


async def test_memory_of_connections_is_given_back():
    async with FakeServer(FAST, log_size=0) as server, httpx.AsyncClient() as client:
        for _ in range(3):
            await client.post(chat(server), json=body(), headers={"Connection": "close"})
        await client.aclose()
        await asyncio.sleep(0.05)
        gc.collect()
        assert not server._connections
        assert not server.log


def start(*flags: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "breakeven.servers.fake", *flags]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_as_a_process_it_says_where_it_listens_and_ends_with_its_input():
    flags = ("--ttft-ms", "5", "--tpot-ms", "1", "--tokens", "6", "--reasoning", "2", "--spec-k", "2")
    process = start("--exit-with-stdin", "--jitter", "0.1", "--engine", "llamacpp", *flags)
    hello = json.loads(process.stdout.readline())
    assert hello["pid"] == process.pid
    text = httpx.post(hello["url"] + "/v1/chat/completions", json=body()).text
    assert text.count("reasoning_content") == 2
    assert events(text)[-1]["usage"]["completion_tokens"] == 6
    process.stdin.close()
    assert process.wait(10) == 0


def test_as_a_process_it_ends_on_sigterm():
    process = start("--saturate", "--tokens", "2000")
    hello = json.loads(process.stdout.readline())
    assert len(events(httpx.post(hello["url"] + "/v1/chat/completions", json=body()).text)) == 2002
    process.terminate()
    assert process.wait(10) == 0
