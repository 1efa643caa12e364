"""GuardedNgram: the guard as a drafter of vLLM, 0.30 to 0.33, which loads it by its name.

    --speculative-config '{"method": "custom_class", "model": "breakeven.guard.vllm.GuardedNgram",
                           "num_speculative_tokens": 10}'

`breakeven guard vllm-config` prints that, and the environment that sets it up (config.py). vLLM makes one in
each worker of the last pipeline stage, but takes the drafts of the first tensor-parallel rank: the others
rest. What goes wrong here never reaches the server: it is logged once, and nothing is drafted from then on.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import UsageError
from breakeven.guard.config import CONFIG, MODE, GuardConfig, config_of
from breakeven.guard.kill_switch import KillSwitch
from breakeven.guard.metrics import GuardMetrics, serve_metrics
from breakeven.guard.reasons import Reason
from breakeven.guard.state_file import StateFile
from breakeven.guard.survival import Survival
from breakeven.guard.vllm_server import check_batches, check_version, curve_of, engine_of, limits_of
from breakeven.guard.vllm_steps import GuardedSteps
from breakeven.guard.warm_up import warm_up

LOG = logging.getLogger("vllm.breakeven.guard")
"""Under vLLM's own logger, whose handler and level it takes."""
NOTES_EVERY = 1000
"""Steps between two looks at whether there is something to say."""
OFF = (
    f"it is off, and drafts nothing; to turn it on, start with {MODE}=on and the model "
    "breakeven.guard.vllm.GuardedNgram"
)


class GuardedNgram:
    """Looks the end of each request up in the request, and drafts what pays."""

    def __init__(
        self,
        vllm_config: Any,
        *,
        environment: Mapping[str, str] | None = None,
        version: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """What vLLM gives; the rest is the process's own. Raises UsageError that says what to set."""
        config = config_of(os.environ if environment is None else environment)
        version = _installed() if version is None else version
        check_version(version, config.any_version)
        self._rests = False
        try:
            self._set_up(config, vllm_config, version, clock)
        except UsageError:
            raise
        except Exception:
            self._rests = True
            LOG.exception("breakeven guard could not be set up: nothing is drafted, and the server goes on")

    def _set_up(
        self, config: GuardConfig, vllm_config: Any, version: str, clock: Callable[[], float]
    ) -> None:
        first = vllm_config.parallel_config.rank % _width(vllm_config) == 0
        if config.mode == "off" or not first:
            self._rests = True
            if first:
                _warn(OFF)
            return
        check_batches(vllm_config)
        config = config.of_engine(engine_of(vllm_config))
        self._calls = 0
        self._said: set[str] = set()
        self._switch = KillSwitch(Path(config.kill_file) if config.kill_file else None, clock)
        self._killed = self._failed = False
        self._shadows = config.mode == "shadow"
        survival = _survival(config)
        self._steps = _steps(config, vllm_config, version, clock, survival)
        self._file = self._state_file(config, clock)
        address = self._serve(config)
        LOG.info("breakeven guard: %s", _described(config, survival is not None, address))

    def propose(
        self,
        sampled_token_ids: Sequence[Sequence[int]],
        num_tokens_no_spec: NDArray[np.int32],
        token_ids_cpu: NDArray[np.int32],
        **_: Any,
    ) -> list[list[int]]:
        """A draft for each row of the batch, empty for none.

        `sampled_token_ids` are what the step gave each row, none where a prompt is not computed to its end;
        `num_tokens_no_spec`, shape (rows,) or more, counts each row's tokens with them, and `token_ids_cpu`,
        shape (rows, max_model_len), has them. Never raises.
        """
        nothing: list[list[int]] = [[] for _ in sampled_token_ids]
        if self._rests:
            return nothing
        try:
            return self._proposed(sampled_token_ids, num_tokens_no_spec, token_ids_cpu) or nothing
        except Exception:
            self._fail()
            return nothing

    def load_model(self, *_: Any, **__: Any) -> None:
        """There are no weights."""

    @property
    def is_on(self) -> bool:
        """Whether it may draft: not if it only learns."""
        return not (self._rests or self._shadows or self._failed or self._killed)

    def _proposed(
        self, sampled: Sequence[Sequence[int]], counts: NDArray[np.int32], ids: NDArray[np.int32]
    ) -> list[list[int]] | None:
        why = self._resting()
        if why is not None:
            self._steps.policy.rest(why, len(sampled))
            return None
        drafts = self._steps.step(sampled, counts, ids)
        self._calls += 1
        if self._calls % NOTES_EVERY == 0:
            self._say()
        if self._file is not None and self._steps.policy.survival.is_taught:
            self._file.step()
        return drafts

    def _resting(self) -> Reason | None:
        """Why nothing is decided, if so."""
        if self._failed:
            return Reason.FAILED
        self._turn(self._switch.thrown())
        return Reason.KILLED if self._killed else None

    def _turn(self, killed: bool) -> None:
        if killed == self._killed:
            return
        self._killed = killed
        self._steps.forget()
        LOG.warning("breakeven guard: %s by its kill file", "turned off" if killed else "turned on again")

    def _fail(self) -> None:
        """It says so once, and rests from here on."""
        if not self._failed:
            self._failed = True
            LOG.exception("breakeven guard failed: nothing is drafted from here on, and the server goes on")
            with suppress(Exception):
                self._steps.forget()

    def _say(self) -> None:
        for kind, note in self._steps.cost.notes().items():
            if kind not in self._said:
                self._said.add(kind)
                _warn(note)

    def _state_file(self, config: GuardConfig, clock: Callable[[], float]) -> StateFile | None:
        if config.state_file is None:
            return None
        survival = self._steps.policy.survival
        return StateFile(Path(config.state_file), survival.to_json, clock, _warn)

    def _serve(self, config: GuardConfig) -> str | None:
        """Where the metrics are; None if nowhere."""
        if config.metrics_port is None:
            return None
        try:
            metrics = GuardMetrics(self._steps, lambda: self.is_on)
            serve_metrics(metrics, config.metrics_host, config.metrics_port)
        except UsageError as error:
            _warn(str(error))
            return None
        return f"{config.metrics_host}:{config.metrics_port}"


def _steps(
    config: GuardConfig,
    vllm_config: Any,
    version: str,
    clock: Callable[[], float],
    survival: Survival | None,
) -> GuardedSteps:
    settings, limits = config.settings, limits_of(vllm_config)
    curve = None if config.calibration is None else curve_of(Path(config.calibration), vllm_config, version)
    warm_up(settings, limits)
    return GuardedSteps(
        settings, limits, clock, survival=survival, curve=curve, shadow=config.mode == "shadow"
    )


def _survival(config: GuardConfig) -> Survival | None:
    """What a server before this one learned; a file that cannot be used is told, and begun anew."""
    if config.state_file is None:
        return None
    file = Path(config.state_file)
    try:
        return Survival.from_json(file.read_bytes()) if file.is_file() else None
    except (OSError, ValueError) as error:
        _warn(f"{file} cannot be used, and is begun anew ({error})")
        return None


def _installed() -> str:
    return str(import_module("vllm").__version__)


def _width(vllm_config: Any) -> int:
    """Ranks of a pipeline stage."""
    return int(vllm_config.parallel_config.tensor_parallel_size)


def _described(config: GuardConfig, goes_on: bool, address: str | None) -> str:
    """`goes_on` says whether the state file was read, and `address` where the metrics are served."""
    one = config.settings
    said = [
        config.mode,
        f"at most {one.epsilon:.1%} of a request's decode time at stake",
        f"drafts of up to {one.most_tokens} tokens",
        f"costs of {config.calibration}" if config.calibration else "costs are learned",
    ]
    if config.kill_file is not None:
        said.append(f"kill file {config.kill_file}")
    if config.state_file is not None:
        said.append(f"state file {config.state_file} ({'was read' if goes_on else 'begins anew'})")
    if address is not None:
        said.append(f"metrics at {address}")
    return f"{', '.join(said)} (set by {CONFIG})"


def _warn(sentence: str) -> None:
    LOG.warning("breakeven guard: %s", sentence)
