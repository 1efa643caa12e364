"""A server whose answer to each path a test sets, and changes while it is watched."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Answering:
    """Sent for /metrics; /v1/models lists `model`."""

    body: bytes = b""
    status: int = 200
    delay_s: float = 0.0
    model: str = "some-model"
    url: str = ""
    asked: list[str] = field(default_factory=list)


@contextmanager
def answering(**how: object) -> Iterator[Answering]:
    answer = Answering(**how)  # type: ignore[arg-type]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer.asked.append(self.path)
            if self.path == "/v1/models":
                self._send(200, b'{"data": [{"id": "%s"}]}' % answer.model.encode())
                return
            time.sleep(answer.delay_s)
            self._send(answer.status, answer.body)

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    answer.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield answer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def vllm_page(drafts: int, output_tokens: int = 0, running: float = 1) -> bytes:
    """Of vLLM: one step in two drafts 4 tokens; 3, 2, 1 and none of 4 drafts accept so many."""
    lines = {
        "vllm:num_requests_running": running,
        "vllm:num_requests_waiting": 0,
        "vllm:kv_cache_usage_perc": 0.25,
        "vllm:generation_tokens_total": output_tokens,
        "vllm:time_to_first_token_seconds_count": 0,
        "vllm:inter_token_latency_seconds_sum": drafts * 0.02,
        "vllm:inter_token_latency_seconds_count": 2 * drafts,
        "vllm:spec_decode_num_drafts_total": drafts,
        "vllm:spec_decode_num_draft_tokens_total": 4 * drafts,
        "vllm:spec_decode_num_accepted_tokens_total": 6 * (drafts // 4),
    }
    text = "".join(f'{name}{{engine="0",model_name="m"}} {value}\n' for name, value in lines.items())
    for position, accepting in enumerate((3, 2, 1, 0)):
        labels = f'engine="0",model_name="m",position="{position}"'
        text += (
            f"vllm:spec_decode_num_accepted_tokens_per_pos_total{{{labels}}} {accepting * (drafts // 4)}\n"
        )
    return text.encode()
