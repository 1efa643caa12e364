"""Every finding that `breakeven diagnose` can print is in the manual."""

import ast
from collections.abc import Iterator
from pathlib import Path

import breakeven

PACKAGE = Path(breakeven.__file__).parent
MANUAL = (PACKAGE.parents[1] / "docs" / "diagnose.md").read_text("utf-8")


def ids() -> Iterator[str]:
    """First arguments of Finding(…), as they are written."""
    explained = (PACKAGE / "explain").glob("*causes.py")
    for path in (*(PACKAGE / "diagnose" / "causes").glob("*.py"), *explained):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            is_finding = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding"
            if is_finding and node.args and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)


def test_each_id_is_in_the_manual():
    found = set(ids())
    assert len(found) > 20
    assert {name for name in found if f"`{name}`" not in MANUAL} == set()
