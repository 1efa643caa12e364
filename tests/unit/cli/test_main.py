"""What the command does where no terminal is, and where Ctrl-C comes before it has begun."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import breakeven

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"
SLOW_IMPORT = "import os, time\nos.write(1, b'importing\\n')\ntime.sleep(60)\n"
SLOW_END = "import atexit, os, time\natexit.register(lambda: (os.write(2, b'ending\\n'), time.sleep(60)))\n"
_WITHOUT_SITE = {"PYTHONPATH": str(Path(breakeven.__file__).parents[1])}


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_streams_that_are_closed(closed: str):
    command = f"{sys.executable} -m breakeven models describe llama-3.1-8b {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def _commands() -> list[list[str]]:
    """As a module, and as the script that the project installs."""
    script = EntryPoint(
        "breakeven", tomllib.loads(PYPROJECT.read_text())["project"]["scripts"]["breakeven"], ""
    )
    call = f"import sys; from {script.module} import {script.attr}; sys.exit({script.attr}())"
    return [["-m", "breakeven"], ["-c", call]]


@pytest.mark.parametrize("command", _commands(), ids=["module", "script"])
@pytest.mark.parametrize("module", ["numpy", "click"])
@pytest.mark.parametrize(
    ("words", "said"), [([], ""), (["--json"], '{"error":"interrupted","exit_code":130}\n')]
)
def test_ctrl_c_during_an_import(
    command: list[str], module: str, words: list[str], said: str, tmp_path: Path
):
    (tmp_path / f"{module}.py").write_text(SLOW_IMPORT)
    process = subprocess.Popen(
        [sys.executable, *command, "show", "none", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == (said, "breakeven: interrupted\n")
    assert process.returncode == 130


def test_nothing_that_takes_long_is_imported_before_ctrl_c_is_heeded():
    """Until then it is Python itself that tells of a Ctrl-C, by a traceback."""
    words = (
        "import sys; before = set(sys.modules); import breakeven.__main__ as entry, _signal; "
        "print(*set(sys.modules) - before); print(_signal.getsignal(_signal.SIGINT) is entry._end)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", words], capture_output=True, text=True, env=_WITHOUT_SITE
    )
    imported, is_heeded = done.stdout.splitlines()
    assert is_heeded == "True"
    assert not {"typing", "enum", "re", "signal", "contextlib", "collections"} & set(imported.split())


@pytest.mark.parametrize("command", _commands(), ids=["module", "script"])
def test_ctrl_c_while_the_program_ends(command: list[str], tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text(SLOW_END)
    process = subprocess.Popen(
        [sys.executable, *command, "drafters", "--json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        text=True,
    )
    assert process.stderr is not None and process.stderr.readline() == "ending\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[1] == "breakeven: interrupted\n"
    assert process.returncode == 130
