from pathlib import Path

import pytest

from breakeven.errors import UsageError
from breakeven.servers.attached.lifecycle import AttachedLifecycle
from breakeven.servers.compose.lifecycle import ComposeLifecycle
from breakeven.servers.docker.lifecycle import DockerLifecycle
from breakeven.servers.fake.host import FakeHost
from breakeven.servers.kubernetes.lifecycle import KubernetesLifecycle
from breakeven.servers.process import ProcessServer
from breakeven.servers.systemd.lifecycle import SystemdLifecycle
from breakeven.servers.targets import TargetOptions, full_name, lifecycle_of


def made(target: str, options: TargetOptions | None = None):
    host = FakeHost()
    lifecycle = lifecycle_of(target, host, options)
    assert host.touches == 0
    return lifecycle


def test_units():
    system, user = made("systemd:vllm.service"), made("systemd-user:vllm@1.service")
    assert isinstance(system, SystemdLifecycle)
    assert (system.target, user.target) == ("systemd:vllm.service", "systemd-user:vllm@1.service")


def test_a_container():
    lifecycle = made("docker:llm_vllm-1")
    assert isinstance(lifecycle, DockerLifecycle)
    assert lifecycle.name == "llm_vllm-1"


def test_a_service_of_a_file_whose_name_may_hold_a_hash():
    lifecycle = made("compose:/srv/a#b/compose.yaml#vllm")
    assert isinstance(lifecycle, ComposeLifecycle)
    assert (lifecycle.file, lifecycle.service) == ("/srv/a#b/compose.yaml", "vllm")


def test_a_files_path_is_made_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert made("compose:compose.yaml#vllm").file == f"{tmp_path}/compose.yaml"


@pytest.mark.parametrize(
    ("workload", "resource"),
    [("deployment", "deployment/a.b-c"), ("deploy", "deployment/a.b-c"), ("sts", "statefulset/a.b-c")],
)
def test_workloads(workload, resource):
    lifecycle = made(f"kubernetes:llm/{workload}/a.b-c")
    assert isinstance(lifecycle, KubernetesLifecycle)
    assert (lifecycle.namespace, lifecycle.resource) == ("llm", resource)


def test_an_attached_server():
    lifecycle = made("attached:localhost:8000")
    assert isinstance(lifecycle, AttachedLifecycle)
    assert lifecycle.endpoint.base_url == "http://localhost:8000/v1"


def test_a_process():
    assert isinstance(made("process:", TargetOptions(command=["vllm", "serve", "m"])), ProcessServer)


@pytest.mark.parametrize(
    "target",
    [
        *("", "vllm", "podman:vllm", "systemd", "docker:", "docker:--help", "docker:a b", "docker:a/b"),
        *("compose:compose.yaml", "compose:#vllm", "compose:compose.yaml#", "compose:a#--all"),
        *("kubernetes:deployment/a", "kubernetes:llm/pod/a", "kubernetes:llm/deployment/--all"),
        *("kubernetes:-A/deployment/a", "kubernetes:llm/deployment/a/b", "kubernetes:llm/deployment/A"),
        *("attached:ftp://x", "process:vllm", "process:"),
    ],
)
def test_what_names_no_server_is_refused(target):
    with pytest.raises(UsageError):
        made(target)


@pytest.mark.parametrize(
    ("typed", "full"),
    [
        ("systemd:vllm", "systemd:vllm.service"),
        ("systemd-user:vllm.service", "systemd-user:vllm.service"),
        ("docker:vllm", "docker:vllm"),
        ("compose:/srv/compose.yaml#vllm", "compose:/srv/compose.yaml#vllm"),
        ("compose:compose.yaml#vllm", f"compose:{Path.cwd()}/compose.yaml#vllm"),
        ("kubernetes:llm/deploy/vllm", "kubernetes:llm/deployment/vllm"),
        ("attached:localhost:8000", "attached:http://localhost:8000/v1"),
    ],
)
def test_a_target_that_is_typed_otherwise_is_the_same(typed: str, full: str):
    assert full_name(typed) == full
