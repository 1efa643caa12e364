"""What a change is made of, and that what cannot be changed is refused before anything is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from breakeven.client.endpoint import Endpoint
from breakeven.engines.speculation import SpeculationConfig
from breakeven.engines.trtllm import Trtllm
from breakeven.engines.vllm import Vllm
from breakeven.errors import UsageError
from breakeven.servers.operation_kinds import RunCommand, WriteFile
from breakeven.trial.live_change import operations_of
from breakeven.trial.live_service import Service
from tests.unit.servers import fake_service
from tests.unit.trial.live_service import NGRAM, Supervised

FILE = "/etc/engine.yaml"


class ByFile(Vllm):
    """Is told by a file, as TensorRT-LLM is."""

    def files(
        self, argv: Sequence[str], config: SpeculationConfig | None, version: str | None = None
    ) -> dict[str, str]:
        return {FILE: "speculation: on\n"}


class Elsewhere(Vllm):
    def elsewhere(self, argv: Sequence[str], environment: Mapping[str, str]) -> str | None:
        return "SPECULATE turns it on: take it out, and restart"


def service(**changes: object) -> Service:
    machine = fake_service.Machine()
    made = Service(
        Supervised(machine), Vllm(), machine, fake_service.FOUND, Endpoint("http://127.0.0.1:9"), {}
    )
    return replace(made, **changes)


def test_a_file_that_the_engine_reads_is_written_first():
    by_file = service(dialect=ByFile())
    first, *_ = operations_of(by_file, fake_service.CANDIDATE, NGRAM)
    assert isinstance(first, WriteFile) and first.path == FILE and first.before is None


def test_the_file_that_is_written_is_the_one_that_an_older_server_is_told_of():
    """Its settings have other names there, and so the file has another name."""
    old = service(dialect=Trtllm({}.get), found=replace(fake_service.FOUND, argv=("trtllm-serve", "m")))
    candidate = SpeculationConfig("mtp", 3)
    argv = old.candidate_argv(candidate, "1.1.0")
    first, *_ = operations_of(old, argv, candidate, "1.1.0")
    assert isinstance(first, WriteFile) and first.path == argv[-1]
    assert first.data is not None and b"num_nextn_predict_layers" in first.data


@pytest.mark.parametrize(("mode", "then"), [(0o600, 1), (0o640, 1), (0o644, 0), (None, 0)])
def test_a_copy_is_as_private_as_what_it_is_of(mode: int | None, then: int):
    """What the user's file holds may be for the service's own user only, who has to read the copy too."""
    machine = fake_service.Machine()
    path = "/srv/llm/conf/t.yaml"
    machine.files[path] = b"max_batch_size: 8\n"
    machine.modes = {} if mode is None else {path: mode}
    found = replace(
        fake_service.FOUND, argv=("trtllm-serve", "m", "--config", "conf/t.yaml"), folder="/srv/llm"
    )
    dialect = Trtllm({"conf/t.yaml": "max_batch_size: 8\n"}.get, "/run/breakeven")
    first, *others = operations_of(
        service(host=machine, dialect=dialect, found=found), found.argv, SpeculationConfig("mtp", 3)
    )
    assert isinstance(first, WriteFile) and first.mode == (0o644 if mode is None else mode)
    owners = [
        one.argv for one in others if isinstance(one, RunCommand) and one.argv and one.argv[0] == "chown"
    ]
    assert owners == [("chown", f"--reference={path}", "--", first.path)] * then


@pytest.mark.parametrize("kind", ["docker", "compose", "kubernetes", "attached"])
def test_a_file_that_cannot_be_put_there_is_refused_with_what_to_type(
    kind: str, monkeypatch: pytest.MonkeyPatch
):
    by_file = service(dialect=ByFile())
    monkeypatch.setattr(Supervised, "kind", kind)
    with pytest.raises(UsageError) as refused:
        by_file.candidate_argv(NGRAM, None)
    said = str(refused.value)
    assert "breakeven engine vllm --method ngram --k 3 --min-n 2 --max-n 4  prints" in said
    assert "breakeven trial --baseline-url URL --candidate-url URL" in said


def test_what_is_kept_is_made_for_good(monkeypatch: pytest.MonkeyPatch):
    for_good = (WriteFile("/etc/for-good", b"x"),)
    monkeypatch.setattr(Supervised, "keep", lambda self, found, argv: for_good)
    assert operations_of(service(), fake_service.CANDIDATE, NGRAM, for_good=True) == for_good
    assert operations_of(service(), fake_service.CANDIDATE, NGRAM) != for_good


def test_speculation_that_is_on_elsewhere_is_refused():
    with pytest.raises(UsageError, match="SPECULATE"):
        service(dialect=Elsewhere()).candidate_argv(NGRAM, None)


def test_the_change_is_of_the_command_line_alone():
    argv = service().candidate_argv(NGRAM, "0.32.0")
    assert argv[: len(fake_service.FOUND.argv)] == fake_service.FOUND.argv
    assert argv[len(fake_service.FOUND.argv)] == "--speculative-config"


def test_nothing_is_recovered_of_a_process_of_ours(monkeypatch: pytest.MonkeyPatch):
    verification = service(api_key_file="/run/key").verification()
    assert verification is not None
    assert (verification.url, verification.api_key_file) == ("http://127.0.0.1:9/v1", "/run/key")
    monkeypatch.setattr(Supervised, "kind", "process")
    assert service().verification() is None
