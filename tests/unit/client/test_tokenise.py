"""Token ids from llama.cpp's own tokenizer, against a server that does what its endpoints do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from breakeven.client.endpoint import Endpoint
from breakeven.client.pool import Pool
from breakeven.client.tokenise import MADE_BY, keep_tokens, limit_of
from breakeven.trace.journal import RunWriter
from breakeven.trace.records import RequestError, RequestTrace
from breakeven.trace.run import Run, ServerInfo, load_run
from breakeven.trace.tokens import RunTokens, load_tokens
from breakeven.workload.prompts import Sampling
from tests.unit.trace import builders

END = "<end>"
END_ID = 2
SPACE = 32


def bytewise(text: str) -> list[int]:
    """A token per character, and the special one."""
    return [END_ID] if text == END else [ord(character) for character in text]


def with_space(text: str) -> list[int]:
    """As SentencePiece vocabularies have it: a space goes before every text."""
    return [END_ID] if text == END else [SPACE, *bytewise(text)]


@dataclass
class LlamaServer:
    """The three endpoints that are asked. `broken` maps a path to the status and body that it answers."""

    tokenise: Callable[[str], list[int]] = bytewise
    broken: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    delay_s: float = 0.0
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def answer(self, path: str, body: Any) -> tuple[int, bytes]:
        if path in self.broken:
            return self.broken[path]
        if path == "/props":
            return 200, json.dumps({"eos_token": END}).encode()
        if path == "/apply-template":
            asked = "".join(f"<{message['role']}>{message['content']}" for message in body["messages"])
            return 200, json.dumps({"prompt": asked}).encode()
        start = [1] if body["add_special"] else []
        return 200, json.dumps({"tokens": start + self.tokenise(body["content"])}).encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = [line for line in head.lower().splitlines() if line.startswith("content-length")]
                body = await reader.readexactly(int(length[0].split(":")[1])) if length else b"null"
                path = head.split()[1]
                self.asked.append((path, json.loads(body)))
                await asyncio.sleep(self.delay_s)
                status, answer = self.answer(path, json.loads(body))
                writer.write(
                    f"HTTP/1.1 {status} X\r\nContent-Length: {len(answer)}\r\n\r\n".encode() + answer
                )
        except asyncio.IncompleteReadError:
            writer.close()

    def texts(self) -> list[str]:
        return [body["content"] for path, body in self.asked if path == "/tokenize"]


@asynccontextmanager
async def running(server: LlamaServer) -> AsyncIterator[str]:
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()


def reply(number: int, text: str, tokens: int, **changes: Any) -> RequestTrace:
    usage = {"completion_tokens": tokens}
    return replace(builders.trace(number, text=text), usage=usage, finish_reason="length", **changes)


def a_run(folder: Path, *traces: RequestTrace, **changes: Any) -> Run:
    writer = RunWriter.create(folder, builders.meta(**changes), builders.PROMPTS)
    for trace in traces:
        writer.append(trace)
    writer.finish(writer.meta)
    return load_run(folder)


async def keep(server: LlamaServer, run: Run, limit_s: float | None = 5.0) -> RunTokens | None:
    async with running(server) as url, Pool() as pool:
        await keep_tokens(pool, Endpoint(url, run.meta.api, "m"), run, limit_s)
    return load_tokens(run.path)


async def test_prompt_and_reply_are_tokenised_as_the_server_does(tmp_path: Path):
    server = LlamaServer()
    tokens = await keep(server, a_run(tmp_path / "r", reply(0, "hello", 5)))
    assert tokens is not None and tokens.header.made_by == MADE_BY and tokens.header.incomplete is None
    made = tokens.get("p#0")
    assert made is not None
    assert made.prompt.tolist() == [1, *bytewise("<user>Grüße 🦜")]
    assert made.output.tolist() == bytewise("hello")
    assert (made.reasoning_tokens, made.counts_match) == (0, True)
    assert all(body["parse_special"] is True for path, body in server.asked if path == "/tokenize")


async def test_the_template_sees_what_was_asked(tmp_path: Path):
    server = LlamaServer()
    sampling = Sampling(extra={"chat_template_kwargs": {"enable_thinking": False}})
    await keep(server, a_run(tmp_path / "r", reply(0, "a", 1), sampling=sampling))
    body = next(body for path, body in server.asked if path == "/apply-template")
    assert body["messages"] == [{"role": "user", "content": "Grüße 🦜"}]
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


async def test_a_raw_completion_has_no_template(tmp_path: Path):
    server = LlamaServer()
    asked = reply(0, "a", 1, prompt_id="q")
    tokens = await keep(server, a_run(tmp_path / "r", replace(asked, id="q#0"), api="completions"))
    made = tokens and tokens.get("q#0")
    assert made and made.prompt.tolist() == [1, *bytewise("def f(")]
    assert "/apply-template" not in [path for path, _ in server.asked]


async def test_no_space_is_put_before_a_reply(tmp_path: Path):
    tokens = await keep(LlamaServer(with_space), a_run(tmp_path / "r", reply(0, "hello", 5)))
    made = tokens and tokens.get("p#0")
    assert made and made.output.tolist() == bytewise("hello") and made.counts_match


async def test_each_text_is_sent_once(tmp_path: Path):
    server = LlamaServer()
    tokens = await keep(server, a_run(tmp_path / "r", *(reply(i, "same", 4) for i in range(5))))
    assert tokens is not None and len(tokens) == 5
    assert sorted(server.texts()) == sorted(["\n", "<user>Grüße 🦜", "same"])


async def test_reasoning_comes_first(tmp_path: Path):
    tokens = await keep(LlamaServer(), a_run(tmp_path / "r", reply(0, "answer", 8, reasoning="hm")))
    made = tokens and tokens.get("p#0")
    assert made and made.output.tolist() == bytewise("hmanswer") and made.reasoning_tokens == 2


@pytest.mark.parametrize(
    ("finish_reason", "counted", "expected", "matches"),
    [
        ("stop", 6, [*bytewise("hello"), END_ID], True),
        ("stop", 5, bytewise("hello"), True),
        ("stop", 7, bytewise("hello"), False),
        ("length", 6, bytewise("hello"), False),
        ("stop", None, bytewise("hello"), None),
    ],
)
async def test_the_end_of_sequence_token(
    finish_reason: str, counted: int | None, expected: list[int], matches: bool | None, tmp_path: Path
):
    trace = replace(reply(0, "hello", 0), finish_reason=finish_reason, usage={"completion_tokens": counted})
    tokens = await keep(LlamaServer(), a_run(tmp_path / "r", trace))
    made = tokens and tokens.get("p#0")
    assert made and made.output.tolist() == expected and made.counts_match is matches


@pytest.mark.parametrize("props", [(404, b""), (200, b"[]"), (200, b"{}"), (200, b"x")])
async def test_an_end_that_is_not_told_is_left_out(props: tuple[int, bytes], tmp_path: Path):
    trace = replace(reply(0, "hello", 6), finish_reason="stop")
    tokens = await keep(LlamaServer(broken={"/props": props}), a_run(tmp_path / "r", trace))
    made = tokens and tokens.get("p#0")
    assert made and made.output.tolist() == bytewise("hello") and made.counts_match is False


async def test_a_prompt_of_another_length_than_counted_is_marked(tmp_path: Path):
    trace = replace(reply(0, "a", 1), usage={"completion_tokens": 1, "prompt_tokens": 3})
    tokens = await keep(LlamaServer(), a_run(tmp_path / "r", trace))
    made = tokens and tokens.get("p#0")
    assert made and made.counts_match is False


@pytest.mark.parametrize("path", ["/apply-template", "/tokenize"])
@pytest.mark.parametrize(
    "answer", [(404, b""), (500, b"{}"), (200, b"x"), (200, b"{}"), (200, b'{"tokens": 7}')]
)
async def test_a_refusal_is_said_and_never_raised(path: str, answer: tuple[int, bytes], tmp_path: Path):
    tokens = await keep(LlamaServer(broken={path: answer}), a_run(tmp_path / "r", reply(0, "a", 1)))
    assert tokens is not None and len(tokens) == 0 and tokens.header.incomplete


async def test_what_the_time_allows_is_kept(tmp_path: Path):
    run = a_run(tmp_path / "r", *(reply(i, f"text {i}", 6) for i in range(20)))
    tokens = await keep(LlamaServer(delay_s=0.04), run, limit_s=0.3)
    assert tokens is not None and 1 <= len(tokens) < 20
    assert tokens.header.incomplete is not None and "longer than 0.3 s" in tokens.header.incomplete


@pytest.mark.parametrize(("texts", "seconds"), [(0, 5), (1, 5.05), (200, 15), (1100, 60), (10**9, 60)])
def test_more_texts_have_more_time_but_not_for_ever(texts: int, seconds: float):
    assert limit_of(texts) == pytest.approx(seconds)


async def test_the_time_is_that_of_the_texts_that_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []
    monkeypatch.setattr("breakeven.client.tokenise.limit_of", lambda texts: asked.append(texts) or 5.0)
    replies = [reply(i, "same", 4, reasoning="hm") for i in range(5)]
    failed = replace(reply(5, "half", 4), error=RequestError("TimedOut", "too slow"))
    server = LlamaServer()
    run = a_run(tmp_path / "r", *replies, reply(6, "other", 5), failed)
    tokens = await keep(server, run, limit_s=None)
    assert tokens is not None and len(tokens) == 6
    assert asked == [4] and len(set(server.texts()) - {"\n"}) == 4


async def test_a_server_that_is_gone(tmp_path: Path):
    run = a_run(tmp_path / "r", reply(0, "a", 1))
    async with Pool() as pool:
        await keep_tokens(pool, Endpoint("http://127.0.0.1:9", "chat", "m"), run)
    tokens = load_tokens(run.path)
    assert tokens is not None and tokens.header.incomplete


async def test_failed_requests_are_not_asked_for(tmp_path: Path):
    failed = replace(reply(1, "half", 4), error=RequestError("TimedOut", "too slow"))
    tokens = await keep(LlamaServer(), a_run(tmp_path / "r", reply(0, "a", 1), failed))
    assert tokens is not None and tokens.get("p#1") is None and tokens.get("p#0") is not None


async def test_other_engines_and_recorded_ids_leave_no_file(tmp_path: Path):
    other = a_run(tmp_path / "vllm", reply(0, "a", 1), server=ServerInfo("vllm"))
    recorded = a_run(tmp_path / "ids", reply(0, "a", 1, output_token_ids=(5,)))
    failed = replace(reply(0, "", 0), error=RequestError("TimedOut", "too slow"))
    for run in (other, recorded, a_run(tmp_path / "failed", failed)):
        server = LlamaServer()
        assert await keep(server, run) is None
        assert server.asked == []


async def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("breakeven.trace.tokens.write_atomically", full)
    assert await keep(LlamaServer(), a_run(tmp_path / "r", reply(0, "a", 1))) is None
