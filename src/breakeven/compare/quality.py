"""What each side's replies are worth: errors, truncation, loops, missing figures."""

from __future__ import annotations

from collections import Counter

from breakeven.compare.degenerate import is_degenerate
from breakeven.compare.pairs import Replies
from breakeven.compare.records import SideQuality


def side_quality(replies: Replies) -> SideQuality:
    """Count over one side's requests; a failed request counts as an error and as nothing else."""
    answered = [reply for reply in replies.values() if reply.trace.error is None]
    untimed = (reply.latency.why_absent("tpot_s") for reply in answered if reply.tpot_s is None)
    return SideQuality(
        requests=len(replies),
        errors=len(replies) - len(answered),
        truncated_in_reasoning=sum(reply.latency.truncated_in_reasoning for reply in answered),
        degenerate=sum(is_degenerate(reply.trace) for reply in answered),
        untimed=dict(Counter(untimed).most_common()),
        max_tokens=max((reply.trace.max_tokens for reply in replies.values()), default=None),
    )
