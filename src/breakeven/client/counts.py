"""How many tokens each event carried, as far as the server lets it be known."""

from __future__ import annotations

from collections.abc import Sequence

from breakeven.trace.records import Kind


def tokens_per_event(
    kinds: Sequence[Kind], id_counts: Sequence[int | None], cumulative: Sequence[int | None]
) -> list[int | None]:
    """From token ids; else from usage, if the server sent its running total with every chunk; else None.

    `cumulative` is usage.completion_tokens per event. A total that comes only at the end says nothing of
    chunks.
    """
    if id_counts.count(None) == cumulative.count(None) == len(kinds):
        return [None] * len(kinds)
    running = _is_running_total(kinds, cumulative)
    counts: list[int | None] = []
    seen = 0
    for kind, n_ids, total in zip(kinds, id_counts, cumulative, strict=True):
        risen = None if total is None or not running else max(total - seen, 0)
        seen = max(seen, total or 0)
        count = n_ids if n_ids is not None else risen
        counts.append(count if count or kind is Kind.END else None)
    return counts


def _is_running_total(kinds: Sequence[Kind], cumulative: Sequence[int | None]) -> bool:
    with_text = [
        total for kind, total in zip(kinds, cumulative, strict=True) if kind not in (Kind.END, Kind.SILENT)
    ]
    if with_text:
        return None not in with_text
    return (
        sum(kind is Kind.SILENT and total is not None for kind, total in zip(kinds, cumulative, strict=True))
        > 1
    )
