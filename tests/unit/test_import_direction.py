"""Data flows one way: a module imports only from modules to its left in ORDER."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "breakeven"
ORDER = [
    *(
        "errors",
        "units",
        "secrets",
        "interval",
        "acceptance",
        "workload",
        "trace",
        "client",
        "latency",
        "measure",
    ),
    *("engines", "servers", "drafters", "replay", "compare", "cost", "forecast", "explain", "diagnose"),
    *("verdict", "trial", "models", "watch", "eagle", "guard", "report", "cli", "__init__", "__main__"),
]


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names if node.module == "breakeven")
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return {name.split(".")[1] for name in names if name.startswith("breakeven.")}


SOURCES = sorted(PACKAGE.rglob("*.py"))


def test_every_part_has_its_place():
    assert {part_of(path) for path in SOURCES} <= set(ORDER)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_upstream(path: Path):
    place = ORDER.index(part_of(path))
    downstream = {part for part in imported_parts(path) if part in ORDER and ORDER.index(part) > place}
    assert not downstream, f"{path.relative_to(PACKAGE)} imports from downstream: {sorted(downstream)}"


def test_the_check_can_fail(tmp_path: Path):
    source = tmp_path / "x.py"
    source.write_text(
        "from breakeven.cli import main\nimport breakeven.report.html\nfrom breakeven import trial\n"
    )
    assert imported_parts(source) == {"cli", "report", "trial"}
