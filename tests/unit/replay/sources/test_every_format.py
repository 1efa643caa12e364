"""What holds of every source: long records come back, and worker processes can have it."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from breakeven.replay.sources import Source, open_source
from breakeven.trace.journal import RunWriter
from breakeven.trace.tokens import Header, RequestTokens, write_tokens
from tests.unit.replay.sources.test_run_source import a_run, recorded
from tests.unit.trace import builders

VOCABULARY = 1000


def a_file(folder: Path, ids: list[list[int]]) -> Source:
    lines = [json.dumps({"prompt_token_ids": one, "token_ids": one}) + "\n" for one in ids]
    (folder / "x.jsonl").write_text("".join(lines))
    return open_source(folder / "x.jsonl")


def a_gzip(folder: Path, ids: list[list[int]]) -> Source:
    path = folder / "x.jsonl.gz"
    path.write_bytes(gzip.compress(Path(a_file(folder, ids).origin.path).read_bytes(), 1))
    return open_source(path)


def a_zstd(folder: Path, ids: list[list[int]]) -> Source:
    path = folder / "x.jsonl.zst"
    with pa.output_stream(str(path)) as stream:
        stream.write(Path(a_file(folder, ids).origin.path).read_bytes())
    return open_source(path)


def a_list(folder: Path, ids: list[list[int]]) -> Source:
    records = [{"prompt_token_ids": one, "token_ids": one} for one in ids]
    (folder / "x.json").write_text(json.dumps(records))
    return open_source(folder / "x.json")


def a_parquet(folder: Path, ids: list[list[int]]) -> Source:
    pq.write_table(pa.table({"prompt_token_ids": ids, "token_ids": ids}), folder / "x.parquet")
    return open_source(folder / "x.parquet")


def a_finished_run(folder: Path, ids: list[list[int]]) -> Source:
    traces = [recorded(i, *one, prompt_token_ids=tuple(one)) for i, one in enumerate(ids)]
    return open_source(a_run(folder / "run", *traces))


def an_unfinished_run(folder: Path, ids: list[list[int]]) -> Source:
    writer = RunWriter.create(folder / "run", builders.meta(), builders.PROMPTS)
    for i, one in enumerate(ids):
        writer.append(recorded(i, *one, prompt_token_ids=tuple(one)))
    return open_source(folder / "run")


def a_run_tokenised_by_its_server(folder: Path, ids: list[list[int]]) -> Source:
    run = a_run(folder / "run", *(recorded(i, output_token_ids=None) for i in range(len(ids))))
    arrays = [np.array(one, np.int32) for one in ids]
    made = [RequestTokens(f"p#{i}", one, one, 0, True) for i, one in enumerate(arrays)]
    write_tokens(run, Header("server tokenizer"), made)
    return open_source(run)


def text(folder: Path, ids: list[list[int]]) -> Source:
    words = [" ".join(f"w{token}" for token in one) for one in ids]
    lines = [json.dumps({"prompt": one, "output": one}) + "\n" for one in words]
    (folder / "text.jsonl").write_text("".join(lines))
    return open_source(folder / "text.jsonl", tokenizer(folder))


def a_run_of_text(folder: Path, ids: list[list[int]]) -> Source:
    words = [" ".join(f"w{token}" for token in one) for one in ids]
    traces = [recorded(i, output_token_ids=None, text=one) for i, one in enumerate(words)]
    return open_source(a_run(folder / "run", *traces), tokenizer(folder))


def tokenizer(folder: Path) -> Path:
    """Of words w0, w1, …, which are their ids."""
    tokenizers = pytest.importorskip("tokenizers")
    words = {f"w{i}": i for i in range(VOCABULARY)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


every_source = pytest.mark.parametrize(
    "make",
    [
        a_file,
        a_gzip,
        a_zstd,
        a_list,
        a_parquet,
        a_finished_run,
        an_unfinished_run,
        a_run_tokenised_by_its_server,
        text,
        a_run_of_text,
    ],
)
Make = Callable[[Path, list[list[int]]], Source]


@every_source
def test_one_token_and_two_hundred_thousand(make: Make, tmp_path: Path):
    long = np.random.default_rng(0).integers(0, VOCABULARY, 200_000).tolist()
    one, many = make(tmp_path, [[5], long])
    assert one.output.tolist() == [5] and many.output.tolist() == long
    if make is not a_run_of_text:  # all of whose requests have the run's one prompt
        assert many.prompt.tolist() == long


@every_source
def test_a_copy_in_another_process_reads_the_same(make: Make, tmp_path: Path):
    source = make(tmp_path, [[1, 2], [3], [4, 5, 6]])
    fresh = pickle.loads(pickle.dumps(source))  # noqa: S301  made in the line itself
    expected = [request.output.tolist() for request in source]
    used = pickle.loads(pickle.dumps(source))  # noqa: S301
    for copy in (fresh, used):
        assert [request.output.tolist() for request in copy] == expected
        assert (copy.origin, copy.warnings, copy.skipped, copy.expected) == (
            source.origin,
            source.warnings,
            source.skipped,
            source.expected,
        )
