"""`breakeven eagle evaluate` on a head that was trained here, against the target stepped with its drafts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("speculators")

from breakeven.eagle.head_file import load_head  # noqa: E402
from breakeven.eagle.recipe_file import read_recipe  # noqa: E402
from breakeven.eagle.sampling import verify_greedy  # noqa: E402
from breakeven.eagle.stage import required  # noqa: E402
from tests.e2e.command import Command, breakeven  # noqa: E402
from tests.e2e.small_recipe import write_data, write_recipe  # noqa: E402
from tests.e2e.small_target import small_target  # noqa: E402

pytestmark = [pytest.mark.eagle, pytest.mark.slow]

CHATS, K = 300, 4
TRAIN = {"steps": K, "loss": "kl", "epochs": 4, "batch": 8, "learning_rate": 2e-3, "warmup": 0.05}
EVALUATE = {"k": K, "max_tokens": 96, "prompts": 80}
PATIENCE_S = 900.0
THREADS = {"OMP_NUM_THREADS": "2"}
STEPPED = 12
"""Replies that the target steps through; it reads all that came before anew at every step."""
ALIKE = 0.97
"""Of the steps; near ties turn with the shape of a batch."""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With data/ in the target's own words, states/, train/ and evaluation/."""
    path = write_recipe(tmp_path_factory.mktemp("evaluate"), small_target(), train=TRAIN, evaluate=EVALUATE)
    write_data(path, CHATS, own=True)
    for stage in ("states", "train", "evaluate"):
        print(Command("eagle", stage, path, env=THREADS).end(PATIENCE_S).succeeded().out)
    return path


@pytest.fixture(scope="module")
def evaluation(recipe: Path) -> dict[str, Any]:
    return json.loads((folder_of(recipe) / "evaluation.json").read_text())


def folder_of(recipe: Path) -> Path:
    return read_recipe(recipe).stage("evaluation")


def replies(recipe: Path) -> Iterator[dict[str, Any]]:
    for line in (folder_of(recipe) / "replies.jsonl").read_text().splitlines():
        yield json.loads(line)


def stepped(model: Any, head: Any, layers: list[int], reply: dict[str, Any]) -> tuple[list[int], list[int]]:
    """What the target writes with the head's drafts, and how many it accepts by step. Nothing is cached."""
    prompt, output = reply["prompt_token_ids"], reply["output_token_ids"]
    ids, accepted = [*prompt, output[0]], []
    while len(ids) < len(prompt) + len(output):
        states = read(model, ids)[0]
        aux = torch.stack([states[layer][0, :-1] for layer in layers], dim=1)
        entries = head.entries(torch.tensor(ids[1:]), aux)
        chain = head.chains(entries, torch.tensor([len(entries) - 1]), K)
        drafts = [int(head.drafted(logits)[0]) for logits in chain]
        best = read(model, [*ids, *drafts])[1][len(ids) - 1 :]
        done = verify_greedy(best, drafts)
        accepted.append(done.accepted)
        ids += [*drafts[: done.accepted], done.token]
    return ids[len(prompt) :][: len(output)], accepted


def read(model: Any, ids: list[int]) -> tuple[Any, list[int]]:
    """Inputs of the layers, and the most probable token after each."""
    with torch.no_grad():
        out = model(input_ids=torch.tensor([ids]), output_hidden_states=True, use_cache=False)
    return out.hidden_states, out.logits[0].argmax(-1).tolist()


def recorded_steps(reply: dict[str, Any]) -> list[int]:
    """Accepted tokens of a server's steps, by the record; the last may be cut off by the end."""
    lengths, at, found = reply["acc_eagle3"]["acc_len"], 1, []
    while at < len(lengths):
        found.append(lengths[at] - 1)
        at += lengths[at]
    return found


def test_the_target_accepts_what_was_recorded(recipe: Path) -> None:
    """Step by step, and it writes the recorded reply whatever the head drafts."""
    from transformers import AutoModelForCausalLM

    read_ = read_recipe(recipe)
    model = AutoModelForCausalLM.from_pretrained(read_.beside(read_.target.model)).float().eval()
    layers = required(read_.stage("states"), "states").found["layers"]
    embedding = model.get_input_embeddings().weight.detach()
    depth = model.config.num_hidden_layers
    head = load_head(read_.stage("train") / "best", tuple(layers), depth, embedding, torch.device("cpu"))
    alike = steps = 0
    for reply, _ in zip(replies(recipe), range(STEPPED), strict=False):
        written, accepted = stepped(model, head, layers, reply)
        ours = recorded_steps(reply)
        if written == reply["output_token_ids"]:
            alike += sum(one == other for one, other in zip(ours[:-1], accepted[:-1], strict=False))
        steps += len(ours) - 1
    print(f"{alike} of {steps} steps accept as recorded")
    assert steps > 100 and alike >= ALIKE * steps


def test_a_head_that_has_learned_has_drafts_accepted(evaluation: dict[str, Any]) -> None:
    print(
        json.dumps({name: evaluation[name] for name in ("chained", "teacher_forced", "drafters", "combined")})
    )
    shares = [one["estimate"] for one in evaluation["chained"]["accepted_by_position"]]
    assert shares == sorted(shares, reverse=True) and shares[0] > 0.3
    assert evaluation["greedy_share"] > 0.99
    length = evaluation["chained"]["acceptance_length"]
    assert length["low"] < length["estimate"] < length["high"]
    assert length["low"] > 1.2


def test_a_first_draft_is_right_where_teacher_forcing_says(recipe: Path, evaluation: dict[str, Any]) -> None:
    """The first token of a chain is drafted from the target's own states, as in teacher forcing."""
    lines = (folder_of(recipe) / "replies.jsonl").read_text().splitlines()
    accepted = [count for line in lines for count in json.loads(line)["acc_eagle3"]["acc_len"][1:]]
    forced = evaluation["teacher_forced"]
    assert len(accepted) == forced["contexts"][0]
    right = sum(count > 1 for count in accepted) / len(accepted)
    assert right == pytest.approx(forced["agreement_by_position"][0]["estimate"])


def test_replay_and_forecast_read_the_record(recipe: Path, evaluation: dict[str, Any]) -> None:
    record = folder_of(recipe) / "replies.jsonl"
    own = ("--drafter", "recorded", "--set", "source=acc_eagle3", "--k", str(K))
    again = breakeven("replay", record, *own, "--json").succeeded().json()
    assert again["accepted_per_position"] == evaluation["chained"]["accepted_per_position"]
    assert again["tokens_per_step"] == pytest.approx(evaluation["chained"]["tokens_per_step"]["estimate"])
    rates = ",".join(f"{one['estimate']:.3f}" for one in evaluation["chained"]["accepted_by_position"])
    cost = ("--model", "qwen3-30b-a3b", "--hardware", "h100-sxm")
    head = ("--method", "eagle3", "--per-position", rates, "--ks", f"1-{K}", "--concurrency", "1")
    forecast = (
        breakeven("forecast", record, *cost, *head, "--drafter", "vllm-ngram", "--json").succeeded().json()
    )
    assert forecast


def test_once_more_changes_nothing(recipe: Path, evaluation: dict[str, Any]) -> None:
    before = {path.name: path.read_bytes() for path in folder_of(recipe).iterdir()}
    assert breakeven("eagle", "evaluate", recipe, "--json").succeeded().json() == evaluation
    assert {path.name: path.read_bytes() for path in folder_of(recipe).iterdir()} == before
