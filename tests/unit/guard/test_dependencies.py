"""What the guard takes of breakeven's dependencies: a server's Python need not have the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.guard.test_vllm import calibration

NOT_NEEDED = ("click", "httptools", "jinja2", "pyarrow", "rich", "tokenizers")
READING_A_CALIBRATION = """
import breakeven.guard.vllm
from pathlib import Path
from types import SimpleNamespace
from breakeven.guard.vllm_server import curve_of

model = SimpleNamespace(served_model_name="tiny", model="models/tiny", max_model_len=2048)
assert curve_of(Path(sys.argv[1]), SimpleNamespace(model_config=model), "0.32.0").points
"""


def loaded_by(script: str, *words: object) -> list[str]:
    """Of NOT_NEEDED, what a Python has loaded that ran this."""
    script = f"import sys\n{script}\nprint(*[name for name in {NOT_NEEDED} if name in sys.modules])"
    command = [sys.executable, "-c", script, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("module", ["vllm", "vllm_idle", "vllm_server", "config"])
def test_importing_the_guard_loads_no_other_dependency(module: str) -> None:
    assert loaded_by(f"import breakeven.guard.{module}") == []


def test_nor_does_reading_a_calibration(tmp_path: Path) -> None:
    assert loaded_by(READING_A_CALIBRATION, calibration(tmp_path)) == []


def test_the_check_can_fail() -> None:
    assert loaded_by("import breakeven.trace.run") == ["pyarrow"]
