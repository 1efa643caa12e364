import numpy as np
import pytest

from breakeven.acceptance.counters import SpecCounters
from breakeven.drafters.base import Table, TableDrafter
from breakeven.drafters.tokens import Tokens
from breakeven.errors import UsageError
from breakeven.replay.records import SweepRow
from breakeven.replay.run import replay_source
from breakeven.replay.sweep import ranked, sweep_source
from tests.unit.replay.small import COUNT_UP, CountUpSettings, Held, recorded
from tests.unit.replay.test_run import LEARNING, many

GRID = [(name, {"k": k}) for name in (COUNT_UP, LEARNING) for k in (1, 2, 3)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_row_is_what_a_replay_of_that_setting_gives(jobs: int):
    swept = sweep_source(many(), GRID, jobs=jobs)
    assert len(swept.rows) == len(GRID)
    for row in swept.rows:
        alone = replay_source(many(), row.drafter, row.settings)
        assert row.counters == alone.total.counters
        assert row.tokens_per_step == alone.total.tokens_per_step
    assert (swept.requests, swept.output_tokens) == (40, sum(1 + i % 9 for i in range(40)))


def test_rows_are_ranked_by_tokens_per_step():
    rows = sweep_source(many(), GRID, jobs=1).rows
    assert [row.tokens_per_step for row in rows] == sorted((r.tokens_per_step for r in rows), reverse=True)


def row(per_step: float, accepted: int, drafted: int) -> SweepRow:
    counters = SpecCounters(100, 50, drafted, accepted, source="replay")
    return SweepRow("d", {}, "", counters, per_step, "own", False, pareto=False)


def test_the_pareto_front_is_what_nothing_beats_in_both():
    rows = [
        row(1.5, 50, 60),
        row(1.9, 90, 180),
        row(1.6, 60, 70),
        row(1.4, 40, 45),
        row(1.7, 70, 160),
        row(1.0, 0, 0),
    ]
    marked = {(r.tokens_per_step, r.pareto) for r in ranked(rows)}
    assert marked == {(1.9, True), (1.7, False), (1.6, True), (1.5, False), (1.4, True), (1.0, False)}


def test_of_equals_one_is_on_the_front():
    assert [r.pareto for r in ranked([row(1.5, 50, 60), row(1.5, 50, 60)])] == [True, False]


def test_progress_counts_each_setting():
    done: list[int] = []
    sweep_source(many(10), GRID, jobs=1, progress=done.append)
    assert sum(done) == 10 * len(GRID)


def test_what_cannot_be_swept_is_refused():
    with pytest.raises(UsageError, match="nothing to sweep"):
        sweep_source(many(), [])
    with pytest.raises(UsageError, match="every output is one token"):
        sweep_source(Held([recorded([1], [2])]), GRID, jobs=1)
    with pytest.raises(UsageError, match="holds no request to replay"):
        sweep_source(Held([]), GRID, jobs=1)
    swept = sweep_source(Held([recorded([1], [2])]), GRID, first_token="replayed", jobs=1)
    assert swept.rows[0].tokens_per_step == 1


class Wrong(TableDrafter):
    """Its Table accepts what it did not draft."""

    name = "wrong"
    Config = CountUpSettings

    def propose(self, context, room):
        return []

    def table(self, tokens: Tokens) -> Table:
        size = int(tokens.positions[-1])
        return Table(np.zeros(size, np.int32), np.full(size, -5, np.int32))


def test_a_table_that_cannot_be_is_refused_in_a_sweep_too():
    with pytest.raises(UsageError, match=r"wrong failed \(ValueError: its Table"):
        sweep_source(many(3), [(f"{__name__}:Wrong", {"k": 1})], jobs=1)
