"""A trial through the real kubectl, against the API of a cluster in memory."""

import json
import os
import shutil
from pathlib import Path

import pytest

from breakeven.errors import ServerError, UsageError
from breakeven.servers.fake.kubernetes import FakeCluster
from breakeven.servers.host import LocalHost
from breakeven.servers.kubernetes.lifecycle import KubernetesLifecycle
from breakeven.servers.operation_kinds import operation_from_json
from tests.e2e.kubernetes_api import serving
from tests.unit.servers.containers import candidate, golden

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
ALL = (
    "kubernetes-deployment-shell.json",
    "kubernetes-deployment-sidecar.json",
    "kubernetes-statefulset.json",
)


@pytest.fixture(params=ALL)
def cluster(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake = FakeCluster(golden(request.param), scalers=golden("kubernetes-hpa.json")["items"])
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    with serving(fake) as url:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "gpu-cluster",
            "contexts": [{"name": "gpu-cluster", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {}}],
        }
        path = tmp_path / "config"
        path.write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(path))
        monkeypatch.setenv("HOME", str(tmp_path))
        yield fake


async def test_there_and_back(cluster: FakeCluster):
    host = LocalHost()
    before = cluster.spec()
    life = KubernetesLifecycle(host, "llm", cluster.resource)
    await life.check_rights()
    found = await life.inspect()
    assert any("HorizontalPodAutoscaler" in said for said in found.warnings) is (
        cluster.resource[-4:] == "chat"
    )
    (operation,) = life.change(found, candidate(found))
    entry = json.dumps(operation.to_json())
    await operation.do(host)
    await life.restart()
    assert "num_speculative_tokens" in json.dumps(cluster.spec()) or "--spec" in json.dumps(cluster.spec())
    assert (await life.state()).condition == "running"
    cluster.log = "INFO loading\nINFO ready\n"
    assert [line async for line in life.logs()] == ["INFO loading", "INFO ready"]
    for _ in range(2):
        await operation_from_json(json.loads(entry)).undo(host)
        assert cluster.spec() == before


async def test_what_is_not_there_and_what_is_not_allowed(cluster: FakeCluster):
    with pytest.raises(UsageError, match="there is no deployment/other"):
        await KubernetesLifecycle(LocalHost(), "llm", "deployment/other").inspect()
    cluster.may_patch = False
    with pytest.raises(UsageError, match="may not patch"):
        await KubernetesLifecycle(LocalHost(), "llm", cluster.resource).check_rights()


async def test_a_rollout_under_way_says_how_far_it_is(cluster: FakeCluster):
    cluster.pods[0]["status"]["containerStatuses"][0]["ready"] = False
    cluster.pods = cluster.pods[:1]
    cluster.workload["status"]["updatedReplicas"] = 0
    cluster.workload["status"]["readyReplicas"] = 0
    now = await KubernetesLifecycle(LocalHost(), "llm", cluster.resource).state()
    assert now.condition == "starting"
    assert now.detail.startswith("Waiting for ")


async def test_another_cluster_is_not_touched(cluster: FakeCluster):
    life = KubernetesLifecycle(LocalHost(), "llm", cluster.resource, context="other")
    with pytest.raises(ServerError, match="other"):
        await life.inspect()
