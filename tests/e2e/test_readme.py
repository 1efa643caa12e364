"""Every command shown in the README runs, and so does its Python example.

Addresses in it are those of two servers that the test starts. `make trial` and `make test` are run dry:
they are this suite's own set-up and itself.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from breakeven.servers.fake import Director, FakeServer, vllm_script

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
COMMANDS = [
    line.removeprefix("$ ")
    for block in re.findall(r"```console\n(.*?)```", README, re.S)
    for line in block.splitlines()
    if line.startswith("$ ")
]
PYTHON = re.findall(r"```python\n(.*?)```", README, re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """Two paces that stay apart on a busy machine. What a trial asks for is long: its replies are cut."""

    def at(tpot_s: float) -> Director:
        whole = vllm_script(n_tokens=64, ttft_s=0.02, tpot_s=tpot_s)
        cut = replace(whole, n_tokens=32)
        return lambda body, _: cut if body.get("max_tokens", 0) > 64 else whole

    with FakeServer(at(0.01)).in_thread() as first, FakeServer(at(0.005)).in_thread() as second:
        yield {"http://127.0.0.1:8000": first.url, "http://127.0.0.1:8001": second.url}


def test_the_readme_shows_commands_and_an_example():
    assert COMMANDS[:2] == ["make trial", "make test"]
    assert len(COMMANDS) >= 6 and len(PYTHON) == 1


@pytest.mark.parametrize("command", ["make trial", "make test"])
def test_make_knows_the_command(command: str):
    done = subprocess.run(
        [*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert ("breakeven trial" if "trial" in command else "pytest") in done.stdout


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith("make ")])
def test_the_command_runs(command: str, folder: Path, servers: dict[str, str]):
    for shown, real in servers.items():
        command = command.replace(shown, real)
    words = shlex.split(command)
    assert words[0] == "breakeven"
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_python_example_runs(folder: Path, servers: dict[str, str]):
    code = PYTHON[0]
    for shown, real in servers.items():
        code = code.replace(shown, real)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Distribution(" in done.stdout
