"""Mutated replies through HTTP, SSE and event layers: any exception that is not one of ours is a bug.

    python benchmarks/fuzz.py [--inputs 1000000] [--seed 0]

Starts from captured streams of real servers, damages their JSON, their bytes and their framing, cuts them
into random reads, and feeds them to a connection without a socket. Input number i of a seed is always the
same.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import itertools
import random
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import orjson

from breakeven.client import connection
from breakeven.client.assemble import Asked, assemble
from breakeven.client.connection import Connection
from breakeven.client.exchange import Exchange
from breakeven.client.inbox import Inbox
from breakeven.client.stream import ReplyStream
from breakeven.errors import BreakevenError
from breakeven.workload.prompts import Prompt, Request

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
ASKED = Asked(Request(Prompt("p", "c", text="x")), 16, 0, None, 0)
SPLICES = (
    b"\r", b"\n", b"\r\n", b"\n\n", b"data: ", b"data:", b"event: error\n", b": ping\n\n", b"\xef\xbb\xbf",
    b"\xff", b"\x00", b"null", b"{}", b"[]", b'"', b"[DONE]", b"0\r\n\r\n", b"ffffffff\r\n", b"-1", b"NaN",
    b"HTTP/1.1 200 OK\r\n", b"<html>", b'{"error":"x"}', b"\\ud83d", b"1e999", b"9" * 30, b"[" * 200,
    b"<think>", b"</think>",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**31, 2**53, "", "x", "<think>", "</think>", [], {}, [None], [1, 2], [[]],
    {"a": None}, ["x"], {"text": "y", "type": "text"}, {"error": "e"}, "stop", "error", "length", "\ud83d",
    [{"function": {"arguments": {}}}],
)  # fmt: skip
HEADS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
    b"HTTP/1.1 503 Unavailable\r\nContent-Type: application/json\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
)


class Reply:
    """One exchange on a connection without a socket."""

    def __init__(self) -> None:
        self.stream = ReplyStream("http://h/v1/chat/completions")
        self.exchange = Exchange(self.stream)
        self._connection = Connection(cast(Inbox, None))
        self._connection.connection_made(_Socketless())
        self._connection.send(b"", self.exchange)

    def read(self, data: bytes) -> None:
        self._connection.take(time.perf_counter_ns(), data)

    def end(self) -> BaseException | None:
        """Ends the connection and makes the trace. What a bug raised, or None."""
        try:
            self._connection.take(time.perf_counter_ns(), None)
            error = self.exchange.error
            if error is None and self.exchange.settled:
                error = self._closed()
            if error is not None and not isinstance(error, BreakevenError):
                return error
            trace = assemble(ASKED, self.exchange, self.stream.reader, error)
            trace.text.encode(), trace.reasoning.encode(), trace.tool_calls.encode()
        except Exception as bug:
            return bug
        return None

    def _closed(self) -> BreakevenError | None:
        try:
            self.stream.close(self.exchange.read_ns or 0, self.exchange.reads)
        except BreakevenError as error:
            return error
        return None


class _Socketless(asyncio.Transport):
    def write(self, data: object) -> None:
        pass

    def abort(self) -> None:
        pass

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


class Fuzzer:
    """Makes and runs inputs by number."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._events = [_events(path) for path in sorted(GOLDEN.glob("*.sse"))]

    def run_one(self, number: int) -> BaseException | None:
        """What a bug raised on this input, or None."""
        reply = Reply()
        for read in self.reads(number):
            reply.read(read)
        return reply.end()

    def reads(self, number: int) -> list[bytes]:
        rng = random.Random(f"{self._seed}.{number}")
        events = rng.choice(self._events)
        start = rng.randrange(len(events))
        chosen = events[start : start + 1 + rng.randrange(4)] + events[-2:]
        if rng.random() < 0.6:
            chosen[rng.randrange(len(chosen))] = _damaged_json(rng, rng.choice(chosen))
        body = b"".join(b"data: " + event + b"\n\n" for event in chosen)
        if rng.random() < 0.7:
            body = _damaged(rng, body)
        message = _framed(rng, body)
        if rng.random() < 0.3:
            message = _damaged(rng, message)
        return _cut(rng, message)


def _events(path: Path) -> list[bytes]:
    return [part[6:] for part in path.read_bytes().split(b"\n\n") if part.startswith(b"data: ")]


def _damaged_json(rng: random.Random, event: bytes) -> bytes:
    """One to three values, anywhere in the object, replaced or removed."""
    if event == b"[DONE]":
        return b"{}"
    value = orjson.loads(event)
    for _ in range(1 + rng.randrange(3)):
        _replace_somewhere(rng, value)
    try:
        return orjson.dumps(value)
    except (orjson.JSONEncodeError, UnicodeEncodeError):
        return b'{"choices":[{"delta":{"content":"\\ud83d"}}]}'


def _replace_somewhere(rng: random.Random, value: Any) -> None:
    while isinstance(value, (dict, list)) and value:
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        inner = value[key]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.3:
            value[key] = rng.choice(VALUES)
            return
        value = inner


def _damaged(rng: random.Random, text: bytes) -> bytes:
    for _ in range(1 + rng.randrange(3)):
        text = rng.choice(DAMAGES)(rng, text)
    return text


def _flip(rng: random.Random, text: bytes) -> bytes:
    at = rng.randrange(len(text) + 1)
    return text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]


def _splice(rng: random.Random, text: bytes) -> bytes:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(SPLICES) + text[at:]


def _remove(rng: random.Random, text: bytes) -> bytes:
    at = rng.randrange(len(text) + 1)
    return text[:at] + text[at + rng.randrange(1, 60) :]


def _repeat(rng: random.Random, text: bytes) -> bytes:
    at = rng.randrange(len(text) + 1)
    return text[: at + rng.randrange(60)] + text[at:]


def _shorten(rng: random.Random, text: bytes) -> bytes:
    return text[: rng.randrange(len(text) + 1)]


def _line_ends(rng: random.Random, text: bytes) -> bytes:
    return text.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n")))


DAMAGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _flip,
    _splice,
    _remove,
    _repeat,
    _shorten,
    _line_ends,
)


def _framed(rng: random.Random, body: bytes) -> bytes:
    kind = rng.random()
    if kind < 0.4:
        size = rng.randrange(1, 400)
        pieces = (body[i : i + size] for i in range(0, len(body), size))
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    if kind < 0.6:
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    if kind < 0.65:
        return b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(body, 1)
    return rng.choice(HEADS) + body


def _cut(rng: random.Random, text: bytes) -> list[bytes]:
    edges = sorted({0, len(text), *(rng.randrange(len(text) + 1) for _ in range(rng.randrange(6)))})
    return [text[a:b] for a, b in itertools.pairwise(edges)]


async def fuzz(inputs: int, seed: int) -> int:
    """Runs them all; returns how many raised what they must not."""
    fuzzer = Fuzzer(seed)
    connection.DRAIN_S = 0.0
    bugs = 0
    start_s = time.perf_counter()
    for number in range(inputs):
        bug = fuzzer.run_one(number)
        if bug is not None:
            bugs += 1
            print(f"input {number} of seed {seed}:", *traceback.format_exception(bug), file=sys.stderr)
        if number % 1000 == 999:
            await asyncio.sleep(0)
        if number % 100_000 == 99_999:
            print(
                f"{number + 1:,} inputs, {bugs} unhandled exceptions, {time.perf_counter() - start_s:.0f} s"
            )
    took_s = time.perf_counter() - start_s
    print(f"{inputs:,} inputs of seed {seed}: {bugs} unhandled exceptions, {took_s:.0f} s")
    return bugs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.exit(1 if asyncio.run(fuzz(options.inputs, options.seed)) else 0)


if __name__ == "__main__":
    main()
