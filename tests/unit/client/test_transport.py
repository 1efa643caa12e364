"""Requests over real sockets: what the raw server writes, byte for byte, and what the client makes of it."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
import trustme

from breakeven.client.endpoint import ApiKey, Endpoint
from breakeven.client.fetch import QUICK_TIMEOUTS
from breakeven.client.openai import DEFAULT_TIMEOUTS, AskFor, Timeouts, ask, get_text
from breakeven.client.transport import Pool
from breakeven.errors import ConnectFailed, HttpError, ProtocolError
from breakeven.trace.records import RequestTrace
from breakeven.workload.prompts import Prompt, Request, Sampling
from tests.unit.client.replies import ASKED, END, HELLO, SAMPLING, chunk, chunked_head, framed, http, sse

QUICK = Timeouts(connect_s=5, first_token_s=0.3, idle_s=0.7)


async def asked(
    url: str, pool: Pool | None = None, timeouts: Timeouts = DEFAULT_TIMEOUTS, **endpoint: Any
) -> RequestTrace:
    """One request, on a pool of its own unless one is given."""
    if pool is not None:
        return await ask(pool, Endpoint(url, model="m", **endpoint), ASKED, SAMPLING, timeouts)
    async with Pool() as own:
        return await asked(url, own, timeouts, **endpoint)


def message(trace: RequestTrace) -> str:
    assert trace.error is not None, "no error"
    return f"{trace.error.kind}: {trace.error.message}"


async def test_a_request_says_what_was_asked(raw_server: Any) -> None:
    async with raw_server([http(HELLO)]) as server, Pool() as pool:
        endpoint = Endpoint(
            server.url, model="m", api_key=ApiKey("sk-1"), headers={"X-Org": "o", "user-agent": "mine"}
        )
        sampling = Sampling(
            max_tokens=7, temperature=0.5, top_p=0.9, seed=3, extra={"cache_prompt": True, "seed": None}
        )
        trace = await ask(pool, endpoint, ASKED, sampling, ask_for=AskFor(token_ids=True, spec_details=True))
        assert trace.error is None and trace.max_tokens == 7
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        assert lines[0] == "POST /v1/chat/completions HTTP/1.1"
        assert {
            "Authorization: Bearer sk-1",
            "Accept-Encoding: identity",
            "X-Org: o",
            "user-agent: mine",
        } <= set(lines)
        assert not any(line.startswith("User-Agent") for line in lines)
        assert orjson.loads(body) == {
            "model": "m",
            "messages": [{"role": "user", "content": "Hello"}],
            "max_tokens": 7,
            "temperature": 0.5,
            "top_p": 0.9,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_token_ids": True,
            "return_spec_tokens_details": True,
            "cache_prompt": True,
        }


async def test_completions_and_messages(raw_server: Any) -> None:
    async with raw_server([http(HELLO)]) as server, Pool() as pool:
        plain = Endpoint(server.url, api="completions", model="m")
        await ask(pool, plain, ASKED, SAMPLING)
        assert server.requests[0].startswith(b"POST /v1/completions ")
        assert orjson.loads(server.requests[0].partition(b"\r\n\r\n")[2])["prompt"] == "Hello"
        chat = Request(Prompt("q", "c", messages=({"role": "system", "content": "Be brief."},), max_tokens=3))
        refused = await ask(pool, plain, chat, SAMPLING)
        assert "UsageError" in message(refused) and "--api chat" in message(refused)
        trace = await ask(pool, Endpoint(server.url, model="m"), chat, SAMPLING)
        sent = orjson.loads(server.requests[1].partition(b"\r\n\r\n")[2])
        assert (sent["messages"], sent["max_tokens"], trace.max_tokens) == (
            [{"role": "system", "content": "Be brief."}],
            3,
            3,
        )


@pytest.mark.parametrize("size", [1, 7, 100])
async def test_chunks_may_be_framed_and_cut_anywhere(raw_server: Any, size: int) -> None:
    body = sse(chunk({"content": "Grü"}), chunk({"content": "ße 😀"}), chunk({}, "stop"))
    frames = b"".join(framed(body[i : i + size]) for i in range(0, len(body), size))
    async with raw_server([chunked_head(), frames, END]) as server:
        trace = await asked(server.url)
        assert (trace.text, trace.error) == ("Grüße 😀", None)


async def test_reads_are_stamped_apart_and_bundles_are_known(raw_server: Any) -> None:
    first = framed(sse(chunk({"content": "a"}), chunk({"content": "b"}), done=False))
    rest = framed(sse(chunk({"content": "c"}), chunk({}, "stop")))
    async with raw_server([chunked_head(), 0.05, first, 0.4, rest, END]) as server:
        trace = await asked(server.url)
    a, b, c, end = trace.events
    assert (a.read_ns, a.read_id) == (b.read_ns, b.read_id)
    assert (c.read_ns, c.read_id) == (end.read_ns, end.read_id) and c.read_id > a.read_id
    assert 0.2e9 < c.read_ns - a.read_ns < 4e9
    assert trace.sent_ns < a.read_ns - 0.04e9


@pytest.mark.parametrize(
    "reply",
    [
        [http(HELLO)],
        [http(HELLO, 201)],
        [b"HTTP/1.1 200 OK\r\n\r\n", HELLO, None],
        [b"HTTP/1.0 200 OK\r\n\r\n", HELLO, None],
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", http(HELLO)],
        [http(gzip.compress(HELLO), extra="Content-Encoding: gzip\r\n")],
        [chunked_head("Trailer: X\r\n"), framed(HELLO), b"0\r\nX: y\r\n\r\n"],
        [chunked_head(), b"%x;name=value\r\n%b\r\n" % (len(HELLO), HELLO), END],
    ],
)
async def test_ways_to_send_a_body(raw_server: Any, reply: list[Any]) -> None:
    async with raw_server(reply) as server:
        trace = await asked(server.url)
        assert (trace.error, trace.text, trace.finish_reason) == (None, "Hello you", "stop")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ([b"SSH-2.0-OpenSSH_9.6\r\n"], "ProtocolError.*not HTTP.*SSH"),
        ([b"\x15\x03\x01\x00\x02\x02\x46"], "ProtocolError.*not HTTP"),
        ([http(HELLO, extra="Content-Encoding: br\r\n")], "ProtocolError.*'br'"),
        ([chunked_head(), b"zz\r\n"], "ProtocolError.*in the middle"),
        ([http(b"", 204)], "ProtocolError.*answers 204 without a single chunk"),
        ([http(b'{"status": "queued"}', 202)], "ProtocolError.*no event stream.*queued"),
        ([None], "StreamError.*without a reply"),
        ([chunked_head(), framed(HELLO[:300]), None], "StreamError.*broke off"),
        ([http(HELLO)[:300], None], "StreamError.*broke off"),
        ([http(b"", 302, extra="Location: https://other/\r\n")], "ProtocolError.*https://other/"),
        (
            [b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"],
            "ProtocolError.*switched",
        ),
        ([b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2**21, None], "ProtocolError.*headers"),
    ],
)
async def test_replies_that_are_none(raw_server: Any, reply: list[Any], expected: str) -> None:
    async with raw_server(reply) as server:
        trace = await asked(server.url)
        assert trace.error is not None
        with pytest.raises(AssertionError, match=f"(?s){expected}"):
            raise AssertionError(message(trace))


async def test_what_came_before_a_death_is_kept(raw_server: Any) -> None:
    async with raw_server(
        [chunked_head(), framed(sse(chunk({"content": "Hel"}), done=False)), 0.02, None]
    ) as server:
        trace = await asked(server.url)
        assert (trace.text, len(trace.events)) == ("Hel", 1)
        assert trace.error is not None and trace.end_ns >= trace.events[-1].read_ns


async def test_connections_are_kept_and_fresh_ones_are_timed(raw_server: Any) -> None:
    async with raw_server([http(HELLO)]) as server, Pool() as pool:
        first, second = await asked(server.url, pool), await asked(server.url, pool)
        assert first.connect_ns is not None and first.connect_ns > 0
        assert second.connect_ns is None
        assert server.connections == 1


async def test_a_connection_that_died_while_idle_is_replaced(raw_server: Any) -> None:
    async with raw_server([http(HELLO)], [None], [http(HELLO)]) as server, Pool() as pool:
        assert (await asked(server.url, pool)).error is None
        again = await asked(server.url, pool)
        assert again.error is None and again.connect_ns is not None
        assert (server.connections, len(server.requests)) == (2, 3)


async def test_a_fresh_connection_is_not_retried(raw_server: Any) -> None:
    async with raw_server([None]) as server:
        assert "StreamError" in message(await asked(server.url))
        assert len(server.requests) == 1


async def test_a_connection_closed_by_the_server_is_not_reused(raw_server: Any) -> None:
    closing = http(HELLO, extra="Connection: close\r\n")
    async with raw_server([closing], [http(HELLO)]) as server, Pool() as pool:
        assert [(await asked(server.url, pool)).error for _ in range(2)] == [None, None]
        assert server.connections == 2


async def test_done_ends_the_reply_though_the_message_goes_on(
    raw_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("breakeven.client.connection.DRAIN_S", 0.05)
    async with raw_server([chunked_head(), framed(HELLO), 30.0]) as server:
        trace = await asyncio.wait_for(asked(server.url), 5)
        assert trace.error is None and trace.end_ns == trace.events[-1].read_ns
    async with raw_server([chunked_head(), framed(HELLO), None]) as server:
        assert (await asked(server.url)).error is None


async def test_the_first_token_timeout_runs_past_the_role_chunk(raw_server: Any) -> None:
    role = framed(sse(chunk({"role": "assistant", "content": ""}), done=False))
    async with raw_server([chunked_head(), role, 0.1, role, 0.1, role, 5.0]) as server:
        assert "first token within 0.3 s: raise --first-token-timeout" in message(
            await asked(server.url, None, QUICK)
        )


async def test_the_idle_timeout_counts_from_the_last_read(raw_server: Any) -> None:
    token = framed(sse(chunk({"content": "a"}), done=False))
    async with raw_server([chunked_head(), token, 0.4, token, 0.4, token, 5.0]) as server:
        trace = await asked(server.url, None, QUICK)
        assert "next token within 0.7 s: raise --idle-timeout" in message(trace)
        assert len(trace.events) == 3


async def test_case_17_a_slow_reply_is_not_cut(raw_server: Any) -> None:
    token = framed(sse(chunk({"content": "a"}), done=False))
    pieces = [
        chunked_head(),
        *[piece for _ in range(12) for piece in (0.1, token)],
        framed(sse(chunk({}, "stop"))),
        END,
    ]
    async with raw_server(pieces) as server:
        trace = await asked(server.url, None, Timeouts(connect_s=0.8, first_token_s=0.8, idle_s=0.8))
        assert trace.error is None and len(trace.events) == 13


async def test_the_connect_timeout_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    fillers = []
    for _ in range(4):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(listener.getsockname())
        fillers.append(filler)
    trace = await asked(f"http://127.0.0.1:{listener.getsockname()[1]}", None, Timeouts(connect_s=0.2))
    assert "connection within 0.2 s: raise --connect-timeout" in message(trace)
    for opened in (listener, *fillers):
        opened.close()


async def test_a_dead_server_says_what_to_do() -> None:
    trace = await asked("http://127.0.0.1:1")
    assert message(trace).startswith("ConnectFailed: nothing answers at http://127.0.0.1:1")
    assert "check the URL" in message(trace)
    assert "ConnectFailed" in message(await asked("http://no-such-host.invalid"))


@pytest.mark.parametrize(
    ("status", "body", "advice"),
    [
        (401, {"error": {"message": "Wrong key sk-secret"}}, r"Wrong key \[API key\].*--api-key-env"),
        (403, {"detail": "Forbidden"}, "Forbidden.*--api-key-file"),
        (429, {"error": "slow down"}, "slow down.*--rate"),
        (500, {"message": "boom"}, "boom.*server's log"),
        (503, {"error": {"message": "Loading model"}}, "Loading model.*wait"),
        (400, {"error": {"message": "Unknown field stream_options"}}, "--extra stream_options=null"),
        (422, {"detail": [{"loc": ["body", "seed"], "msg": "extra seed"}]}, "--extra seed=null"),
        (400, {"message": "max_tokens=9 cannot be greater than max_model_len=8"}, "lower --max-tokens"),
        (413, {}, "too large"),
        (418, {"error": {}}, "check the URL"),
    ],
)
async def test_http_errors_say_what_to_type(raw_server: Any, status: int, body: Any, advice: str) -> None:
    async with raw_server([http(orjson.dumps(body), status, "application/json")]) as server:
        trace = await asked(server.url, api_key=ApiKey("sk-secret"))
        assert trace.error is not None and trace.error.status == status and trace.error.kind == "HttpError"
        assert "sk-secret" not in trace.error.message
        with pytest.raises(AssertionError, match=advice):
            raise AssertionError(trace.error.message)


async def test_a_404_lists_the_models_there_are(raw_server: Any) -> None:
    missing = http(b'{"error": {"message": "no model m"}}', 404, "application/json")
    models = http(b'{"data": [{"id": "llama"}, {"id": "qwen"}]}', 200, "application/json")
    async with raw_server([missing], [models]) as server:
        assert "type --model with one of llama, qwen" in message(await asked(server.url))
    ours = http(b'{"data": [{"id": "m"}]}', 200, "application/json")
    async with raw_server([missing], [ours]) as server:
        assert "try --api completions" in message(await asked(server.url))
    async with raw_server([missing]) as server:
        assert "check the URL and --model" in message(await asked(server.url))


async def test_an_html_error_page_is_told_by_its_title(raw_server: Any) -> None:
    page = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
    async with raw_server([http(page, 502, "text/html")]) as server:
        assert "HTTP 502: 502 Bad Gateway" in message(await asked(server.url))


async def test_a_prompt_of_megabytes_and_a_reply_of_megabytes(raw_server: Any) -> None:
    text = "x" * 4_000_000
    many = sse(*[chunk({"content": "y" * 100})] * 40_000, chunk({}, "stop"))
    async with raw_server([http(many)]) as server, Pool() as pool:
        request = Request(Prompt("big", "c", text=text))
        start_s = time.perf_counter()
        trace = await ask(pool, Endpoint(server.url, model="m"), request, Sampling(max_tokens=40_000))
        assert trace.error is None
        assert len(trace.text) == 4_000_000
        assert text.encode() in server.requests[0]
        assert trace.sent_ns < trace.events[0].read_ns
        assert time.perf_counter() - start_s < 30


async def test_an_answer_before_the_request_is_written_is_read(raw_server: Any) -> None:
    """A server may refuse a large body unread."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(http(b'{"error": "too long"}', 413, "application/json"))
        await writer.drain()
        await asyncio.sleep(0.2)
        writer.close()

    listener = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with listener, Pool() as pool:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        request = Request(Prompt("big", "c", text="x" * 20_000_000))
        trace = await ask(pool, Endpoint(url, model="m"), request, SAMPLING)
        assert "HTTP 413: too long" in message(trace)


async def test_a_cancelled_request_drops_its_connection(raw_server: Any) -> None:
    async with (
        raw_server([chunked_head(), framed(HELLO[:100]), 30.0], [http(HELLO)]) as server,
        Pool() as pool,
    ):
        task = asyncio.create_task(asked(server.url, pool))
        while not server.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await asked(server.url, pool)).connect_ns is not None


async def test_get_text(raw_server: Any) -> None:
    async with (
        raw_server([http(b"up 1\n", 200, "text/plain")], [http(b"{}", 404, "application/json")]) as server,
        Pool() as pool,
    ):
        endpoint = Endpoint(server.url)
        assert await get_text(pool, endpoint, "/metrics") == "up 1\n"
        assert server.requests[0].startswith(b"GET /metrics HTTP/1.1\r\n")
        with pytest.raises(HttpError):
            await get_text(pool, endpoint, "/version")
    async with raw_server([5.0]) as silent, Pool() as pool:
        with pytest.raises(ConnectFailed, match="does not answer"):
            await get_text(pool, Endpoint(silent.url), "/metrics", QUICK)


async def test_a_document_without_end_is_given_up(raw_server: Any) -> None:
    drip = [b"HTTP/1.1 200 OK\r\n\r\n", *([b"x", 0.05] * 200)]
    async with raw_server(drip) as server, Pool() as pool:
        with pytest.raises(ConnectFailed, match="did not come to an end within"):
            await get_text(pool, Endpoint(server.url), "/metrics", Timeouts(1.0, 0.5, 5))


def test_what_a_server_need_not_tell_is_waited_for_some_seconds() -> None:
    assert QUICK_TIMEOUTS.connect_s + QUICK_TIMEOUTS.first_token_s <= 10


@pytest.mark.parametrize(
    "reply",
    [
        sse({"error": {"message": "wrong key s3same"}}, done=False),
        sse(b"s3same", done=False),
        b'{"error": "wrong key s3same"}',
        b"<html><title>s3same</title>",
    ],
)
async def test_a_key_that_a_server_quotes_is_not_kept(raw_server: Any, reply: bytes) -> None:
    """In whatever kind of error."""
    keyed = {"api_key": ApiKey("s3same"), "model": "m"}
    moved = http(b"", 302, extra="Location: https://other/?key=s3same\r\n")
    async with raw_server([http(reply)], [moved]) as server, Pool() as pool:
        for _ in range(2):
            trace = await ask(pool, Endpoint(server.url, **keyed), ASKED, SAMPLING)
            assert trace.error is not None and "[API key]" in trace.error.message
            assert "s3same" not in repr(trace)
        with pytest.raises(ProtocolError, match=r"\[API key\]"):
            await get_text(pool, Endpoint(server.url, **keyed), "/metrics")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server_tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "example.test").configure_cert(context)
    return context


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


async def test_tls(raw_server: Any, server_tls: ssl.SSLContext, ca_file: Path) -> None:
    async with raw_server([http(HELLO)], ssl=server_tls) as server, Pool() as pool:
        traces = [await asked(server.url, pool, ca_file=ca_file) for _ in range(3)]
        assert [trace.text for trace in traces] == ["Hello you"] * 3
        assert all(trace.sent_ns < trace.events[0].read_ns for trace in traces)
        assert server.connections == 1
        assert (await asked(server.url, pool, verify_tls=False)).error is None
        refused = await asked(server.url, pool)
        assert "ConnectFailed" in message(refused) and "--ca-file FILE, or --insecure" in message(refused)


async def test_tls_with_a_large_prompt(raw_server: Any, server_tls: ssl.SSLContext, ca_file: Path) -> None:
    async with raw_server([http(HELLO)], ssl=server_tls) as server, Pool() as pool:
        request = Request(Prompt("big", "c", text="x" * 4_000_000))
        endpoint = Endpoint(server.url, model="m", ca_file=ca_file)
        trace = await ask(pool, endpoint, request, SAMPLING)
        assert trace.error is None and trace.sent_ns < trace.events[0].read_ns


async def test_tls_where_none_is_spoken_and_a_missing_ca_file(tmp_path: Path) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listener:
        trace = await asked(f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
        assert "no TLS" in message(trace) and "http://" in message(trace)
    assert "--ca-file" in message(await asked("https://127.0.0.1:1", ca_file=tmp_path / "absent.pem"))


def use_proxy(monkeypatch: pytest.MonkeyPatch, scheme: str, url: str) -> None:
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(f"{scheme}_proxy", url)


async def test_plain_http_through_a_proxy(raw_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_server([http(HELLO)]) as proxy:
        use_proxy(monkeypatch, "http", proxy.url.replace("//", "//me:pw@"))
        trace = await asked("http://example.test:8000")
        assert trace.text == "Hello you"
        head = proxy.requests[0].decode()
        assert head.startswith(
            "POST http://example.test:8000/v1/chat/completions HTTP/1.1\r\nHost: example.test:8000\r\n"
        )
        assert "Proxy-Authorization: Basic bWU6cHc=" in head


async def test_https_through_a_tunnel(
    raw_server: Any, server_tls: ssl.SSLContext, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[bytes] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said.append(await reader.readuntil(b"\r\n\r\n"))
        port = int(server.url.rsplit(":", 1)[1])
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))

    async with raw_server([http(HELLO)], ssl=server_tls) as server, Pool() as pool:
        listener = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        use_proxy(monkeypatch, "https", f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
        traces = [await asked("https://example.test", pool, ca_file=ca_file) for _ in range(2)]
        assert [trace.text for trace in traces] == ["Hello you"] * 2
        assert [head.split(b"\r\n")[0] for head in said] == [b"CONNECT example.test:443 HTTP/1.1"]
        pool.close()
        listener.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "user and password"),
        (None, "refused the tunnel"),
    ],
)
async def test_a_tunnel_that_is_refused(
    raw_server: Any, monkeypatch: pytest.MonkeyPatch, reply: bytes | None, expected: str
) -> None:
    async with raw_server([reply]) as proxy:
        use_proxy(monkeypatch, "https", proxy.url)
        assert expected in message(await asked("https://example.test"))
