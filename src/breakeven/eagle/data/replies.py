"""Replies by the target itself: a run of `breakeven measure` in the stage's folder, begun or gone on with."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from breakeven.client.asker import Asker
from breakeven.client.endpoint import Endpoint
from breakeven.client.load import ClosedLoop
from breakeven.client.openai import AskFor
from breakeven.client.tokenise import keep_tokens
from breakeven.client.transport import Pool
from breakeven.eagle.data.asking import Asking
from breakeven.eagle.recipe import DataSettings
from breakeven.errors import EndpointError, RunFormatError, UsageError
from breakeven.measure import MeasurePlan, measure_endpoint, resume_run
from breakeven.trace.disk import JOURNAL, META, REQUESTS
from breakeven.trace.files import storing
from breakeven.trace.prompts import prompts_digest
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import Run, RunMeta, load_run
from breakeven.trace.tokens import load_tokens
from breakeven.workload.prompts import Sampling

REFUSED = (400, 413, 422)
"""Of HTTP: what is asked is at fault, such as a prompt beyond the context, and asking again helps nobody."""
TELLS_IDS = ("vllm",)
"""Engines that take `return_token_ids`; others refuse it, or ignore it."""
S_PER_TEXT, LEAST_S = 1.0, 60.0
"""What llama.cpp's tokenizer may take for each reply, and for all; it needs some milliseconds."""
OnTrace = Callable[[RequestTrace], None]


async def replies(
    folder: Path, endpoint: Endpoint, asking: Asking, settings: DataSettings, on_trace: OnTrace
) -> Run:
    """Every prompt answered, or refused for good.

    What an earlier call has answered is kept, and only the rest is asked, at the concurrency of now.
    Raises EndpointError where some are to be asked again, and whatever `measure_endpoint` and `resume_run`
    raise; what was answered is kept then.
    """
    run = await _answered(folder, endpoint, plan_for(asking, settings), on_trace)
    failed = [trace.error for trace in run.traces() if trace.error is not None and not is_refused(trace)]
    if failed:
        raise EndpointError(
            f"{len(failed):,} of {len(run):,} requests failed, the last with: {failed[-1].message}; the "
            "others are kept"
        )
    return await _with_tokens(run, endpoint)


def plan_for(asking: Asking, settings: DataSettings) -> MeasurePlan:
    """As the recipe has it; no warm-up, since nothing is timed."""
    concurrency = min(settings.concurrency, len(asking.workload.prompts))
    return MeasurePlan(asking.workload, _sampling(settings), ClosedLoop(concurrency), warmup=0)


async def reach(endpoint: Endpoint, settings: DataSettings) -> None:
    """Raises EndpointError where no server answers, UsageError where it is not said which of its models is
    meant."""
    await _ask_for(endpoint, _sampling(settings))


def _sampling(settings: DataSettings) -> Sampling:
    return Sampling(
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        seed=settings.seed if settings.temperature else None,
    )


def left_to_ask(folder: Path, asking: Asking) -> int:
    """Prompts that no earlier call has got an answer to, or a refusal."""
    if not (folder / META).is_file():
        return len(asking.workload.prompts)
    done = sum(trace.error is None or is_refused(trace) for trace in load_run(folder).traces())
    return len(asking.workload.prompts) - done


def is_refused(trace: RequestTrace) -> bool:
    """Whether the server refused this prompt, as it would again."""
    return trace.error is not None and trace.error.status in REFUSED


async def _answered(folder: Path, endpoint: Endpoint, plan: MeasurePlan, on_trace: OnTrace) -> Run:
    if not (folder / META).is_file():
        _clear(folder)
        ask_for = await _ask_for(endpoint, plan.sampling)
        return await measure_endpoint(endpoint, plan, folder, ask_for=ask_for, on_trace=on_trace)
    run = load_run(folder)
    if (
        run.meta.workload.sha256 != prompts_digest(plan.workload.prompts)
        or run.meta.sampling != plan.sampling
    ):
        raise UsageError(
            f"{folder} answers other prompts, or with other settings, than the recipe has now: type  "
            "--ask-again  to have the target answer all of them anew, or put the recipe back"
        )
    if _is_whole(run, plan):
        return run
    ask_for = await _ask_for(endpoint, plan.sampling)

    def connect(meta: RunMeta) -> Endpoint:
        return replace(endpoint, api=meta.api, model=meta.model)

    return await resume_run(folder, connect, schedule=plan.schedule, ask_for=ask_for, on_trace=on_trace)


def _clear(folder: Path) -> None:
    """Remove what a kill leaves that came before the first question. Raises RunFormatError if there are
    answers."""
    for name in (JOURNAL, REQUESTS):
        if (folder / name).exists() and (folder / name).stat().st_size:
            raise RunFormatError(
                f"{folder} holds answers and no {META}: restore that, or type  --ask-again  to drop them"
            )
    if folder.exists():
        with storing(folder):
            shutil.rmtree(folder)


def _is_whole(run: Run, plan: MeasurePlan) -> bool:
    """A run that is void answers all the same: its self-check is of its pace."""
    if run.meta.status not in ("complete", "void"):
        return False
    return sum(trace.error is None or is_refused(trace) for trace in run.traces()) >= plan.requests


async def _ask_for(endpoint: Endpoint, sampling: Sampling) -> AskFor:
    """Token ids, of a server that tells them."""
    async with Pool() as pool:
        asker = await Asker.find(pool, endpoint, sampling)
    return AskFor(token_ids=asker.server.engine in TELLS_IDS)


async def _with_tokens(run: Run, endpoint: Endpoint) -> Run:
    """The run, with the ids that llama.cpp's tokenizer makes of it; a run that is timed waits less long."""
    if run.meta.server.engine != "llama.cpp":
        return run
    kept = load_tokens(run.path)
    if kept is None or kept.header.incomplete is not None:
        found = replace(endpoint, api=run.meta.api, model=run.meta.model)
        async with Pool() as pool:
            await keep_tokens(pool, found, run, max(LEAST_S, S_PER_TEXT * len(run)))
    return run
