"""Replies as bytes, for the raw server."""

from __future__ import annotations

from typing import Any

import orjson

from breakeven.workload.prompts import Prompt, Request, Sampling

SAMPLING = Sampling(max_tokens=16)
ASKED = Request(Prompt("p1", "coding", text="Hello"), repeat=2, block=1)


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more.pop("choice", {})}],
        **more,
    }


def sse(*chunks: Any, done: bool = True) -> bytes:
    """Events: dicts become JSON, bytes stay as they are."""
    texts = [
        c if isinstance(c, bytes) else orjson.dumps(c) for c in (*chunks, *([b"[DONE]"] if done else []))
    ]
    return b"".join(b"data: " + text + b"\n\n" for text in texts)


def http(body: bytes, status: int = 200, content_type: str = "text/event-stream", extra: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
    )
    return head.encode() + body


def chunked_head(extra: str = "") -> bytes:
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    return f"{head}{extra}\r\n".encode()


def framed(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


END = b"0\r\n\r\n"
HELLO = sse(
    chunk({"role": "assistant"}), chunk({"content": "Hello"}), chunk({"content": " you"}), chunk({}, "stop")
)
