"""The files of a run folder, and their format.

    run.json          RunMeta
    prompts.jsonl     the prompts as asked
    journal.jsonl     a row per request as JSON, appended after each; only while the run is unfinished
    requests.parquet  the same rows, once it is finished (requests_file.py)
    tokens.jsonl      ids that the server's tokenizer made of the texts, where it reported none (tokens.py)

Where both hold requests, the journal is the newer: it goes only after the parquet is in place.

Format history (`format_version` in run.json; every older format still loads):
    1  0.1.0  the first
"""

from __future__ import annotations

FORMAT_VERSION = 1
META = "run.json"
PROMPTS = "prompts.jsonl"
JOURNAL = "journal.jsonl"
REQUESTS = "requests.parquet"
