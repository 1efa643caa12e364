"""FakeServer: an OpenAI-compatible server that follows a script, to the millisecond, and knows the truth."""

from __future__ import annotations

import asyncio
import hmac
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Self

import orjson

from breakeven.servers.fake.bodies import error, parsed, problem
from breakeven.servers.fake.chunks import CREATED
from breakeven.servers.fake.connection import Connection, HttpRequest
from breakeven.servers.fake.metrics import Totals, llamacpp_metrics, vllm_metrics
from breakeven.servers.fake.pacer import Pacer
from breakeven.servers.fake.plan import plan
from breakeven.servers.fake.reply import Reply, resolve
from breakeven.servers.fake.script import Answer, Dialect, Script
from breakeven.servers.fake.stream import Outcome, Served, Stream, reset
from breakeven.servers.fake.timeline import Drift, Timeline, timeline

Director = Callable[[dict[str, Any], int], Script]
"""Chooses a script from the request's body and its number, from 0."""

_CHAT_PATH = "/v1/chat/completions"
_TEXT_PATH = "/v1/completions"


@dataclass(frozen=True, slots=True)
class _Job:
    """A request that waits for a slot, or has one."""

    connection: Connection
    index: int
    body: dict[str, Any]
    script: Script
    reply: Reply
    received_ns: int


class FakeServer:
    """`async with FakeServer(script) as server: … server.url …`; see `in_thread` for code that is not async.

    script: what every reply does, or a function that chooses by request body and number.
    slots: requests decoded at once; the others wait in order. None is no limit.
    models: ids that exist; others answer 404. None lists `fake-model` and takes any name.
    burst: writes that one stream may merge when several are overdue.
    log_size: records kept in `log`; None keeps all.
    """

    def __init__(
        self,
        script: Script | Director | None = None,
        *,
        slots: int | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        models: tuple[str, ...] | None = None,
        api_key: str | None = None,
        tls: ssl.SSLContext | None = None,
        dialect: Dialect | None = None,
        burst: int = 64,
        log_size: int | None = None,
    ) -> None:
        fixed = script if isinstance(script, Script) else Script()
        self._direct: Director = script if callable(script) else lambda _body, _index: fixed
        self._dialect = dialect or fixed.dialect
        self._slots = slots
        self._host = host
        self._tls = tls
        self._models = models
        self._api_key = api_key
        self._burst = burst
        self.port = port
        self.log: deque[Served] = deque(maxlen=log_size)
        """The truth about each request that is over, in the order of their ends."""
        self.totals = Totals()
        self.requests = 0
        """Generation requests that came, whatever became of them."""
        self._waiting: deque[_Job] = deque()
        self._connections: set[Connection] = set()
        self._connection_count = 0
        self._drifts: dict[object, Drift] = {}
        self._born_ns = 0

    @property
    def url(self) -> str:
        """Base address without a path: `http://127.0.0.1:41234`."""
        return f"{'https' if self._tls else 'http'}://{self._host}:{self.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; port 0 takes a free one."""
        loop = asyncio.get_running_loop()
        self._born_ns = perf_counter_ns()
        self._pacer = Pacer(loop)
        self._listener = await loop.create_server(
            self._connect, self._host, self.port, ssl=self._tls, backlog=1024
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and every connection. Replies under way break off."""
        self._listener.close()
        self._waiting.clear()
        for connection in list(self._connections):
            if connection.transport is not None:
                connection.transport.abort()
        self._pacer.close()
        await asyncio.sleep(0)

    @contextmanager
    def in_thread(self) -> Iterator[Self]:
        """Run on an event loop in a thread of its own: `with FakeServer(script).in_thread() as server: …`."""
        loop = new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="fake-server", daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.start(), loop).result()
            try:
                yield self
            finally:
                asyncio.run_coroutine_threadsafe(self.stop(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _connect(self) -> Connection:
        connection = Connection(self._connection_count, self._handle)
        connection.on_resume = self._resume
        connection.on_lost = self._connections.discard
        self._connections.add(connection)
        self._connection_count += 1
        return connection

    def _resume(self, stream: Stream) -> None:
        if stream.waiting:
            stream.waiting = False
            self._pacer.add(perf_counter_ns(), stream.advance)

    def _handle(self, connection: Connection, request: HttpRequest) -> None:
        received_ns = perf_counter_ns()
        if not self._allowed(request):
            connection.answer(error(401, "Invalid API key."))
        elif request.method == "POST" and request.path in (_CHAT_PATH, _TEXT_PATH):
            self._generate(connection, request, received_ns)
        elif request.method == "GET" and (answer := self._page(request.path)) is not None:
            connection.answer(answer)
        else:
            connection.answer(error(404, f"Not Found: {request.method} {request.path}"))

    def _allowed(self, request: HttpRequest) -> bool:
        if self._api_key is None or request.path == "/health":
            return True
        given = request.headers.get("authorization", "").encode()
        return hmac.compare_digest(given, f"Bearer {self._api_key}".encode())

    def _page(self, path: str) -> Answer | None:
        if path == "/health":
            return Answer(200, b"{}")
        if path == "/v1/models":
            names = self._models or ("fake-model",)
            card = {"object": "model", "created": CREATED, "owned_by": self._dialect.name}
            cards = [{"id": name, **card} for name in names]
            return Answer(200, orjson.dumps({"object": "list", "data": cards}))
        if path == "/metrics":
            return Answer(200, self._metrics().encode(), "text/plain; version=0.0.4; charset=utf-8")
        return None

    def _metrics(self) -> str:
        self.totals.waiting = len(self._waiting)
        if self._dialect.name == "llamacpp":
            return llamacpp_metrics(self.totals)
        return vllm_metrics(self.totals, (self._models or ("fake-model",))[0])

    def _generate(self, connection: Connection, request: HttpRequest, received_ns: int) -> None:
        index = self.requests
        self.requests += 1
        body = parsed(request.body)
        if body is None:
            connection.answer(error(400, "The body is not a JSON object."))
            return
        if (refusal := problem(body)) is not None:
            connection.answer(refusal)
            return
        model = str(body.get("model") or (self._models or ("fake-model",))[0])
        if self._models is not None and model not in self._models:
            connection.answer(error(404, f"The model `{model}` does not exist."))
            return
        script = self._direct(body, index)
        if script.answer is not None:
            self._say(connection, script.answer)
            return
        reply = resolve(script, body, chat=request.path == _CHAT_PATH, index=index, model=model)
        self._waiting.append(_Job(connection, index, body, script, reply, received_ns))
        self._admit()

    def _say(self, connection: Connection, answer: Answer) -> None:
        if answer.delay_s:
            asyncio.get_running_loop().call_later(answer.delay_s, connection.answer, answer)
        else:
            connection.answer(answer)

    def _admit(self) -> None:
        """Start what waits, as far as there are slots."""
        while self._waiting and (self._slots is None or self.totals.running < self._slots):
            job = self._waiting.popleft()
            if job.connection.transport is not None:
                self._begin(job)

    def _begin(self, job: _Job) -> None:
        start_ns = perf_counter_ns()
        if job.script.die_at == -1:
            _break(job.connection, job.script)
            return
        times = self._times(job, start_ns)
        writes, due_ns, ending = plan(job.reply, times, streamed=bool(job.body.get("stream")))

        def on_end(stream: Stream, outcome: Outcome) -> None:
            self._end(job, times, stream, start_ns, outcome)

        outcome: Outcome = "served" if job.script.die_at is None else "died"
        stream = Stream(
            job.connection, writes, due_ns, job.index, start_ns, ending, outcome, self._burst, on_end
        )
        job.connection.stream = stream
        self.totals.running += 1
        self._pacer.add(stream.first_due_ns, stream.advance)

    def _times(self, job: _Job, start_ns: int) -> Timeline:
        noise = job.script.noise
        drift = None
        if noise is not None:
            drift = self._drifts.setdefault(noise, Drift(noise))
        age_s = (start_ns - self._born_ns) / 1e9
        return timeline(job.script, job.reply.n_tokens, job.reply.key, job.index, age_s, drift)

    def _end(self, job: _Job, times: Timeline, stream: Stream, start_ns: int, outcome: Outcome) -> None:
        served = Served(
            index=job.index,
            connection=job.connection.number,
            body=job.body,
            received_ns=job.received_ns,
            start_ns=start_ns,
            n_tokens=job.reply.n_tokens,
            finish_reason=job.reply.finish_reason,
            stream=stream,
            counters=times.counters,
            outcome=outcome,
        )
        self.log.append(served)
        self.totals.running -= 1
        self.totals.add(served, job.reply, times)
        job.connection.free()
        self._admit()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, if it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _break(connection: Connection, script: Script) -> None:
    if connection.transport is None:
        return
    if script.die_how == "reset":
        reset(connection.transport)
    else:
        connection.transport.close()
