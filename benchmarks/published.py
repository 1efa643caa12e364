"""Published speedups against the forecast: a measured plain step, and modelled increments to a verifying one.

    python benchmarks/published.py [FILE] [--json]

FILE has the columns of benchmarks/data/published_speedups.csv, the default, whose results go to
benchmarks/results/published.json. A row is predicted as

    speedup = τ · T / (T_verify + FLAT + k · c)

with its own acceptance length τ and plain step T, T_verify of `Anchored`, and one constant c per engine and
method, the drafter's own time per drafted token, fitted. Rows fall into three classes. *Counted*: what the
prediction needs is stated of the row's own set. *Doubtful*: the row's note or unit says that part of it is of
another set; predicted with the constants of the counted ones, and listed apart. *Unused*: something is
missing. The reason stands beside each. No row is chosen by its error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from statistics import mean, median
from typing import Any

from published_rows import Group, PlainStep, Row, Unused, plain_step, read, row_or_reason

from breakeven.cost.coverage import REUSE, REUSE_RANGE
from breakeven.cost.drafting import FLAT_S
from breakeven.errors import UsageError

FILE = Path(__file__).parent / "data" / "published_speedups.csv"
RESULT = Path(__file__).parent / "results" / "published.json"
SHARED_CONSTANTS = ("FLAT_S", "REUSE")
"""Chosen with sight of these rows, so counted among the fitted."""


def per_token_s(rows: Sequence[Row]) -> float:
    """The drafter's seconds per drafted token: least squares on the relative error of the drafted step.

    Minimises Σ ((T_verify + FLAT + k · c) / T_published − 1)², at least 0.
    """
    slopes = [row.k / row.drafted_step_s for row in rows]
    gaps = [1 - (row.verify_s + FLAT_S.estimate) / row.drafted_step_s for row in rows]
    return max(sum(a * b for a, b in zip(slopes, gaps, strict=True)) / sum(a * a for a in slopes), 0.0)


def fit(rows: Iterable[Row]) -> dict[Group, float]:
    """The constant of each engine and method."""
    return {group: per_token_s(members) for group, members in by_group(rows).items()}


def by_group(rows: Iterable[Row]) -> dict[Group, list[Row]]:
    groups: dict[Group, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    return groups


def constant(fitted: Mapping[Group, float], group: Group) -> float:
    """The group's own, else the median of its method on other engines, else the median of all."""
    if group in fitted:
        return fitted[group]
    same_method = [c for (_, method), c in fitted.items() if method == group[1]]
    return median(same_method or list(fitted.values()) or [0.0])


def error(row: Row, c: float) -> float:
    """Relative, of the predicted speedup; above 0 it promised too much."""
    return row.predicted(c) / row.speedup - 1


def left_out(rows: Sequence[Row], together: Callable[[Row], str]) -> list[float]:
    """The errors of rows, each predicted by drafter constants fitted without the rows `together` with it.

    SHARED_CONSTANTS stay as they are."""
    return [
        error(row, constant(fit([other for other in rows if together(other) != together(row)]), row.group))
        for row in rows
    ]


def calibrated(rows: Sequence[Row]) -> list[float]:
    """The errors of rows, each predicted by the constant of one other row of its group; all such pairs."""
    pairs = (pair for group in by_group(rows).values() for pair in permutations(group, 2))
    return [error(row, per_token_s([other])) for row, other in pairs]


def plain_steps(records: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """How far the model alone, without an anchor, is from the measured plain steps."""
    found = {step for record in records if (step := plain_step(record)) is not None}
    within = [step for step in found if step.modelled.low <= step.measured_s <= step.modelled.high]
    return {
        "steps": len(found),
        "within_bounds": len(within),
        "measured_by_modelled": {"one_dense": extent(s for s in found if s.one_dense), "all": extent(found)},
        "outside": sorted(f"{s.source} {s.model}: {s.ratio:.2f}" for s in found.difference(within)),
    }


def extent(steps: Iterable[PlainStep]) -> list[float] | None:
    ratios = sorted(step.ratio for step in steps)
    return [ratios[0], ratios[-1]] if ratios else None


def summary(errors: Sequence[float]) -> dict[str, float | int | None]:
    sizes = [abs(e) for e in errors]
    return {
        "predictions": len(sizes),
        "mean": mean(sizes) if sizes else None,
        "worst": max(sizes, default=None),
    }


def report(records: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Every figure of the output."""
    found = [row_or_reason(record) for record in records]
    rows = [row for row in found if isinstance(row, Row)]
    counted = [row for row in rows if not row.doubt]
    tested = [row for group in by_group(counted).values() if len(group) > 1 for row in group]
    fitted = fit(counted)
    return {
        "errors": {
            "fitted": summary([error(row, fitted[row.group]) for row in tested]),
            "leave_one_row_out": summary(left_out(tested, lambda row: row.id)),
            "leave_one_source_out": summary(left_out(counted, lambda row: row.source)),
            "calibrated_by_one_row": summary(calibrated(tested)),
            "naive": summary([row.tau / row.speedup - 1 for row in tested]),
            "least_reuse": least_reuse(records, {row.id for row in tested}),
            "doubtful": summary([error(row, constant(fitted, row.group)) for row in rows if row.doubt]),
        },
        "fitted_constants": len(by_group(tested)) + len(SHARED_CONSTANTS),
        "plain_steps": plain_steps(records),
        "sources": sorted({row.source for row in tested}),
        "drafter_ms_per_token": {" ".join(group): 1e3 * c for group, c in fitted.items()},
        "alone": sorted(row.id for row in counted if row not in tested),
        "counted": [described(row, fitted) for row in counted],
        "doubtful": [described(row, fitted) | {"doubt": row.doubt} for row in rows if row.doubt],
        "unused": [
            {"id": r.id, "source": r.source, "reason": r.reason} for r in found if isinstance(r, Unused)
        ],
    }


def least_reuse(records: Sequence[Mapping[str, str]], ids: set[str]) -> dict[str, float | int | None]:
    """The fitted errors again, with the reuse of experts that was measured directly."""
    found = (row_or_reason(record, REUSE_RANGE[0]) for record in records if record["id"] in ids)
    rows = [row for row in found if isinstance(row, Row)]
    fitted = fit(rows)
    return summary([error(row, fitted[row.group]) for row in rows])


def described(row: Row, fitted: Mapping[Group, float]) -> dict[str, Any]:
    c = constant(fitted, row.group)
    return {
        "id": row.id,
        "source": row.source,
        "group": " ".join(row.group),
        "k": row.k,
        "acceptance_length": row.tau,
        "published": row.speedup,
        "predicted": row.predicted(c),
        "error": error(row, c),
    }


def show(result: Mapping[str, Any]) -> None:
    names = {
        "fitted": "one anchor, constants fitted on all counted rows",
        "leave_one_row_out": "the same, each row left out of its own fit",
        "leave_one_source_out": "the same, each source left out: drafter of another engine",
        "calibrated_by_one_row": "the same, the drafter known from one other row, all pairs",
        "least_reuse": f"reuse {REUSE_RANGE[0]} as measured directly, not {REUSE}",
        "naive": "naive: speedup = acceptance length",
        "doubtful": "doubtful rows, not counted above",
    }
    for key, text in names.items():
        e = result["errors"][key]
        if e["predictions"]:
            print(f"{text:60} mean {e['mean']:6.1%}  worst {e['worst']:6.1%}  of {e['predictions']}")
    print(f"{result['fitted_constants']} fitted constants; drafter, ms per token: ", end="")
    print(", ".join(f"{name} {ms:.2f}" for name, ms in result["drafter_ms_per_token"].items()))
    plain = result["plain_steps"]
    print(
        f"model without anchor: {plain['within_bounds']} of {plain['steps']} plain steps in its bounds",
        end="",
    )
    print(f"; outside: {', '.join(plain['outside']) or 'none'}")
    alone = ", ".join(result["alone"]) or "none"
    print(f"alone with its drafter, so fitted exactly and not in the errors: {alone}")
    for row in (*result["counted"], *result["doubtful"]):
        print(f"{row['id']:>4} {row['source']:20} {row['group'][:28]:28} k={row['k']} ", end="")
        print(f"τ {row['acceptance_length']:.2f}  {row['published']:.3f} → {row['predicted']:.3f} ", end="")
        print(f"{row['error']:+7.1%}  {row.get('doubt', '')}")
    for row in result["unused"]:
        print(f"{row['id']:>4} {row['source']:20} unused: {row['reason']}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path, default=FILE, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    args = parser.parse_args()
    try:
        result = report(read(args.file))
    except UsageError as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code
    if args.file == FILE:
        RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if args.json:
        print(json.dumps(result, indent=1, ensure_ascii=False))
    else:
        show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
