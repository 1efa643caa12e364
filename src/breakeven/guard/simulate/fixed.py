"""Fixed settings: one window and one n-gram range for every step, as engines have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from breakeven.cost.drafting import DraftingCost
from breakeven.cost.step import StepCost
from breakeven.drafters.naming import ALWAYS, settings_words, varying
from breakeven.forecast.collected import SettingSteps
from breakeven.forecast.decode import mix_of, relative_cost, step_costs
from breakeven.guard.simulate.played import Served
from breakeven.guard.simulate.records import Played
from breakeven.replay.run import as_used
from breakeven.replay.tally import counted


def fixed_played(
    served: Served,
    steps: Sequence[SettingSteps],
    cost: StepCost,
    drafting: DraftingCost,
    sequences: int,
    context_tokens: float,
) -> tuple[Played, ...]:
    """Each setting as a forecast has it at this concurrency, the fastest first; of equals the earlier one."""
    longest = max((int(one.drafted.max(initial=0)) for one in steps), default=0)
    relative = relative_cost(cost, sequences, longest, context_tokens)
    found = []
    for one, name in zip(steps, _names(steps), strict=True):
        mix = mix_of(one, longest)
        spent = mix.counts @ step_costs(relative, drafting, mix.share)[0]
        drafter = one.drafter
        counters = counted(one.drafted, one.accepted)
        found.append(served.played("fixed", name, spent, counters, as_used(drafter), drafter.flags()))
    return tuple(sorted(found, key=lambda row: -row.speed.speedup))


def _names(steps: Sequence[SettingSteps]) -> Iterator[str]:
    """`vllm-ngram k=5 n=2–4`, with the settings in which a drafter's rows differ."""
    for one in steps:
        mine = [as_used(other.drafter) for other in steps if other.drafter.name == one.drafter.name]
        words = settings_words(as_used(one.drafter), ALWAYS | varying(mine))
        yield f"{one.drafter.name} {words}".rstrip()
