"""recipe.toml: what is read from it, and how each mistake is told."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from breakeven.eagle.recipe import DataSettings, Recipe, Target
from breakeven.eagle.recipe_file import LIMITS, SECTIONS, read_recipe
from breakeven.errors import UsageError

LEAST = '[target]\nmodel = "m"\n[data]\nsources = ["runs/a"]\n'


def read(folder: Path, text: str | bytes) -> Recipe:
    path = folder / "recipe.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_recipe(path)


def refused(folder: Path, text: str | bytes) -> str:
    with pytest.raises(UsageError) as caught:
        read(folder, text)
    return str(caught.value)


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    assert read(tmp_path, LEAST) == Recipe(path, Target("m"), DataSettings(("runs/a",)))


def test_the_starter_says_every_setting_and_its_default(tmp_path: Path) -> None:
    text = (files("breakeven.eagle") / "starter.toml").read_text()
    found = read(tmp_path, text)
    sources = ("runs/monday", "chats.jsonl")
    url = "http://localhost:8000/v1"
    assert found == Recipe(tmp_path / "recipe.toml", Target("models/qwen3", url), DataSettings(sources))
    commented = tomllib.loads(text.replace("# layers", "layers"))
    assert list(commented) == ["folder", *SECTIONS]
    for name, kind in SECTIONS.items():
        assert list(commented[name]) == [one.name for one in fields(kind)]


def test_every_number_has_limits() -> None:
    numbers = {one.name for kind in SECTIONS.values() for one in fields(kind) if one.type in ("int", "float")}
    assert numbers == set(LIMITS)


def test_paths_are_relative_to_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    found = read(tmp_path, f'folder = "heads/a"\n{LEAST}')
    assert found.stage("data") == tmp_path / "heads/a/data"
    assert found.beside("x.jsonl") == tmp_path / "x.jsonl"
    assert found.beside("/a/b") == Path("/a/b")
    assert found.beside("~/b") == Path("/home/someone/b")
    assert found.beside("~nobody-of-this-name/b") == tmp_path / "~nobody-of-this-name/b"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["no [target]", "breakeven eagle init"]),
        ('[target]\nmodel = "m"\n', ["no [data]"]),
        ("[target]\n[data]\n", ["[target] lacks model", 'model = "…"']),
        ('[target]\nmodel = "m"\n[data]\n', ["[data] lacks sources", 'sources = ["…", …]']),
        (LEAST + "[trian]\n", ["'trian'", "did you mean train?"]),
        (LEAST + "max_lenght = 5\n", ["[data]", "'max_lenght'", "did you mean max_length?"]),
        (LEAST + "max_length = 1.5\n", ["max_length is 1.5", "max_length = 8"]),
        (LEAST + "max_length = true\n", ["max_length is True"]),
        (LEAST + "max_length = 4\n", ["max_length is 4", "16 to"]),
        (LEAST + "max_length = 0x" + "f" * 9000 + "\n", ["max_length"]),
        (LEAST + "temperature = 0x" + "f" * 9000 + "\n", ["temperature"]),
        (LEAST + "held_out = 0.6\n", ["held_out is 0.6", "0 to 0.5"]),
        (LEAST + "held_out = nan\n", ["held_out is nan"]),
        (LEAST + "held_out = inf\n", ["held_out is inf"]),
        (LEAST + "seed = -1\n", ["seed is -1"]),
        (LEAST + "regenerate = 1\n", ["regenerate is 1", "regenerate = true"]),
        (LEAST.replace('["runs/a"]', "[]"), ["sources is []"]),
        (LEAST.replace('["runs/a"]', '[""]'), ["sources is ['']"]),
        (LEAST.replace('["runs/a"]', '"runs/a"'), ["sources is 'runs/a'", '["…", …]']),
        (LEAST.replace('["runs/a"]', "[1]"), ["sources is [1]"]),
        (LEAST.replace('"m"', '" "'), ["model is ' '"]),
        (LEAST.replace('"m"', r'"a\u0000b"'), ["model is"]),
        ("folder = 5\n" + LEAST, ["folder is 5"]),
        ('folder = ""\n' + LEAST, ["folder is ''"]),
        ("data = 5\n[target]\nmodel = 'm'\n", ["[data] is no table"]),
        ("[[data]]\n[target]\nmodel = 'm'\n", ["[data] is no table"]),
        (LEAST + '[states]\nsource = "hf"\n', ["source is 'hf'", '"transformers" or "vllm"']),
        (LEAST + "[states]\nlayers = []\n", ["layers is []"]),
        (LEAST + "[states]\nlayers = [0x" + "f" * 9000 + "]\n", ["layers is"]),
        (LEAST + '[export]\nengines = ["tgi"]\n', ["engines is ['tgi']"]),
        (LEAST + "[train]\nlearning_rate = 1979-05-27\n", ["learning_rate is datetime.date"]),
        ("[target", ["is no TOML"]),
        (b"\xff\xfe", ["is no TOML"]),
        ("a = " + "[" * 100_000, ["is no TOML"]),
        (b"#" * 1_000_001, ["more than 1,000,000 bytes"]),
    ],
)
def test_each_mistake_is_told_with_its_place(text: str | bytes, said: list[str], tmp_path: Path) -> None:
    message = refused(tmp_path, text)
    assert str(tmp_path / "recipe.toml") in message
    for words in said:
        assert words in message, message
    assert len(message) < 600


def test_a_file_that_is_not_there_or_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "no.toml", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            read_recipe(path)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**400, max_value=10**401)
    | st.floats()
    | st.text(max_size=8)
    | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=6,
)


def toml(value: Any) -> str:
    """A value as TOML; None becomes a word that is none."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(one):08x}" for one in value if not 0xD800 <= ord(one) < 0xE000) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(name)} = {toml(item)}" for name, item in value.items()) + "}"
    return str(value)


NAMES = st.sampled_from(
    [*(one.name for kind in SECTIONS.values() for one in fields(kind)), "folder", "other"]
)
TABLES = st.dictionaries(st.sampled_from([*SECTIONS, "other"]), st.dictionaries(NAMES, VALUES, max_size=4))


@given(TABLES, st.booleans())
def test_whatever_a_section_holds_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, tables: dict[str, dict[str, Any]], whole: bool
) -> None:
    given_tables = {"target": {"model": "m"}, "data": {"sources": ["a"]}} if whole else {}
    merged = {
        name: {**given_tables.get(name, {}), **tables.get(name, {})} for name in {**given_tables, **tables}
    }
    text = "".join(
        f"[{name}]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in items.items())
        for name, items in merged.items()
    )
    try:
        found = read(tmp_path_factory.mktemp("recipe"), text)
    except UsageError as error:
        assert len(str(error)) < 2000
    else:
        assert isinstance(found, Recipe) and found.data.sources


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf[target]")
def test_whatever_a_file_holds_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    with pytest.raises(UsageError):
        read(tmp_path_factory.mktemp("recipe"), data)
