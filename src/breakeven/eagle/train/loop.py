"""The training loop: optimizer steps, validations and checkpoints, from where the last one left off."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice

from breakeven.eagle.recipe import TrainSettings
from breakeven.eagle.train.checkpoint import Checkpoints, Reached
from breakeven.eagle.train.documents import Document, Documents
from breakeven.eagle.train.interrupts import Interrupts
from breakeven.eagle.train.order import Order
from breakeven.eagle.train.processes import Processes
from breakeven.eagle.train.records import Step, Validation
from breakeven.eagle.train.schedule import learning_rate
from breakeven.eagle.train.stepping import Stepper, Taken
from breakeven.eagle.train.watch import Watch
from breakeven.errors import UsageError


@dataclass(frozen=True, slots=True)
class Plan:
    """What there is to do."""

    settings: TrainSettings
    order: Order
    k: int
    """Draft tokens that the acceptance length is of."""
    train: Documents
    validation: Documents

    def validates_after(self, step: int) -> bool:
        due = step % self.settings.validate_every == 0 or step == self.order.steps
        return due and len(self.validation) > 0

    def is_met(self, reached: Reached) -> bool:
        """Whether the acceptance length at which training ends early was reached."""
        wanted, best = self.settings.stop_at, reached.best
        return wanted > 0 and best is not None and best.acceptance_length >= wanted

    def is_over(self, reached: Reached) -> bool:
        return reached.step >= self.order.steps or self.is_met(reached)


class Loop:
    """One process's part in it; `told` are whoever is told of steps and validations, in the first process."""

    def __init__(
        self,
        plan: Plan,
        stepper: Stepper,
        checkpoints: Checkpoints,
        processes: Processes,
        told: Sequence[Watch],
    ) -> None:
        self._plan, self._stepper, self._checkpoints = plan, stepper, checkpoints
        self._processes, self._told = processes, told

    def run(self, reached: Reached, interrupts: Interrupts) -> Reached:
        """Goes on from there to the end. Raises KeyboardInterrupt, with a checkpoint saved, if asked to end.

        The head before the first step is looked at too, to compare with.
        """
        plan, processes = self._plan, self._processes
        for one in self._told:
            one.begins(plan.order.steps, reached.step)
        if reached.step == 0 and len(plan.validation) > 0:
            reached = self._validated(reached)
        stream = plan.train.ahead(plan.order.stream(reached.step, processes.rank, processes.size))
        while not plan.is_over(reached):
            reached = self._advanced(reached, stream, interrupts)
        if reached.best is None and processes.first:
            self._checkpoints.save_best(self._stepper.head, {"step": reached.step})
        return reached

    def _advanced(self, reached: Reached, stream: Iterator[Document], interrupts: Interrupts) -> Reached:
        """One step further, with the validation and the checkpoint that are due."""
        plan = self._plan
        taken = self._step(reached.step, stream, interrupts.asked)
        reached = replace(reached, step=reached.step + 1)
        if plan.validates_after(reached.step):
            reached = self._validated(reached)
        due = reached.step % plan.settings.checkpoint_every == 0 or plan.is_over(reached)
        if (due or taken.interrupted) and self._processes.first:
            self._checkpoints.save(self._stepper.head, self._stepper.optimizer, reached)
        if taken.interrupted:
            raise KeyboardInterrupt
        return reached

    def _step(self, done: int, stream: Iterator[Document], interrupted: bool) -> Taken:
        began_s = time.perf_counter()
        plan, processes, settings = self._plan, self._processes, self._plan.settings
        rate = learning_rate(done, plan.order.steps, settings.learning_rate, settings.warmup)
        dealt = len(plan.order.dealt_after(done, processes.rank, processes.size))
        taken = self._stepper.step(islice(stream, dealt), rate, interrupted)
        _refuse_diverged(taken, done + 1)
        scores, seconds = asdict(taken.scores), time.perf_counter() - began_s
        step = Step(
            done + 1,
            plan.order.epoch(done),
            **scores,
            learning_rate=rate,
            gradient_norm=taken.gradient_norm,
            seconds=seconds,
        )
        for one in self._told:
            one.stepped(step)
        return taken

    def _validated(self, reached: Reached) -> Reached:
        """With the best head so far kept in best/."""
        plan, processes = self._plan, self._processes
        dealt = range(processes.rank, len(plan.validation), processes.size)
        scores = self._stepper.scores(plan.validation.ahead(dealt))
        found = Validation(reached.step, scores, scores.length(plan.k))
        for one in self._told:
            one.validated(found)
        if not found.beats(reached.best):
            return reached
        if processes.first:
            self._checkpoints.save_best(self._stepper.head, asdict(found))
        return replace(reached, best=found)


def _refuse_diverged(taken: Taken, step: int) -> None:
    """Raises UsageError for a step after which no weight is a number, and before it is kept."""
    if not math.isfinite(taken.scores.loss) or not math.isfinite(taken.gradient_norm):
        raise UsageError(
            f"the training has diverged: in step {step} its loss or gradient is no finite number; write a "
            "smaller  learning_rate  under [train] of the recipe, and type  breakeven eagle train RECIPE "
            "--fresh"
        )
