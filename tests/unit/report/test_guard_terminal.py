import io
import re

import pytest
from rich.console import Console

from breakeven.guard.simulate.records import Simulation
from breakeven.report.guard_terminal import print_simulation
from tests.unit.report.guards import simulation


def shown(made: Simulation, width: int = 130, report: str | None = None) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_simulation(made, console, report)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def squeezed(made: Simulation, width: int = 130) -> list[str]:
    return [" ".join(line.split()) for line in shown(made, width).splitlines()]


def test_the_policies_stand_beside_each_other():
    lines = squeezed(simulation())
    assert lines[0] == "runs/measure-1 (run): 2 requests, 502 output tokens"
    assert lines[2].startswith("Guard (ε = 2 %): 1.240×")
    rows = [line for line in lines if line.startswith(("guard, ε", "best fixed 1", "test-and-set", "oracle"))]
    assert rows[0].startswith("guard, ε 2 % 1.240× 0.992")
    assert rows[1].startswith("best fixed 1.250× 1.000")
    assert any(line.startswith("no speculation 1.000×") for line in lines)
    assert "! the record is short" in lines


def test_epsilons_categories_and_concurrencies_are_tables():
    lines = squeezed(simulation())
    assert any(line.startswith("none 1.260× 1.008") for line in lines)
    assert any(line.startswith("1 % 1.200× 0.960") for line in lines)
    assert any(line.startswith("chat 0.985× 0.985× 0.900× 0.950×") for line in lines), "another is best there"
    assert any(line.startswith("4 1.100× 0.990×") for line in lines)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_number_is_cut(width: int):
    text = shown(simulation(), width, "guard.html")
    assert not re.search(r"\d…", text) and "Report: guard.html" in text
    assert text.count("0.985×") >= 2


def test_categories_are_a_table_at_80_columns():
    lines = squeezed(simulation(), 80)
    header = "category guard worst best fixed best there test-and-set oracle"
    at = lines.index(header)
    assert [line.split()[0] for line in lines[at + 1 : at + 3]] == ["coding", "chat"]
    assert lines[at + 3].startswith("best there: ")
    assert "category guard worst best fixed best there" in squeezed(simulation(), 60)


def test_what_to_type_next_ends_it():
    text = shown(simulation(next_commands=("breakeven guard vllm-config", "breakeven trial …")))
    assert text.endswith(
        "Next: breakeven guard vllm-config\nNext: breakeven trial …\n"
        "(… are your own options; name what stands in capitals)\n"
    )
    assert "Next:" not in shown(simulation())


def test_what_is_not_there_is_not_shown():
    text = shown(simulation(by_epsilon=(), by_concurrency=(), fixed=()))
    begins = ("guard with ε ", "best fixed ", "concurrency", "fixed")
    tables = text[: text.index("Cost (measured)")]
    assert not any(line.startswith(begins) for line in tables.splitlines())
