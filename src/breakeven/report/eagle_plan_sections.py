"""The plan of an EAGLE-3 head in sections: sentences and tables, formatted once for every output."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.eagle.plan.memory import TrainingMemory
from breakeven.eagle.plan.records import Plan
from breakeven.eagle.plan.runs import TrainingRun
from breakeven.forecast.records import TARGETS, Needed
from breakeven.report import eagle_plan_words as words
from breakeven.units import ABSENT, ratio, size

Row = tuple[str, ...]
BREAK_EVEN = TARGETS[0]


@dataclass(frozen=True, slots=True)
class Table:
    """The first cell of a row is its name."""

    headers: Row
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, what is said below it, and a table."""

    title: str
    sentences: tuple[str, ...]
    table: Table | None = None
    remarks: tuple[str, ...] = ()
    """Below the table."""


def sections(plan: Plan) -> tuple[Section, ...]:
    """All of the plan but its decision, in the order in which it is read."""
    return (
        acceptance(plan, every=True),
        _published(plan),
        data(plan),
        hours(plan),
        memory(plan),
        routes(plan),
        layers(plan),
        _assumed(plan),
    )


def acceptance(plan: Plan, every: bool) -> Section:
    """What the head must reach: at every concurrency, or in short at the one where it is decided."""
    shown = [one for one in plan.needed if every or one.concurrency == plan.concurrency]
    columns = ("k", "concurrency") if every else ("k",)
    where = "" if every else f" at concurrency {plan.concurrency}"
    return Section(
        "What the head must reach",
        (
            "Acceptance length (tokens of a step, the target's own among them) that a head needs which "
            f"drafts k tokens at every step{where}, by decode speedup; 1.00× is break-even.",
        ),
        Table(
            (*columns, *(f"for {ratio(target)}" for target in TARGETS), "published"),
            tuple(_needed(plan, one, every) for one in shown),
        ),
        (
            f"{ABSENT}: above k + 1, which no head reaches, or not published. Published are chains of "
            f"EAGLE-3 heads{words.whose_lengths(plan)}.",
            plan.basis.words,
            f"Drafting: {plan.basis.drafting}.",
        ),
    )


def _needed(plan: Plan, one: Needed, every: bool) -> Row:
    lengths = [
        words.interval(length) if every or target == BREAK_EVEN else f"{length.estimate:.2f}"
        for target, length in one.acceptance_length.items()
    ]
    within = [length.estimate <= one.k + 1 for length in one.acceptance_length.values()]
    cells = [said if can else ABSENT for said, can in zip(lengths, within, strict=True)]
    names = (str(one.k), str(one.concurrency)) if every else (str(one.k),)
    return (*names, *cells, words.published_at(plan, one.k))


def _published(plan: Plan) -> Section:
    headers = ("target", "samples", "tokens", "epochs", "GPUs", "GPU hours", "k", "length", "on", "source")
    return Section(
        "What published heads were trained on, and what they reached",
        ("As far as it was stated. A length belongs to its window and to its prompts.",),
        Table(headers, tuple(_run(run) for run in plan.runs)),
        tuple(f"{run.model}, {run.source}: {run.note}." for run in plan.runs if run.note),
    )


def _run(run: TrainingRun) -> Row:
    return (
        run.model,
        words.counted(run.samples),
        words.counted(run.tokens),
        ABSENT if run.epochs is None else f"{run.epochs:g}",
        words.devices_of(run),
        words.ends(run.gpu_hours_low, run.gpu_hours_high, "{:,.4g}"),
        words.counted(run.k),
        words.ends(run.acceptance_low, run.acceptance_high, "{:.2f}"),
        run.workloads or ABSENT,
        run.source,
    )


def data(plan: Plan) -> Section:
    """Samples, tokens and what their hidden states take."""
    asked, storage = plan.asked.data, plan.storage
    rows = [
        ("samples", f"{asked.samples:,}"),
        ("tokens of a sample", words.interval(asked.tokens_per_sample, 0)),
        ("of them generated", words.interval(asked.reply_tokens_per_sample, 0)),
        ("epochs", words.interval(asked.epochs, 0)),
        ("states of a token", size(storage.per_token)),
        ("states of a sample", words.sizes(storage.per_sample)),
        ("states of all, offline", words.sizes(storage.whole)),
        ("samples that fit on the disk", words.fitting(plan)),
    ]
    return Section(
        "Data and hidden states",
        (
            "States of a token: three layers and the last, 4 × hidden × 2 bytes. Offline they are kept on "
            "disk, online only those in flight are, and the target makes them again in every epoch.",
        ),
        Table(("figure", "value"), tuple(rows)),
    )


def hours(plan: Plan) -> Section:
    """GPU hours by what is done."""
    found, head, data = plan.hours, plan.head, plan.asked.data
    parts = (
        ("replies generated", found.generation),
        ("states, once", found.states_once),
        ("states, every epoch", found.states_every_epoch),
        ("head trained", found.training),
        ("all, offline", found.offline),
        ("all, online", found.online),
    )
    machine = plan.asked.machine
    return Section(
        "GPU hours",
        (
            f"Replies: a server of {machine.server_gpus} GPUs gives "
            f"{words.interval(found.replies_per_s, 0)} tokens a second with "
            f"{machine.generation_concurrency} requests in flight, by the same cost of a step.",
            f"States: {plan.asked.geometry.flops_per_token() / 1e9:,.1f} GFLOP a token, 2 for each active "
            "parameter; attention over other tokens is not counted, here and in training.",
            f"Training: {head.trained() / 1e6:,.0f} million parameters, 6 operations for each, token and "
            f"step; {data.steps} steps: "
            f"{head.flops_per_token(data.steps) / 1e9:,.1f} GFLOP a token and epoch.",
        ),
        Table(("for", "GPU hours"), tuple((name, words.hours(value)) for name, value in parts)),
        words.published_hours(plan),
    )


def memory(plan: Plan) -> Section:
    """Of each device."""
    headers = ("head", "weights", "gradients", "Adam", "frozen", "activations", "all")
    return Section(
        "Memory",
        (words.target_memory(plan),),
        Table(headers, tuple(_memory(one) for one in plan.memory)),
        (
            "Of each device, in training, one sample at a time without recomputation; frozen are the "
            "target's embedding and, of its output head, the rows of the draft vocabulary.",
        ),
    )


def _memory(one: TrainingMemory) -> Row:
    fixed = (one.weights, one.gradients, one.adam, one.frozen)
    name = "whole on each (DDP)" if one.sharing == "replicated" else f"sharded over {one.devices} (FSDP)"
    return (
        name,
        *(size(round(n)) for n in fixed),
        words.sizes(one.activations),
        words.sizes(one.total),
    )


def routes(plan: Plan) -> Section:
    """The ways in which target and training share the devices."""
    rows = tuple((one.way, one.possible, words.hours(one.gpu_hours), one.why) for one in plan.routes)
    return Section(
        "Ways to train it",
        (
            "offline: states on disk first, then training on all devices. online beside: some devices "
            "run the target, the others train. online together: each device holds a part of the target "
            "and trains.",
        ),
        Table(("way", "possible", "GPU hours", "why"), rows),
    )


def layers(plan: Plan) -> Section:
    """The three layers as each tool counts them."""
    rows = tuple((tool, ", ".join(map(str, ids))) for tool, ids in plan.layers.items())
    return Section(
        "Layers whose states are read",
        (
            "The same hidden states; vLLM and speculators name the layer whose input is read, SGLang and "
            "SpecForge the one whose output it is. A shift by one is silent, and costs acceptance.",
        ),
        Table(("tool", "layers"), rows),
    )


def _assumed(plan: Plan) -> Section:
    rows = tuple((one.name, words.figure(one.value), one.unit, one.source) for one in plan.assumed)
    return Section("Assumptions", (), Table(("figure", "value", "unit", "source"), rows))
