"""Machine code of other kernels is never loaded, and a folder that cannot be written to costs only time."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from breakeven.drafters.compiler import COMPILED, kernel_sources

PACKAGE = Path(__file__).parents[3] / "src" / "breakeven"
pytestmark = pytest.mark.skipif(not COMPILED, reason="numba is not installed")
PROGRAM = """
from breakeven.drafters.registry import make_drafter
from breakeven.drafters.tokens import flat
from breakeven.replay.steps import step_through
tokens = flat([([1, 2, 3, 1, 2], [3, 1, 2, 3, 1, 2, 3]), ([2, 3], [1, 2, 3, 1, 2, 3])])
steps = step_through(make_drafter("llamacpp-ngram-simple", {"n": 1, "k": 2}), tokens, 1)
print(int(steps.drafted.sum()), int(steps.accepted.sum()))
"""


def run(source: Path, home: Path, **more: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(source), "HOME": str(home), "XDG_CACHE_HOME": "", **more}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def source(tmp_path: Path) -> Path:
    copy = tmp_path / "src"
    shutil.copytree(PACKAGE, copy / "breakeven", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def kept(home: Path) -> set[Path]:
    return {path.parent for path in home.rglob("*.nbi")}


def test_a_change_in_any_kernel_file_compiles_all_anew(source: Path, tmp_path: Path):
    home = tmp_path / "home"
    first = run(source, home)
    folders = kept(home)
    assert folders and run(source, home) == first
    assert kept(home) == folders
    for callee in ("drafters/_suffix_children.py", "guard/_kernels.py"):
        with (source / "breakeven" / callee).open("a") as file:
            file.write("\n# changed\n")
        assert run(source, home) == first
        assert kept(home) > folders
        folders = kept(home)


def has_kernels(source: Path) -> bool:
    tree = ast.parse(source.read_text())
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "breakeven.drafters.compiler"
        for alias in node.names
    }
    return any(
        isinstance(decorator, ast.Name) and decorator.id in imported
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
    )


def test_every_module_with_kernels_counts():
    found = {source for source in PACKAGE.rglob("*.py") if has_kernels(source)}
    assert {"_kernels.py", "_walks.py", "vllm_rows.py", "_batching.py"} <= {source.name for source in found}
    assert found <= set(kernel_sources())


def test_a_cache_that_cannot_be_written_to_is_done_without(source: Path, tmp_path: Path):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    assert run(source, tmp_path / "home", NUMBA_CACHE_DIR=str(blocked)) == run(source, tmp_path / "home")
