"""RunWriter: what survives a crash, a full disk, a second writer, and a resume."""

import json
import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from breakeven.errors import RunFormatError, StorageError
from breakeven.trace.disk import JOURNAL, META, REQUESTS
from breakeven.trace.files import write_atomically
from breakeven.trace.journal import RunWriter
from breakeven.trace.meta import ServerInfo
from breakeven.trace.records import RequestError
from breakeven.trace.run import load_run
from tests.unit.trace.builders import PROMPTS, meta, trace

FAILED = RequestError("StreamError", "broke off")


def started(folder, *traces):
    writer = RunWriter.create(folder, meta(), PROMPTS)
    for one in traces:
        writer.append(one)
    return writer


def test_finish_leaves_parquet_and_no_journal(tmp_path):
    writer = started(tmp_path / "run", trace(1), trace(2))
    assert sorted(p.name for p in writer.path.iterdir()) == ["journal.jsonl", "prompts.jsonl", "run.json"]
    writer.finish(replace(meta(), status="complete", elapsed_s=1.5))
    assert sorted(p.name for p in writer.path.iterdir()) == ["prompts.jsonl", "requests.parquet", "run.json"]
    run = load_run(writer.path)
    assert (run.meta.status, run.meta.elapsed_s, len(run)) == ("complete", 1.5, 2)
    assert run.prompts() == PROMPTS


def test_a_run_that_finishes_while_it_is_read_is_read(tmp_path):
    writer = started(tmp_path / "run", trace(1), trace(2))
    early = load_run(writer.path)
    writer.finish(replace(meta(), status="complete"))
    assert [t.id for t in early.traces()] == [t.id for t in load_run(writer.path).traces()] == ["p#1", "p#2"]


def test_resume_after_a_kill_keeps_every_finished_request(tmp_path):
    script = f"""
import sys, os, signal
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.unit.trace.builders import PROMPTS, meta, trace
from breakeven.trace.journal import RunWriter
writer = RunWriter.create({str(tmp_path / "run")!r}, meta(), PROMPTS)
for number in range(3):
    writer.append(trace(number))
os.write(writer._journal._descriptor, b'{{"id": "p#3", "torn')
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert [t.id for t in load_run(tmp_path / "run").traces()] == ["p#0", "p#1", "p#2"]
    writer, done = RunWriter.resume(tmp_path / "run")
    assert done == {"p#0", "p#1", "p#2"}
    assert writer.last_ns == trace(2).end_ns
    writer.append(trace(3))
    writer.finish(meta())
    assert list(load_run(tmp_path / "run").traces()) == [trace(number) for number in range(4)]


def test_failed_requests_are_asked_again_and_the_last_line_wins(tmp_path):
    started(tmp_path / "run", trace(1), trace(2, FAILED), trace(3, FAILED)).pause(
        replace(meta(), status="interrupted")
    )
    assert load_run(tmp_path / "run").meta.status == "interrupted"
    for _ in range(2):
        writer, done = RunWriter.resume(tmp_path / "run")
        assert done == {"p#1"}
        writer.append(trace(2, FAILED))
        writer.pause(writer.meta)
    writer, _ = RunWriter.resume(tmp_path / "run")
    writer.append(trace(2))
    unfinished = load_run(tmp_path / "run")
    expected = [trace(1), trace(3, FAILED), trace(2)]
    assert list(unfinished.traces()) == expected
    assert len(unfinished) == 3
    writer.finish(writer.meta)
    assert list(load_run(tmp_path / "run").traces()) == expected


def test_a_finished_run_can_be_resumed(tmp_path):
    started(tmp_path / "run", trace(1), trace(2, FAILED)).finish(meta())
    writer, done = RunWriter.resume(tmp_path / "run")
    assert done == {"p#1"}
    assert (tmp_path / "run" / REQUESTS).exists()
    writer.append(trace(2))
    writer.finish(meta())
    assert list(load_run(tmp_path / "run").traces()) == [trace(1), trace(2)]


def test_two_writers_cannot_hold_one_folder(tmp_path):
    writer = started(tmp_path / "run", trace(1))
    with pytest.raises(RunFormatError, match="being written by another process"):
        RunWriter.resume(tmp_path / "run")
    writer.append(trace(2))
    writer.finish(meta())


def test_a_folder_that_is_taken(tmp_path):
    started(tmp_path / "run").finish(meta())
    (tmp_path / "run-2").mkdir()
    with pytest.raises(RunFormatError, match=r"--resume .*run  to go on.*run-3"):
        RunWriter.create(tmp_path / "run", meta(), PROMPTS)
    (tmp_path / "run-2" / "photo.jpg").write_bytes(b"x")
    with pytest.raises(RunFormatError, match=r"holds no run: type  --out .*run-2-2"):
        RunWriter.create(tmp_path / "run-2", meta(), PROMPTS)
    assert (tmp_path / "run-2" / "photo.jpg").read_bytes() == b"x"


def test_an_empty_folder_is_fine_and_a_file_is_not(tmp_path):
    (tmp_path / "run").mkdir()
    started(tmp_path / "run").finish(meta())
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(StorageError, match=r"choose another folder with --out$"):
            RunWriter.create(path, meta(), PROMPTS)


def test_resume_refuses_changed_prompts_and_no_run(tmp_path):
    started(tmp_path / "run").pause(meta())
    (tmp_path / "run" / "prompts.jsonl").write_text('{"id": "p", "category": "c", "prompt": "other"}\n')
    with pytest.raises(RunFormatError, match="was changed since the run began"):
        RunWriter.resume(tmp_path / "run")
    with pytest.raises(RunFormatError, match="leave --resume out"):
        RunWriter.resume(tmp_path / "nothing")


def test_a_file_that_cannot_grow_leaves_whole_lines(tmp_path):
    """RLIMIT_FSIZE stands in for a full disk: the kernel writes a part of the line, then refuses."""
    writer = started(tmp_path / "run", trace(1))
    journal = tmp_path / "run" / JOURNAL
    before = journal.read_bytes()
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, hard))
    try:
        with pytest.raises(StorageError, match=r"run: the file may not grow further"):
            writer.append(trace(2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert journal.read_bytes() == before
    writer.append(trace(3))
    writer.finish(meta())
    assert list(load_run(tmp_path / "run").traces()) == [trace(1), trace(3)]


def test_no_room_for_the_parquet_keeps_the_journal(tmp_path):
    noise = "".join(chr(0x4E00 + os.urandom(1)[0]) for _ in range(20_000))
    writer = started(tmp_path / "run", trace(1, text=noise))
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(StorageError):
            writer.finish(meta())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert not list(writer.path.glob(".*.partial"))
    assert list(load_run(writer.path).traces()) == [trace(1, text=noise)]
    writer.finish(meta())
    assert not (writer.path / JOURNAL).exists()


def test_an_atomic_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail(partial):
        partial.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, fail)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"


def test_no_secret_reaches_a_file(tmp_path):
    secret = "sk-very-secret"  # noqa: S105
    flags = {"api_key": secret, "--hf-token": secret, "hf_token": secret, "max_num_batched_tokens": 2048}
    secretive = meta(url=f"http://user:{secret}@h:1/v1?key={secret}#{secret}", server=ServerInfo(flags=flags))
    writer = RunWriter.create(tmp_path / "run", secretive, PROMPTS)
    writer.append(trace(1))
    everything = b"".join(path.read_bytes() for path in writer.path.iterdir())
    assert secret.encode() not in everything
    written = json.loads((writer.path / META).read_bytes())
    assert written["url"] == "http://h:1/v1"
    assert written["server"]["flags"] == {
        "api_key": "***",
        "--hf-token": "***",
        "hf_token": "***",
        "max_num_batched_tokens": 2048,
    }
    writer.finish(secretive)
    assert not [path for path in writer.path.iterdir() if secret.encode() in path.read_bytes()]


def test_a_writer_keeps_its_folder_also_when_its_journal_is_replaced(tmp_path):
    writer = started(tmp_path / "run", trace(1))
    journal = tmp_path / "run" / JOURNAL
    journal.with_name("other").write_bytes(journal.read_bytes())
    journal.with_name("other").replace(journal)
    with pytest.raises(RunFormatError, match="being written by another process"):
        RunWriter.resume(tmp_path / "run")
    writer.pause(meta())
    RunWriter.resume(tmp_path / "run")
