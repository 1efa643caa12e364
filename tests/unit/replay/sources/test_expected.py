import gzip

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from breakeven.replay.sources import open_source

ROWS = [{"prompt_token_ids": [1], "output_token_ids": [2, 3]} for _ in range(5)]


@pytest.mark.parametrize(
    ("name", "expected"), [("a.jsonl", 5), ("a.parquet", 5), ("a.jsonl.gz", None), ("a.json", None)]
)
def test_a_source_says_about_how_many_requests_it_has(tmp_path, name: str, expected: int | None):
    path = tmp_path / name
    lines = b"".join(orjson.dumps(row) + b"\n" for row in ROWS)
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(lines))
    else:
        path.write_bytes(orjson.dumps(ROWS) if name.endswith(".json") else lines)
    source = open_source(path)
    assert source.expected == expected
    assert len(list(source)) == 5
