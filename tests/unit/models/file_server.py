"""An HTTP server of files for tests: ranges, ETags, redirects, dropped connections, wrong bytes, refusals."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """One path, and how it misbehaves. Lists are used up, one entry per GET."""

    body: bytes = b""
    content_type: str = "application/octet-stream"
    etag: str | None = None
    ranges: bool = True
    drop_after: list[int] = field(default_factory=list)
    """Close the connection after so many bytes of the body."""
    stall_after: int | None = None
    """Send nothing more after so many bytes, until the server is closed."""
    statuses: list[int] = field(default_factory=list)
    redirect: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    needs: str | None = None
    """The Authorization header without which it answers 401."""


@dataclass
class Seen:
    method: str
    path: str
    headers: Message


class FileServer(ThreadingHTTPServer):
    """`paths` may be changed while it runs; `seen` are the requests so far."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.paths: dict[str, Served] = {}
        self.seen: list[Seen] = []
        self.closing = threading.Event()

    def url(self, path: str = "", host: str = "127.0.0.1", user: str = "") -> str:
        return f"http://{user}{'@' if user else ''}{host}:{self.server_address[1]}{path}"


class _Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, body: bool) -> None:
        self.server.seen.append(Seen(self.command, self.path, self.headers))
        served = self.server.paths.get(self.path)
        if served is None:
            return self._head(404, {})
        if served.needs and self.headers["Authorization"] != served.needs:
            return self._head(401, {})
        if body and served.statuses and (status := served.statuses.pop(0)) != 200:
            return self._head(status, {})
        if served.redirect:
            return self._head(302, {"Location": served.redirect, **served.headers})
        return self._file(served, body)

    def _file(self, served: Served, with_body: bool) -> None:
        start = self._start(served)
        rest = served.body[start:]
        headers = {"Content-Type": served.content_type, "Content-Length": str(len(rest)), **served.headers}
        if served.etag:
            headers["ETag"] = served.etag
        if start > len(served.body) or (start and not rest):
            return self._head(416, {"Content-Range": f"bytes */{len(served.body)}"})
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(served.body) - 1}/{len(served.body)}"
        self._head(206 if start else 200, headers, end=False)
        if with_body:
            kept = served.drop_after.pop(0) if served.drop_after else len(rest)
            with contextlib.suppress(ConnectionError):
                self.wfile.write(rest[: min(kept, served.stall_after or kept)])
                if served.stall_after is not None:
                    self.server.closing.wait(30)
        return None

    def _start(self, served: Served) -> int:
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        if not match or not served.ranges or (condition and condition != served.etag):
            return 0
        return int(match[1])

    def _head(self, status: int, headers: dict[str, str], end: bool = True) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": "0"} | headers if end else headers).items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True


@contextlib.contextmanager
def serving() -> Iterator[FileServer]:
    server = FileServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
