"""What is typed of the places in a finding's command."""

from __future__ import annotations

from pathlib import Path

from breakeven.cli.places import places_of


def test_a_url_without_what_is_secret_in_it_and_without_the_path_of_its_page() -> None:
    typed = {"url": "http://me:s3cr3t@10.0.0.1:8000/metrics", "model": None}
    assert places_of(typed) == {"url": "http://10.0.0.1:8000"}


def test_words_of_a_shell() -> None:
    typed = {"calibration": Path("runs/my cal"), "hardware": "h100-sxm", "model": "a;b"}
    assert places_of(typed) == {"calibration": "'runs/my cal'", "hardware": "h100-sxm", "model": "'a;b'"}
