"""The downloader against a real HTTP server that drops, lies, redirects and refuses."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from breakeven.errors import DownloadError, StorageError
from breakeven.models.download import ATTEMPTS, BACKOFF_S, Source, download
from breakeven.models.http import Location
from tests.unit.models.file_server import FileServer, Served

BODY = os.urandom(3_000_000)
DIGEST = hashlib.sha256(BODY).hexdigest()


def source(
    files: FileServer, path: str = "/f", sha256: str | None = DIGEST, size: int | None = None
) -> Source:
    return Source(Location.parse(files.url(path)), sha256, size)


def no_sleep(_seconds: float) -> None:
    """Backoff that waits for nothing."""


def left_over(target: Path) -> set[str]:
    return {path.name for path in target.parent.iterdir() if not path.name.endswith(".lock")}


def test_a_file_comes_whole_with_progress_and_leaves_nothing_else(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(BODY, etag='"1"')
    seen: list[tuple[int, int | None]] = []
    target = download(source(files), tmp_path / "new/f", lambda done, total: seen.append((done, total)))
    assert target.read_bytes() == BODY
    assert left_over(target) == {"f"}
    assert seen[-1] == (len(BODY), len(BODY)) and [done for done, _ in seen] == sorted(
        done for done, _ in seen
    )


def test_a_target_that_is_there_is_not_asked_for(files: FileServer, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    assert download(source(files), tmp_path / "f").read_bytes() == b"old"
    assert files.seen == []


@pytest.mark.parametrize("etag", ['"1"', 'W/"1"', None])
def test_dropped_connections_are_resumed(files: FileServer, tmp_path: Path, etag: str | None) -> None:
    files.paths["/f"] = Served(BODY, etag=etag, drop_after=[1_000_000, 500_000, 0])
    target = download(source(files), tmp_path / "f", sleep=no_sleep)
    assert target.read_bytes() == BODY
    assert [seen.headers["Range"] for seen in files.seen] == [
        None,
        "bytes=1000000-",
        "bytes=1500000-",
        "bytes=1500000-",
    ]
    assert files.seen[1].headers["If-Range"] == (etag if etag == '"1"' else None)
    assert left_over(target) == {"f"}


def test_without_etag_or_checksum_nothing_is_glued_together(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(BODY, drop_after=[1_000_000])
    target = download(source(files, sha256=None), tmp_path / "f", sleep=no_sleep)
    assert target.read_bytes() == BODY
    assert [seen.headers["Range"] for seen in files.seen] == [None, None]


def test_a_server_without_ranges_starts_again(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(BODY, etag='"1"', ranges=False, drop_after=[1_000_000])
    assert download(source(files), tmp_path / "f", sleep=no_sleep).read_bytes() == BODY


def test_a_file_that_changed_meanwhile_starts_again(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(b"x" * 3_000_000, etag='"old"', drop_after=[1_000_000] + [0] * ATTEMPTS)
    with pytest.raises(DownloadError, match="are kept: the same command goes on"):
        download(source(files), tmp_path / "f", sleep=no_sleep)
    files.paths["/f"] = Served(BODY, etag='"new"')
    assert download(source(files), tmp_path / "f", sleep=no_sleep).read_bytes() == BODY


@pytest.mark.parametrize("etag", ['"1"', None])
def test_a_part_longer_than_the_file_starts_again(
    files: FileServer, tmp_path: Path, etag: str | None
) -> None:
    files.paths["/f"] = Served(BODY, etag=etag)
    (tmp_path / "f.part").write_bytes(BODY + b"more")
    if etag:
        (tmp_path / "f.part.etag").write_text(etag)
    assert download(source(files), tmp_path / "f").read_bytes() == BODY


def test_a_part_that_is_whole_is_only_checked(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(BODY)
    (tmp_path / "f.part").write_bytes(BODY)
    assert download(source(files), tmp_path / "f").read_bytes() == BODY


def test_wrong_bytes_are_deleted_and_both_checksums_named(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(b"wrong")
    with pytest.raises(DownloadError) as caught:
        download(source(files), tmp_path / "f")
    assert f"expected sha256 {DIGEST}, got sha256 {hashlib.sha256(b'wrong').hexdigest()}" in str(caught.value)
    assert left_over(tmp_path / "f") == set()


def test_a_wrong_size_is_refused_before_it_is_fetched(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(BODY)
    with pytest.raises(DownloadError, match="3,000,000 bytes and 7 were expected"):
        download(source(files, size=7), tmp_path / "f")
    assert left_over(tmp_path / "f") == set()


def test_busy_servers_are_asked_again_with_growing_pauses(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(BODY, statuses=[503, 429, 500])
    pauses: list[float] = []
    download(source(files), tmp_path / "f", sleep=pauses.append)
    assert pauses == [BACKOFF_S, 2 * BACKOFF_S, 4 * BACKOFF_S]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_refusals_are_final(files: FileServer, tmp_path: Path, status: int) -> None:
    files.paths["/f"] = Served(BODY, statuses=[status] * 9)
    with pytest.raises(DownloadError, match=f"HTTP {status}"):
        download(source(files), tmp_path / "f", sleep=no_sleep)
    assert len(files.seen) == 1


def test_a_server_that_is_gone_is_given_up(tmp_path: Path) -> None:
    gone = Source(Location.parse("http://user:secret@127.0.0.1:9/f?token=secret"))
    with pytest.raises(DownloadError, match=r"cannot download http://127.0.0.1:9/f: ") as caught:
        download(gone, tmp_path / "f", sleep=no_sleep)
    assert "secret" not in str(caught.value) + repr(gone)


def test_credentials_stay_with_their_host(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(redirect="/here", needs="Basic dTpw")
    files.paths["/here"] = Served(redirect=files.url("/there", host="localhost"), needs="Basic dTpw")
    files.paths["/there"] = Served(BODY)
    where = Location.parse(files.url("/f", user="u:p"))
    assert download(Source(where, DIGEST), tmp_path / "f").read_bytes() == BODY
    assert [seen.headers["Authorization"] for seen in files.seen] == ["Basic dTpw", "Basic dTpw", None]


def test_a_range_survives_a_redirect(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(redirect=files.url("/there", host="localhost"))
    files.paths["/there"] = Served(BODY, etag='"1"', drop_after=[1_000_000])
    assert download(source(files), tmp_path / "f", sleep=no_sleep).read_bytes() == BODY
    assert files.seen[-1].headers["Range"] == "bytes=1000000-"


def test_a_redirect_to_a_local_file_is_refused(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(redirect="file:///etc/passwd")
    with pytest.raises(DownloadError):
        download(source(files), tmp_path / "f", sleep=no_sleep)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_a_storage_error(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(BODY)
    (tmp_path / "f.part").symlink_to("/dev/full")
    with pytest.raises(StorageError, match="No space left on device; free some space"):
        download(source(files), tmp_path / "f", sleep=no_sleep)
    assert not (tmp_path / "f").exists()


def test_a_disk_too_small_is_seen_at_once(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(BODY, headers={"Content-Length": str(10**18)})
    with pytest.raises(StorageError, match="are needed"):
        download(source(files, sha256=None), tmp_path / "f", sleep=no_sleep)


def test_a_folder_that_cannot_be_made_is_a_storage_error(files: FileServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        download(source(files), tmp_path / "file/f")


SCRIPT = """
import sys
from pathlib import Path
from breakeven.models.download import Source, download
from breakeven.models.http import Location
say = lambda done, total: print(done, flush=True)
download(Source(Location.parse(sys.argv[1]), sys.argv[2]), Path(sys.argv[3]), say)
"""


def start(files: FileServer, target: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, files.url("/f"), DIGEST, str(target)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def test_processes_that_pull_at_once_fetch_it_once(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(BODY, drop_after=[1_000_000])
    pullers = [start(files, tmp_path / "f") for _ in range(4)]
    for puller in pullers:
        puller.communicate(timeout=60)
    assert [puller.returncode for puller in pullers] == [0] * 4
    assert (tmp_path / "f").read_bytes() == BODY
    assert len(files.seen) == 2


def test_ctrl_c_leaves_the_part_for_the_next_time(files: FileServer, tmp_path: Path) -> None:
    files.paths["/f"] = Served(BODY, etag='"1"', stall_after=2_000_000)
    puller = start(files, tmp_path / "f")
    assert puller.stdout is not None
    puller.stdout.readline()
    puller.send_signal(signal.SIGINT)
    puller.communicate(timeout=30)
    kept = (tmp_path / "f.part").stat().st_size
    assert puller.returncode != 0 and 0 < kept < len(BODY)
    files.paths["/f"].stall_after = None
    assert download(source(files), tmp_path / "f").read_bytes() == BODY
    assert files.seen[-1].headers["Range"] == f"bytes={kept}-"
