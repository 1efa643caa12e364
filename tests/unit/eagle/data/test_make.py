"""The data stage as a whole, against a fake server in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.client.endpoint import ApiKey, Endpoint
from breakeven.client.load import ClosedLoop
from breakeven.client.loop import run as run_loop
from breakeven.eagle.data import collect
from breakeven.eagle.data.chats import id_of
from breakeven.eagle.data.make import REPLIES, Access, Watch, make_data
from breakeven.eagle.data.samples import SAMPLES, Sample, read_samples
from breakeven.eagle.data.turns import assistant, user
from breakeven.eagle.data.vocabulary import VOCABULARY, read_vocabulary
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.recipe_file import read_recipe
from breakeven.eagle.stage import Made, start_over
from breakeven.errors import EndpointError, UsageError
from breakeven.measure import MeasurePlan, measure_endpoint
from breakeven.servers.fake import OPENAI, FakeServer, Script, http_error
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import load_run
from breakeven.workload.prompts import Prompt, Sampling, Workload
from tests.unit.eagle.data.fake_target import TARGET_SIZE, said, write_fake_target
from tests.unit.eagle.data.plain import PlainTemplate, write_recipe, write_target

N = 12
SCRIPT = Script(ttft_s=0.0, tpot_s=0.0, n_tokens=20, reasoning_tokens=4, eos=True)
PROMPTS = [f"prompt number {number}" for number in range(N)]


class Served:
    """A fake server, and what its next requests get."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.refused: dict[str, int] = {}
        """Status by a word of the prompt."""
        self.script = SCRIPT

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def requests(self) -> int:
        return self.server.requests

    def direct(self, body: dict[str, Any], index: int) -> Script:
        said = json.dumps(body)
        for word, status in self.refused.items():
            if word in said:
                return http_error(status, "not now")
        return self.script


@contextmanager
def serving(**how: Any) -> Iterator[Served]:
    served: list[Served] = []
    server = FakeServer(lambda body, index: served[0].direct(body, index), **how)
    with server.in_thread():
        served.append(Served(server))
        yield served[0]


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as one:
        yield one


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fake_target(tmp_path_factory.mktemp("target"))


def recipe(folder: Path, target: Path, url: str | None, **settings: Any) -> Recipe:
    lines = [
        json.dumps({"prompt": prompt, "category": f"c{number % 3}"}) for number, prompt in enumerate(PROMPTS)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "a.jsonl").exists():
        (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    sources = settings.pop("sources", ["a.jsonl"])
    how = {"concurrency": 3, "max_tokens": 20, "held_out": 0.25, **settings}
    return read_recipe(write_recipe(folder, target, sources, url=url, **how))


def samples(made_from: Recipe) -> list[Sample]:
    return list(read_samples(made_from.stage("data") / SAMPLES))


def written(made_from: Recipe) -> tuple[bytes, bytes]:
    folder = made_from.stage("data")
    return (folder / SAMPLES).read_bytes(), (folder / VOCABULARY).read_bytes()


def test_the_target_answers_every_prompt_itself(served: Served, target: Path, tmp_path: Path) -> None:
    read = recipe(tmp_path, target, served.url)
    found = make_data(read).found
    assert served.requests == N
    assert (found["samples"], found["tokens"] > found["loss_tokens"]) == (N, True)
    assert found["loss_tokens"] == N * 20
    replies = sorted([*said(prompt, 19), 2] for prompt in PROMPTS)
    kept = samples(read)
    assert sorted(one.input_ids[one.loss_mask].tolist() for one in kept) == replies
    for one in kept:
        assert not one.loss_mask[: one.prompt_tokens].any() and one.loss_mask[one.prompt_tokens :].all()
    assert [one.id for one in kept] == sorted(one.id for one in kept)
    assert {one.category for one in kept} == {"c0", "c1", "c2"}
    assert found["held_out"] == sum(one.split == "held_out" for one in kept) > 0
    assert found["replies"]["engine"] == "vllm" and found["replies"]["requests"] == N
    run = load_run(read.stage("data") / REPLIES)
    assert all(trace.output_token_ids and trace.reasoning for trace in run.traces())
    assert any("training samples are few" in warning for warning in found["warnings"])


def test_the_vocabulary_is_of_what_is_trained_on(served: Served, target: Path, tmp_path: Path) -> None:
    read = recipe(tmp_path, target, served.url, draft_vocabulary=50)
    found = make_data(read).found
    vocabulary = read_vocabulary(read.stage("data") / VOCABULARY, TARGET_SIZE)
    trained = np.concatenate([one.input_ids[one.loss_mask] for one in samples(read) if one.split == "train"])
    assert vocabulary.size == found["draft_vocabulary"] == 50 and 2 in vocabulary.draft_ids
    assert vocabulary.coverage == found["coverage"] == np.isin(trained, vocabulary.draft_ids).mean()


def test_what_is_whole_is_not_made_again(served: Served, target: Path, tmp_path: Path) -> None:
    read = recipe(tmp_path, target, served.url)
    made = make_data(read)
    before = written(read)
    assert make_data(read) == made and written(read) == before
    assert served.requests == N


def test_what_failed_is_asked_again_and_nothing_else(served: Served, target: Path, tmp_path: Path) -> None:
    whole = recipe(tmp_path / "whole", target, served.url)
    make_data(whole)
    read = recipe(tmp_path / "broken", target, served.url)
    served.refused = {"number 1": 500}
    with pytest.raises(EndpointError, match=r"3 of 12 requests failed.*not now"):
        make_data(read)
    served.refused = {}
    before = served.requests
    made = make_data(read)
    assert served.requests - before == 3
    assert written(read) == written(whole)
    assert made.found["left_out"] == {}


def test_what_the_server_refuses_for_good_is_left_out(served: Served, target: Path, tmp_path: Path) -> None:
    read = recipe(tmp_path, target, served.url)
    served.refused = {"number 7": 400}
    found = make_data(read).found
    assert found["samples"] == N - 1 and found["left_out"] == {"failed request": 1}


@pytest.mark.parametrize("status", [401, 500])
def test_a_server_that_fails_always_is_given_up(
    status: int, served: Served, target: Path, tmp_path: Path
) -> None:
    read = recipe(tmp_path, target, served.url)
    served.refused = {"prompt": status}
    with pytest.raises(EndpointError):
        make_data(read)


def test_another_models_tokenizer_is_refused_before_all_is_asked(served: Served, tmp_path: Path) -> None:
    other = write_fake_target(tmp_path / "other", shift=7)
    read = recipe(tmp_path, other, served.url)
    with pytest.raises(UsageError, match="is not the server's"):
        make_data(read)
    assert served.requests < N and len(load_run(read.stage("data") / REPLIES)) > 0


def test_a_smaller_vocabulary_than_the_servers_is_refused(served: Served, tmp_path: Path) -> None:
    small = write_target(tmp_path / "small", 150)
    with pytest.raises(UsageError, match="beyond the vocabulary"):
        make_data(recipe(tmp_path, small, served.url))


def test_replies_are_kept_when_samples_are_made_anew(served: Served, target: Path, tmp_path: Path) -> None:
    read = recipe(tmp_path, target, served.url)
    make_data(read)
    other = recipe(tmp_path, target, served.url, max_length=24)
    with pytest.raises(UsageError, match="max_length = 2048, not 24"):
        make_data(other)
    start_over(other.stage("data"), keep=[REPLIES])
    found = make_data(other).found
    assert served.requests == N
    assert found["cut"] == N and all(len(one.input_ids) == 24 for one in samples(other))


@pytest.mark.parametrize("settings", [{"max_tokens": 7}, {"temperature": 0.5}, {"sources": ["brief"]}])
def test_replies_to_other_questions_are_not_taken(
    settings: dict[str, Any], served: Served, target: Path, tmp_path: Path
) -> None:
    read = recipe(tmp_path, target, served.url)
    make_data(read)
    other = recipe(tmp_path, target, served.url, **settings)
    start_over(other.stage("data"), keep=[REPLIES])
    with pytest.raises(UsageError, match="--ask-again"):
        make_data(other)
    start_over(other.stage("data"))
    assert make_data(other).found["samples"] > 0


def test_recorded_replies_make_the_same_samples(served: Served, target: Path, tmp_path: Path) -> None:
    first = recipe(tmp_path, target, served.url)
    make_data(first)
    run = first.stage("data") / REPLIES
    second = recipe(tmp_path / "second", target, None, sources=[str(run)], regenerate=False)
    found = make_data(second).found
    assert written(second) == written(first)
    assert found["replies"] is None and found["sources"] == {str(run): N}
    assert served.requests == N


def test_prompts_that_repeat_are_asked_once(served: Served, target: Path, tmp_path: Path) -> None:
    read = recipe(tmp_path, target, served.url, sources=["a.jsonl", "a.jsonl", "b.jsonl"])
    turns = [user(PROMPTS[3]), assistant("x"), user("And?")]
    (tmp_path / "b.jsonl").write_text(json.dumps({"messages": turns}))
    found = make_data(read).found
    assert served.requests == found["samples"] == N + 1
    assert found["duplicates"] == N + 1
    sides = {one.id: one.split for one in samples(read)}
    assert len(sides) == N + 1
    assert sides[id_of(tuple(turns))] == sides[id_of(tuple(turns[:1]))]


def test_tools_and_pictures_are_not_asked(served: Served, target: Path, tmp_path: Path) -> None:
    read = recipe(tmp_path, target, served.url, sources=["a.jsonl", "b.jsonl"])
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
    records = [{"messages": [picture]}, {"prompt": "x", "tools": [{"name": "f"}]}]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, records)))
    found = make_data(read).found
    assert found["samples"] == N
    assert found["left_out"] == {
        "definitions of tools, which the target is not asked with": 1,
        "pictures or sound": 1,
    }


def test_raw_completions_are_asked_as_such(served: Served, target: Path, tmp_path: Path) -> None:

    workload = Workload("raw", tuple(Prompt(f"p{n}", "code", text=f"def f{n}(") for n in range(3)))
    plan = MeasurePlan(workload, Sampling(5), ClosedLoop(1), warmup=0)
    run_loop(measure_endpoint(Endpoint(served.url, api="completions"), plan, tmp_path / "raw"))
    read = recipe(tmp_path, target, served.url, sources=["raw"])
    with pytest.raises(
        UsageError, match="completion without token ids: 3"
    ):  # the fake tells none of a prompt
        make_data(read)
    assert load_run(read.stage("data") / REPLIES).meta.api == "completions"
    with pytest.raises(UsageError, match="chats and raw completions"):
        make_data(recipe(tmp_path / "both", target, served.url, sources=["../raw", "a.jsonl"]))


def test_no_server_is_needed_without_regenerate_and_named_with_it(target: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'write  url = "http://HOST:PORT"'):
        make_data(recipe(tmp_path, target, None))
    with pytest.raises(UsageError, match="not a URL"):
        make_data(recipe(tmp_path, target, "http://a b"))
    assert not recipe(tmp_path, target, None).stage("data").exists()


def test_a_key_and_a_name_are_passed_on(target: Path, tmp_path: Path) -> None:
    with serving(api_key="sk-1", models=("a", "b")) as served:
        read = recipe(tmp_path, target, served.url)
        with pytest.raises(EndpointError, match="401"):
            make_data(read)
        with pytest.raises(UsageError, match="--model"):
            make_data(read, Access(api_key=ApiKey("sk-1")))
        made = make_data(read, Access("b", ApiKey("sk-1")))
    assert made.found["replies"]["model"] == "b"


class Told(Watch):
    def __init__(self) -> None:
        self.asked: list[int] = []
        self.done: list[str] = []

    def asks(self, prompts: int) -> None:
        self.asked.append(prompts)

    def answered(self, trace: RequestTrace) -> None:
        self.done.append(trace.id)

    def tokenises(self) -> None:
        self.done.append("replies")


def test_progress_counts_what_is_left(served: Served, target: Path, tmp_path: Path) -> None:
    read = recipe(tmp_path, target, served.url)
    served.refused = {"number 5": 503}
    first, second = Told(), Told()
    with pytest.raises(EndpointError):
        make_data(read, watch=first)
    served.refused = {}
    make_data(read, watch=second)
    assert (first.asked, second.asked) == ([N], [1])
    assert len(first.done) == N and second.done[-1] == "replies" and len(second.done) == 2


def text_only(
    folder: Path, target: Path, served: Served, monkeypatch: pytest.MonkeyPatch, **how: bool
) -> Made:
    """Replies of a server that tells no ids, as the template has them."""
    monkeypatch.setattr(collect, "TargetTemplate", lambda path: PlainTemplate(**how))
    served.script = replace(SCRIPT, dialect=OPENAI, usage="absent")
    return make_data(recipe(folder, target, served.url))


def test_without_ids_the_template_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(dialect=OPENAI) as served:
        made = text_only(tmp_path, write_target(tmp_path / "t"), served, monkeypatch)
    assert made.found["samples"] == N
    assert any("made into tokens again from text" in warning for warning in made.found["warnings"])
    assert any("no tokenizer.json" in warning for warning in made.found["warnings"])


def test_a_template_without_marks_that_proves_nothing_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(dialect=OPENAI) as served:
        served.script = SCRIPT
        monkeypatch.setattr(
            PlainTemplate, "text", lambda self, messages, tools, prompt: f"{prompt}{messages}"
        )
        with pytest.raises(UsageError, match=r"generation marks.*\{% generation %\}"):
            text_only(tmp_path, write_target(tmp_path / "t"), served, monkeypatch)


def test_nothing_to_learn_from_is_told_with_reasons(target: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing to learn from .*no reply: 12"):
        make_data(recipe(tmp_path, target, None, regenerate=False))


def test_a_prompt_that_fills_a_sample_is_left_out(served: Served, target: Path, tmp_path: Path) -> None:
    with (tmp_path / "b.jsonl").open("w") as file:
        file.write(json.dumps({"prompt": "x" * 400}))
    read = recipe(tmp_path, target, served.url, sources=["a.jsonl", "b.jsonl"], max_length=40)
    found = make_data(read).found
    assert found["samples"] == N and found["left_out"] == {"a prompt of max_length or more": 1}


def test_a_draft_vocabulary_without_room_is_refused_before_anything_is_asked(
    served: Served, tmp_path: Path
) -> None:
    target = write_target(tmp_path / "t", 5000, eos_token_id=list(range(20)))
    read = recipe(tmp_path, target, served.url, draft_vocabulary=19)
    with pytest.raises(UsageError, match="no room for the target's 20 special tokens"):
        make_data(read)
    assert served.requests == 0 and not read.stage("data").exists()


def test_replies_that_are_all_reasoning_are_told(served: Served, target: Path, tmp_path: Path) -> None:
    served.script = replace(SCRIPT, reasoning_tokens=20, eos=False, finish_reason="length")
    found = make_data(recipe(tmp_path, target, served.url)).found
    assert found["samples"] == N
    (said,) = [one for one in found["warnings"] if "before an answer began" in one]
    assert said.startswith("in 12 of 12 samples max_tokens cut") and "--ask-again" in said


def test_a_run_that_was_resumed_makes_the_same_samples(served: Served, target: Path, tmp_path: Path) -> None:
    """Its journal has a failure and an answer of the same request."""
    whole = recipe(tmp_path / "whole", target, served.url)
    make_data(whole)
    broken = recipe(tmp_path / "broken", target, served.url)
    served.refused = {"number 1": 500}
    with pytest.raises(EndpointError):
        make_data(broken)
    run = str(broken.stage("data") / REPLIES)
    half = recipe(tmp_path / "half", target, None, sources=[run], regenerate=False)
    found = make_data(half).found
    assert (found["samples"], found["left_out"]) == (N - 3, {"failed request": 3})
    served.refused = {}
    make_data(broken)
    with pytest.raises(UsageError, match=r"was begun with.*: put that back"):
        make_data(half)
    again = recipe(tmp_path / "again", target, None, sources=[run], regenerate=False)
    assert make_data(again).found["left_out"] == {}
    assert written(again) == written(whole)


def test_ask_again_drops_nothing_where_no_server_answers(
    served: Served, target: Path, tmp_path: Path
) -> None:
    read = recipe(tmp_path, target, served.url)
    make_data(read)
    before = written(read)
    gone = recipe(tmp_path, target, "http://127.0.0.1:9")
    with pytest.raises(EndpointError):
        make_data(gone, ask_again=True)
    assert written(read) == before and len(load_run(read.stage("data") / REPLIES)) == N
    make_data(read, ask_again=True)
    assert served.requests == 2 * N and written(read) == before


@pytest.mark.parametrize("wrong", [{"sources": ["none.jsonl"]}, {"draft_vocabulary": 1}])
def test_fresh_removes_nothing_that_a_wrong_recipe_cannot_make_again(
    wrong: dict[str, Any], served: Served, tmp_path: Path
) -> None:
    target = write_fake_target(tmp_path / "t")
    read = recipe(tmp_path, target, served.url)
    make_data(read)
    before = written(read)
    special = {"eos_token_id": [2, 3]}
    (target / "config.json").write_text(json.dumps({"vocab_size": TARGET_SIZE, **special}))
    with pytest.raises(UsageError):
        make_data(recipe(tmp_path, target, served.url, **wrong), fresh=True, ask_again=True)
    assert written(read) == before and (read.stage("data") / REPLIES).exists()


def test_what_is_left_is_asked_at_the_concurrency_of_now(
    served: Served, target: Path, tmp_path: Path
) -> None:
    whole = recipe(tmp_path / "whole", target, served.url)
    make_data(whole)
    served.refused = {"number 1": 500}
    with pytest.raises(EndpointError, match="3 of 12"):
        make_data(recipe(tmp_path / "one", target, served.url, concurrency=3))
    served.refused = {}
    slower = recipe(tmp_path / "one", target, served.url, concurrency=1)
    assert make_data(slower).settings["concurrency"] == 1
    run = load_run(slower.stage("data") / REPLIES)
    assert run.meta.schedule.concurrency == 1
    *_, first, second, third = sorted(run.traces(), key=lambda trace: trace.sent_ns)
    assert first.end_ns <= second.sent_ns and second.end_ns <= third.sent_ns
    assert written(slower) == written(whole)


@pytest.mark.parametrize("how", [{}, {"fresh": True}, {"ask_again": True}])
def test_a_second_one_meanwhile_is_refused_and_disturbs_nothing(
    how: dict[str, bool], served: Served, target: Path, tmp_path: Path
) -> None:
    read = recipe(tmp_path, target, served.url)
    make_data(read)
    before = written(read)

    class Disturbed(Watch):
        def asks(self, prompts: int) -> None:
            with pytest.raises(UsageError, match="another breakeven is at work"):
                make_data(read, **how)

    make_data(read, watch=Disturbed(), fresh=True)
    assert written(read) == before and served.requests == N
