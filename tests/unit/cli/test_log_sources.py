"""Where a log is: files, pipes, and commands that are called without a shell."""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from breakeven.cli import log_bytes, log_sources
from breakeven.cli.log_options import Since, log_of
from breakeven.cli.log_sources import DockerLog, FileLog, JournalLog, PodLog
from breakeven.errors import ServerError, UsageError
from breakeven.servers.systemd.unit_name import UnitName

UNIT = UnitName.parse("vllm")
SINCE = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
NOTHING: dict[str, Any] = dict.fromkeys(
    ("logs", "baseline_logs", "unit", "container", "pod", "namespace", "since")
) | {"user": False}


def whole(log: log_sources.Log) -> bytes:
    return b"".join(log.read())


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Puts a program of that name first in PATH; it keeps its words in a file, which is returned."""

    def put(name: str, script: str) -> Path:
        words = tmp_path / f"{name}.words"
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {words}\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        return words

    return put


def test_a_file_and_one_that_is_packed(tmp_path: Path):
    text = b"one\ntwo \xff\x00\n" * 10_000
    (tmp_path / "a.log").write_bytes(text)
    (tmp_path / "b").write_bytes(gzip.compress(text))
    assert whole(FileLog(tmp_path / "a.log")) == whole(FileLog(tmp_path / "b")) == text


def test_standard_input(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from a pipe\n")))
    assert whole(FileLog(Path("-"))) == b"from a pipe\n"
    packed = gzip.compress(b"from a pipe\n" * 9) + gzip.compress(b"and more\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    assert whole(FileLog(Path("-"))) == b"from a pipe\n" * 9 + b"and more\n"
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="--logs"):
        whole(FileLog(Path("-")))


@pytest.mark.parametrize("kind", ["missing", "folder", "broken", "half"])
def test_a_file_that_cannot_be_read(kind: str, tmp_path: Path):
    path = tmp_path / "x"
    packed = gzip.compress(b"words " * 1000)
    {
        "missing": lambda: None,
        "folder": path.mkdir,
        "broken": lambda: path.write_bytes(b"\x1f\x8bno gzip at all"),
        "half": lambda: path.write_bytes(packed[: len(packed) // 2]),
    }[kind]()
    with pytest.raises(UsageError, match="cannot be read"):
        whole(FileLog(path))


def test_the_journal_is_asked_for_json(command: Callable[..., Path]):
    words = command("journalctl", """echo '{"MESSAGE":"hello"}'""")
    assert whole(JournalLog(UNIT, since=SINCE)) == b"hello\n"
    assert words.read_text().splitlines() == [
        *("--unit=vllm.service", "--output=json", "--all", "--no-pager"),
        f"--since=@{int(SINCE.timestamp())}",
    ]
    whole(JournalLog(UNIT, user=True))
    assert words.read_text().splitlines()[0] == "--user-unit=vllm.service"


def test_entries_of_any_kind(command: Callable[..., Path]):
    command(
        "journalctl",
        """echo '{"MESSAGE":[27,91,51,54,109,104,105]}'
echo 'Hint: words'
echo '{"MESSAGE":null}'
echo '[1]'
echo '{"MESSAGE":["first","last"]}'
printf '%s' '{"MESSAGE":"two\\nlines"}'""",
    )
    assert whole(JournalLog(UNIT)) == b"\x1b[36mhi\nlast\ntwo\nlines\n"


@pytest.mark.parametrize(
    ("script", "user", "said"),
    [
        ("", False, "systemctl list-units"),
        ("echo '-- No entries --'", False, "systemctl list-units"),
        ("", True, "systemctl --user list-units"),
        ("echo 'Hint: You are currently not seeing messages from other users' >&2", False, "sudo journalctl"),
    ],
)
def test_a_unit_without_entries(command: Callable[..., Path], script: str, user: bool, said: str):
    command("journalctl", script)
    with pytest.raises(UsageError, match=said) as error:
        whole(JournalLog(UNIT, user))
    assert "vllm.service" in str(error.value)


def test_a_journal_that_may_not_be_read(command: Callable[..., Path]):
    command("journalctl", "echo 'Failed to open files: Permission denied' >&2; exit 1")
    with pytest.raises(UsageError, match=r"sudo journalctl --unit=vllm.service .*--logs -"):
        whole(JournalLog(UNIT))
    command("journalctl", "echo 'disk on fire' >&2; exit 1")
    with pytest.raises(ServerError, match="disk on fire"):
        whole(JournalLog(UNIT))


def test_a_container_logs_on_both_streams(command: Callable[..., Path]):
    words = command("docker", "echo out; echo err >&2")
    assert sorted(whole(DockerLog("vllm", SINCE)).split()) == [b"err", b"out"]
    assert words.read_text().splitlines() == ["logs", "--since", str(int(SINCE.timestamp())), "--", "vllm"]


@pytest.mark.parametrize(
    ("said", "error", "advice"),
    [
        ("Error response from daemon: No such container: x", UsageError, "docker ps --all"),
        ("permission denied while trying to connect to the Docker daemon", UsageError, "sudo docker logs x"),
        ("configured logging driver does not support reading", UsageError, "--logs FILE"),
        ("Cannot connect to the Docker daemon", ServerError, "Cannot connect"),
    ],
)
def test_a_container_that_cannot_be_read(
    command: Callable[..., Path], said: str, error: type[Exception], advice: str
):
    command("docker", f"echo '{said}' >&2; exit 1")
    with pytest.raises(error, match=advice):
        whole(DockerLog("x"))


def test_a_pod(command: Callable[..., Path]):
    words = command("kubectl", "echo hello")
    assert whole(PodLog("deployment/vllm", "ml", "server", SINCE)) == b"hello\n"
    assert words.read_text().splitlines() == [
        *("logs", "--namespace=ml", "--container=server", "--since-time=2026-11-29T12:00:00Z"),
        *("--", "deployment/vllm"),
    ]


@pytest.mark.parametrize(
    ("said", "error", "advice"),
    [
        ('Error from server (NotFound): pods "x" not found', UsageError, "kubectl get pods --namespace ml"),
        ("Error from server (Forbidden): no", UsageError, "pods/log"),
        (
            "error: a container name must be specified for pod x, choose one of: [a b]",
            UsageError,
            "--container",
        ),
        ("Unable to connect to the server", ServerError, "Unable"),
    ],
)
def test_a_pod_that_cannot_be_read(
    command: Callable[..., Path], said: str, error: type[Exception], advice: str
):
    command("kubectl", f"echo '{said}' >&2; exit 1")
    with pytest.raises(error, match=advice):
        whole(PodLog("x", "ml"))


def test_a_tool_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for log in (JournalLog(UNIT), DockerLog("x"), PodLog("x")):
        with pytest.raises(UsageError, match=r"not installed here.*--logs -"):
            whole(log)


def test_no_shell_sees_a_name(command: Callable[..., Path], tmp_path: Path):
    words = command("docker", "echo hello")
    name = f"x; touch {tmp_path / 'pwned'} $(id)"
    assert whole(DockerLog(name)) == b"hello\n"
    assert words.read_text().splitlines()[-1] == name
    assert not (tmp_path / "pwned").exists()


def test_a_command_is_ended_where_its_log_is_not_read_on(command: Callable[..., Path], tmp_path: Path):
    pid = tmp_path / "pid"
    command("docker", f"echo $$ > {pid}; while :; do echo line; done")
    pieces = DockerLog("x").read()
    assert next(pieces)
    pieces.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize(
    ("values", "log"),
    [
        ({}, None),
        ({"logs": Path("a")}, FileLog(Path("a"))),
        ({"unit": "vllm", "user": True}, JournalLog(UNIT, True)),
        ({"container": "c", "since": SINCE}, DockerLog("c", SINCE)),
        ({"pod": "p", "container": "c", "namespace": "n"}, PodLog("p", "n", "c")),
    ],
)
def test_the_place_that_options_name(values: dict[str, Any], log: object):
    assert log_of(NOTHING | values) == log


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"logs": Path("a"), "unit": "b"}, "--logs and --unit name two logs"),
        ({"pod": "a", "unit": "b"}, "two logs"),
        ({"container": "a", "unit": "b"}, "two logs"),
        ({"user": True}, "--user is of a unit"),
        ({"logs": Path("a"), "namespace": "b"}, "--namespace is of a pod"),
        ({"logs": Path("a"), "since": SINCE}, "--since is of"),
        ({"unit": "-x;y"}, "no name of a service"),
        ({"unit": "vllm.socket"}, "not a service"),
    ],
)
def test_options_that_say_nothing_together(values: dict[str, Any], said: str):
    with pytest.raises(UsageError, match=said):
        log_of(NOTHING | values)


@pytest.mark.parametrize(
    ("text", "age"), [("30m", 1800), ("2h", 7200), ("1d", 86400), ("90s", 90), ("5min", 300)]
)
def test_an_age(text: str, age: int):
    found = Since().convert(text, None, None)
    assert abs(datetime.now(UTC) - timedelta(seconds=age) - found) < timedelta(seconds=60)


def test_a_time():
    assert Since().convert("2026-11-29T12:00+00:00", None, None) == SINCE
    assert Since().convert("999999999d", None, None).year > 2000
    for text in ("yesterday", "", "-5m", "5", "1e9h", "x" * 10_000, "9999-99-99"):
        with pytest.raises(UsageError, match="--since 30m"):
            Since().convert(text, None, None)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"# HELP vllm:x y\n# TYPE vllm:x gauge\n", "--url"),
        (gzip.compress(b"\n# TYPE vllm:x gauge\n", mtime=0), "--url"),
        (b"\0" * 1000, "NUL"),
        (gzip.compress(b"x" * 1000, mtime=0)[:20], "cannot be read"),
    ],
)
def test_what_is_no_log_is_said_to_be_none(tmp_path: Path, data: bytes, said: str):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(UsageError, match=said):
        whole(FileLog(tmp_path / "a"))


def test_nuls_without_end_are_not_read_for_ever():
    with pytest.raises(UsageError, match="NUL"):
        whole(FileLog(Path("/dev/zero")))


def test_a_name_that_no_file_has():
    with pytest.raises(UsageError, match="null byte"):
        whole(FileLog(Path("a\0b")))


def test_what_a_command_printed_is_shown_without_keys(command: Callable[..., Path]):
    command("docker", "echo 'vllm serve --api-key s3cr3t-key'; exit 1")
    with pytest.raises(ServerError) as error:
        whole(DockerLog("x"))
    assert "s3cr3t" not in str(error.value) and "vllm serve" in str(error.value)


def test_what_expands_without_end_is_not_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A few bytes that come to megabytes, as a file and through a pipe; lines that repeat are none."""
    monkeypatch.setattr(log_bytes, "FREE_BYTES", 1 << 20)
    bomb = gzip.compress(b"x" * 10_000_000, mtime=0)
    (tmp_path / "bomb.gz").write_bytes(bomb)
    with pytest.raises(UsageError, match=r"bomb.gz expands to more than .*, as no log does"):
        whole(FileLog(tmp_path / "bomb.gz"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(bomb)))
    with pytest.raises(UsageError, match="standard input expands"):
        whole(FileLog(Path("-")))
    lines = b"".join(b"INFO 11-29 10:%02d:%02d step\n" % divmod(n // 4 % 3600, 60) for n in range(200_000))
    (tmp_path / "a.gz").write_bytes(gzip.compress(lines, mtime=0))
    assert whole(FileLog(tmp_path / "a.gz")) == lines


@pytest.mark.parametrize(
    ("log", "word"),
    [
        (FileLog(Path("a b.log")), "'a b.log'"),
        (FileLog(Path("a.log.gz")), "<(zcat a.log.gz)"),
        (FileLog(Path("-")), None),
        (FileLog(Path("./-x")), "./-x"),
        (JournalLog(UNIT), "<(journalctl --unit=vllm.service --output=cat --all)"),
        (
            JournalLog(UNIT, True, SINCE),
            f"<(journalctl --user-unit=vllm.service --output=cat --all --since=@{int(SINCE.timestamp())})",
        ),
        (DockerLog("a;b"), "<(docker logs -- 'a;b' 2>&1)"),
        (PodLog("p", "n"), "<(kubectl logs --namespace=n -- p)"),
    ],
)
def test_how_a_command_is_given_it(log: log_sources.Log, word: str | None):
    assert log.word() == word
