from dataclasses import dataclass

import numpy as np
import pytest

from breakeven.drafters.base import Drafter, Ids, Limits, Table, TableDrafter
from breakeven.drafters.settings import Settings, setting
from breakeven.drafters.tokens import Tokens, flat


@dataclass(frozen=True, slots=True)
class Constant(Settings):
    k: int = setting(2, "tokens of a draft", 0)


class Zeros(TableDrafter[Constant]):
    name = "zeros"
    Config = Constant

    def propose(self, context: Ids, room: int) -> list[int]:
        return [0] * min(self.settings.k, room)

    def table(self, tokens: Tokens) -> Table:
        drafted = np.full(tokens.positions[-1], self.settings.k, np.int32)
        return Table(drafted, np.zeros_like(drafted))


def test_one_table_for_each_of_the_settings_in_their_order():
    tokens = flat([([1], [2, 3, 4])])
    tables = Zeros.tables(tokens, [Constant(3), Constant(0), Constant(3)])
    assert [table.drafted.tolist() for table in tables] == [[3] * 3, [0] * 3, [3] * 3]


def test_what_a_drafter_may_leave_out():
    drafter = Zeros(Constant())
    context = np.array([1, 2], np.int32)
    drafter.begin(context[:1], Limits())
    assert drafter.propose(context, drafter.room(2, 1, Limits())) == [0, 0]
    drafter.accept(1)
    drafter.end(context)
    assert drafter.flags() == ""
    assert (drafter.learns, drafter.steps_matter, drafter.engine) == (False, False, "own")
    assert drafter.compiled is False


def test_propose_must_be_there():
    class Silent(Drafter[Constant]):
        name = "silent"
        Config = Constant

    with pytest.raises(TypeError, match="propose"):
        Silent(Constant())
