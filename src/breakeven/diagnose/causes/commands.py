"""Commands that turn on what a finding found better."""

from __future__ import annotations

from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.ratios import is_head


def restart_with(
    evidence: Evidence, k: int | None, min_n: int | None = None, max_n: int | None = None
) -> tuple[str, str]:
    """Command and check that turn on other settings of the same drafter."""
    drafting = evidence.drafting
    words = [("--k", k), ("--min-n", min_n or drafting.min_n), ("--max-n", max_n or drafting.max_n)]
    if is_head(drafting.method):
        words = [("--k", k)]
    given = " ".join(f"{name} {value}" for name, value in words if value is not None)
    head = " --draft <head>" if is_head(drafting.method) and "mtp" not in drafting.method else ""
    return (
        f"breakeven engine {evidence.engine or '<engine>'} --method {drafting.method} {given}{head}",
        "It prints the flags; restart with them, and measure the same prompts again.",
    )
