import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from breakeven.cli.models import models
from breakeven.errors import UsageError
from breakeven.report.model_terminal import parameters
from tests.unit.cost.gguf_files import tiny_metadata, tiny_tensors, write


def describe(*words: str) -> Result:
    return CliRunner().invoke(models, ["describe", *words], catch_exceptions=False, env={"COLUMNS": "100"})


def test_a_preset_in_words():
    said = describe("kimi-k2.5").output
    assert "kimi-k2.5: 1.03 T parameters, 32.9 B active per token" in said
    assert "8 of 384 and 1 shared per token" in said
    assert "122 AllReduces" in said


def test_a_dense_model_has_no_words_on_experts():
    said = describe("llama-3.1-8b").output
    assert "llama-3.1-8b: 8.03 B parameters\n" in said
    assert "expert" not in said


def test_json_describes_the_same_model_again(tmp_path: Path):
    first = json.loads(describe("kimi-k2.5", "--json").output)
    assert first["parameters_total"] == 1_026_408_209_408
    assert first["weight_bytes"] == sum(first["weight_bytes_by_part"].values())
    file = tmp_path / "kimi.json"
    file.write_text(json.dumps(first))
    second = json.loads(describe(str(file), "--json").output)
    assert second == first | {"model": str(file)}


def test_each_null_has_its_reason():
    found = json.loads(describe("llama-3.1-8b", "--json").output)
    assert {key for key, value in found.items() if value is None} == set(found["absent"])


def test_a_gguf_file(tmp_path: Path):
    path = write(tmp_path / "tiny.gguf", tiny_metadata(), tiny_tensors())
    found = json.loads(describe(str(path), "--json").output)
    assert found["geometry"]["architecture"] == "llama"
    again = tmp_path / "again.json"
    again.write_text(json.dumps(found))
    assert json.loads(describe(str(again), "--json").output)["weight_bytes"] == found["weight_bytes"]


def test_a_name_of_the_catalog_is_looked_up_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write(tmp_path / "tiny.gguf", tiny_metadata(), tiny_tensors())
    monkeypatch.setattr("breakeven.cli.geometry.resolve", lambda spec, watch: {"smollm2": path}[spec])
    assert "llama: 2 layers" in describe("smollm2").output


def test_what_is_no_model_lists_what_there_is():
    with pytest.raises(
        UsageError, match=r"kimi-k3 is neither .*did you mean kimi-k2\S*\? .*smollm2.*config\.json"
    ):
        describe("kimi-k3")


def test_names_from_a_file_cannot_write_to_the_terminal(tmp_path: Path):
    found = json.loads(describe("llama-3.1-8b", "--json").output)
    found["geometry"] |= {"architecture": "\x1b[31mred\ud800", "source": "\x1b]0;title\x07"}
    file = tmp_path / "x.json"
    file.write_text(json.dumps(found))
    assert "\x1b" not in describe(str(file)).output
    assert json.loads(describe(str(file), "--json").output)["geometry"]["architecture"].endswith("\ufffd")


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (134_515_008, "135 M"),
        (8_030_261_248, "8.03 B"),
        (999_600_000, "1.00 B"),
        (30_532_000_000, "30.5 B"),
        (1_026_000_000_000, "1.03 T"),
        (17_000, "0.02 M"),
    ],
)
def test_parameters_in_words(n: int, said: str):
    assert parameters(n) == said
