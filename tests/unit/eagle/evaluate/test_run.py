"""The stage: what it writes, that it goes on where it was, and what it refuses."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from breakeven.eagle.data.samples import SAMPLES, read_samples, write_samples  # noqa: E402
from breakeven.eagle.evaluate import journal  # noqa: E402
from breakeven.eagle.evaluate.as_json import evaluation_json  # noqa: E402
from breakeven.eagle.evaluate.run import FILE, FOLDER, evaluate  # noqa: E402
from breakeven.eagle.stage import read_made  # noqa: E402
from breakeven.errors import RunFormatError, UsageError  # noqa: E402
from breakeven.replay.run import replay_source  # noqa: E402
from breakeven.replay.sources import open_source  # noqa: E402
from tests.unit.eagle.evaluate.stages import RECIPE, SAMPLED, write_stages  # noqa: E402
from tests.unit.eagle.tiny_head import TINY, random_tensors, write_head  # noqa: E402

pytestmark = pytest.mark.eagle


class Watched:
    """Counts replies; `stop_at` many are let be done."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.total, self.done, self._stop_at = None, 0, stop_at

    def set_total(self, total: int | None) -> None:
        self.total = total

    def advance(self, n: int = 1, note: str | None = None) -> None:
        self.done += n
        if self.done == self._stop_at:
            raise KeyboardInterrupt


def test_the_record_replays_to_the_figures_that_were_written(tmp_path: Path):
    recipe, watch = write_stages(tmp_path), Watched()
    made = evaluate(recipe, watch)
    assert (watch.total, watch.done) == (9, 9)
    folder = recipe.stage(FOLDER)
    written = orjson.loads((folder / FILE).read_bytes())
    assert written == orjson.loads(orjson.dumps(evaluation_json(made)))
    source = open_source(folder / journal.FILE)
    again = replay_source(source, "recorded", {"source": journal.COLUMN, "k": 3}, jobs=1)
    assert written["chained"]["accepted_per_position"] == list(again.total.counters.accepted_per_position)
    assert written["chained"]["tokens_per_step"]["estimate"] == pytest.approx(again.total.tokens_per_step)
    assert written["k"] == 3 and set(written["by_category"]) == {"a", "b"}
    assert made.total.chained.acceptance.counters.accepted_tokens > 20
    assert max(len(request.output) for request in source) == 23
    stage = read_made(folder)
    assert stage.found["replies"] == 9 and set(stage.outputs) == {FILE, journal.FILE}


def test_a_head_that_the_replies_follow_ranks_above_drafters_without_training(tmp_path: Path):
    made = evaluate(write_stages(tmp_path), Watched())
    assert made.rivals[0].drafter == journal.COUNTS == made.combined.best_single
    assert made.combined.tokens_per_step >= made.rivals[0].tokens_per_step


def test_interrupted_it_goes_on_and_ends_with_the_same_bytes(tmp_path: Path):
    recipe = write_stages(tmp_path)
    evaluate(recipe, Watched())
    folder = recipe.stage(FOLDER)
    whole = {name: (folder / name).read_bytes() for name in (FILE, journal.FILE)}
    shutil.rmtree(folder)
    with pytest.raises(KeyboardInterrupt):
        evaluate(recipe, Watched(stop_at=4))
    path = folder / journal.FILE
    path.write_bytes(path.read_bytes() + whole[journal.FILE][len(path.read_bytes()) :][:50])
    assert read_made(folder) is None
    watch = Watched()
    evaluate(recipe, watch)
    assert watch.done == 9
    assert {name: (folder / name).read_bytes() for name in whole} == whole


def test_a_second_one_meanwhile_is_refused_and_disturbs_nothing(tmp_path: Path):
    recipe = write_stages(tmp_path)
    first = evaluation_json(evaluate(recipe, Watched()))

    class Disturbed(Watched):
        def advance(self, n: int = 1, note: str | None = None) -> None:
            with pytest.raises(UsageError, match="another breakeven is at work"):
                evaluate(recipe, Watched(), fresh=True)
            super().advance(n, note)

    watch = Disturbed()
    assert evaluation_json(evaluate(recipe, watch, fresh=True)) == first
    assert watch.done == 9


def test_a_whole_stage_is_not_drafted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    recipe = write_stages(tmp_path)
    first = evaluation_json(evaluate(recipe, Watched()))
    monkeypatch.setattr("breakeven.eagle.evaluate.run._work", None)
    assert evaluation_json(evaluate(recipe, Watched())) == first


def test_another_head_asks_for_a_fresh_stage(tmp_path: Path):
    recipe = write_stages(tmp_path)
    evaluate(recipe, Watched())
    other = write_head(tmp_path / "other", TINY, random_tensors(TINY, seed=1))
    with pytest.raises(UsageError, match="--fresh"):
        evaluate(recipe, Watched(), other)
    shutil.rmtree(recipe.stage(FOLDER))
    shutil.rmtree(recipe.stage("train"))
    made = evaluate(recipe, Watched(), other)
    assert made.head == str(other) and made.rivals[0].tokens_per_step < 1.5


def nameless(folder: Path) -> Path:
    """Its head names no layers."""
    return write_head(folder, replace(TINY, layers=()), random_tensors(TINY))


def test_a_head_that_names_no_layers_is_evaluated_on_those_that_engines_choose(tmp_path: Path):
    recipe = write_stages(tmp_path)
    named = evaluate(recipe, Watched())
    assert not any("aux_hidden_state" in note for note in named.warnings)
    made = evaluate(recipe, Watched(), nameless(tmp_path / "head"), fresh=True)
    ours, theirs = evaluation_json(made), evaluation_json(named)
    assert all(ours[name] == theirs[name] for name in ("chained", "teacher_forced", "drafters"))
    assert any("given layers [2, 4, 5], as engines" in note for note in made.warnings)


def test_on_states_of_others_it_is_refused_and_nothing_is_begun(tmp_path: Path):
    recipe = write_stages(tmp_path)
    whole = recipe.stage("states") / "stage.json"
    said = orjson.loads(whole.read_bytes())
    said["found"]["layers"] = [1, 4, 5]
    whole.write_bytes(orjson.dumps(said))
    head = nameless(tmp_path / "head")
    with pytest.raises(UsageError, match='write  "eagle_aux_hidden_state_layer_ids"'):
        evaluate(recipe, Watched(), head)
    assert not recipe.stage(FOLDER).exists()


def test_fresh_removes_nothing_before_the_head_is_found_to_fit(tmp_path: Path):
    recipe = write_stages(tmp_path)
    first = evaluation_json(evaluate(recipe, Watched()))
    other = write_head(tmp_path / "other", TINY, random_tensors(TINY, seed=1))
    (other / "head.safetensors").write_bytes(b"cut")
    with pytest.raises(UsageError, match="damaged"):
        evaluate(recipe, Watched(), other, fresh=True)
    assert evaluation_json(evaluate(recipe, Watched())) == first
    assert evaluation_json(evaluate(recipe, Watched(), fresh=True)) == first


def test_a_record_that_changed_since_is_not_summed_up(tmp_path: Path):
    recipe = write_stages(tmp_path)
    first = evaluation_json(evaluate(recipe, Watched()))
    path = recipe.stage(FOLDER) / journal.FILE
    lines = path.read_bytes().splitlines(keepends=True)
    for change in (lambda: path.write_bytes(b"".join(lines[1:])), path.unlink):
        change()
        with pytest.raises(RunFormatError, match="breakeven eagle evaluate RECIPE --fresh"):
            evaluate(recipe, Watched())
    assert evaluation_json(evaluate(recipe, Watched(), fresh=True)) == first


def test_a_recipe_that_was_edited_since_is_refused(tmp_path: Path):
    """What the replies were written at is as the recipe says."""
    recipe = write_stages(tmp_path)
    edited = replace(recipe, data=replace(recipe.data, temperature=1.0))
    with pytest.raises(UsageError, match=r"temperature = 0\.0, and .* says 1\.0 by now"):
        evaluate(edited, Watched())


def test_sampled_replies_have_figures_for_sampled_drafts(tmp_path: Path):
    greedy = evaluate(write_stages(tmp_path), Watched())
    assert greedy.temperature == 1 and greedy.total.teacher_forced.sampled_by_position is None
    (tmp_path / "sampled").mkdir()
    recipe = RECIPE.replace("[data]", SAMPLED).replace("k = 3", "k = 3\ntemperature = 1.0")
    made = evaluate(write_stages(tmp_path / "sampled", recipe), Watched())
    assert len(made.total.teacher_forced.sampled_by_position) == 3
    assert any("sampled at temperature 1" in note for note in made.warnings)


def test_states_that_do_not_belong_to_the_replies_are_doubted(tmp_path: Path):
    """The states here are random, and the replies are said to be the target's most probable."""
    made = evaluate(write_stages(tmp_path), Watched())
    assert made.greedy_share < 0.5
    assert any("only" in note and "most probable" in note for note in made.warnings)


def test_earlier_stages_are_asked_for_by_name(tmp_path: Path):
    recipe = write_stages(tmp_path)
    for name in ("train", "states", "data"):
        shutil.move(recipe.stage(name), tmp_path / "aside")
        with pytest.raises(UsageError, match=f"breakeven eagle {name} RECIPE"):
            evaluate(recipe, Watched())
        shutil.move(tmp_path / "aside", recipe.stage(name))


def test_without_held_out_prompts_it_says_what_to_write(tmp_path: Path):
    with pytest.raises(UsageError, match="held_out"):
        evaluate(write_stages(tmp_path, held_out=0), Watched())


def test_a_sample_without_states_is_named(tmp_path: Path):
    recipe = write_stages(tmp_path)
    index = recipe.stage("states") / "shards.jsonl"
    index.write_bytes(b"".join(index.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(UsageError, match="no states of sample s00"):
        evaluate(recipe, Watched())


def test_a_damaged_shard_is_named_before_anything_is_drafted(tmp_path: Path):
    recipe = write_stages(tmp_path)
    shard = recipe.stage("states") / "shard-00004.safetensors"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(RunFormatError, match="shard-00004"):
        evaluate(recipe, Watched())
    assert not journal.lines(recipe.stage(FOLDER) / journal.FILE)


def test_states_of_other_samples_are_refused(tmp_path: Path):
    recipe = write_stages(tmp_path)
    samples = list(read_samples(recipe.stage("data") / SAMPLES))
    write_samples(recipe.stage("data") / SAMPLES, samples[::-1])
    with pytest.raises(UsageError, match="eagle states RECIPE --fresh"):
        evaluate(recipe, Watched())


@pytest.mark.parametrize("name", ["target.safetensors", "target_config.json"])
def test_a_damaged_target_is_named(name: str, tmp_path: Path):
    recipe = write_stages(tmp_path)
    (recipe.stage("states") / name).write_bytes(b"no")
    with pytest.raises(RunFormatError, match=r"lacks its target.*--recheck"):
        evaluate(recipe, Watched())


def test_no_folder_of_a_head(tmp_path: Path):
    with pytest.raises(UsageError, match="there is no folder"):
        evaluate(write_stages(tmp_path), Watched(), tmp_path / "nowhere")


DYING = """
import os, signal, sys
from pathlib import Path
from breakeven.eagle.evaluate.run import evaluate
from breakeven.eagle.recipe_file import read_recipe

class Watch:
    def set_total(self, total): pass
    def advance(self, n=1, note=None): pass

write, calls = os.write, []  # of lines

def dying(descriptor, data):
    if bytes(data[:5]) == b'{"id"':
        calls.append(data)
    if len(calls) == 5:
        write(descriptor, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return write(descriptor, data)

os.write = dying
evaluate(read_recipe(Path(sys.argv[1])), Watch())
"""


def test_killed_in_the_middle_of_a_line_it_ends_with_the_same_bytes(tmp_path: Path):
    recipe = write_stages(tmp_path)
    evaluate(recipe, Watched())
    path = recipe.stage(FOLDER) / journal.FILE
    whole = path.read_bytes()
    shutil.rmtree(recipe.stage(FOLDER))
    died = subprocess.run([sys.executable, "-c", DYING, recipe.path], timeout=300)
    assert died.returncode == -signal.SIGKILL
    left = path.read_bytes()
    assert left == whole[: len(left)] and left.count(b"\n") == 4 and not left.endswith(b"\n")
    evaluate(recipe, Watched())
    assert path.read_bytes() == whole
