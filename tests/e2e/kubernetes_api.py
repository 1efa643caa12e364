"""FakeCluster behind the HTTP API of Kubernetes, as far as a real kubectl asks for it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from breakeven.servers.fake.kubernetes import FakeCluster

VERBS = ["get", "list", "watch", "patch"]


def resources(version: str, *kinds: tuple[str, str]) -> dict[str, Any]:
    listed = [
        {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": VERBS}
        for name, kind in kinds
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": listed}


def group(name: str, version: str) -> dict[str, Any]:
    versions = [{"groupVersion": f"{name}/{version}", "version": version}]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


GROUPS = [group("apps", "v1"), group("autoscaling", "v2"), group("authorization.k8s.io", "v1")]
DISCOVERY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": GROUPS},
    "/api/v1": resources("v1", ("pods", "Pod"), ("pods/log", "Pod")),
    "/apis/apps/v1": resources("apps/v1", ("deployments", "Deployment"), ("statefulsets", "StatefulSet")),
    "/apis/autoscaling/v2": resources(
        "autoscaling/v2", ("horizontalpodautoscalers", "HorizontalPodAutoscaler")
    ),
    "/apis/authorization.k8s.io/v1": resources(
        "authorization.k8s.io/v1", ("selfsubjectaccessreviews", "SelfSubjectAccessReview")
    ),
}


class Handler(BaseHTTPRequestHandler):
    """One request; `cluster` is set by `serving`."""

    cluster: FakeCluster

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in DISCOVERY:
            self._answer(200, DISCOVERY[path])
        elif path.endswith("/pods"):
            pods = [{"apiVersion": "v1", "kind": "Pod", **pod} for pod in self.cluster.pods]
            self._answer(200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods})
        elif path.endswith("/horizontalpodautoscalers"):
            scalers = self.cluster.scalers
            kind = {"kind": "HorizontalPodAutoscalerList", "apiVersion": "autoscaling/v2"}
            self._answer(200, {**kind, "metadata": {}, "items": scalers})
        elif path.endswith(("/deployments", "/statefulsets")):
            kind = {"kind": f"{self.cluster.workload['kind']}List", "apiVersion": "apps/v1"}
            self._answer(
                200, {**kind, "metadata": {"resourceVersion": "1"}, "items": [self.cluster.workload]}
            )
        elif path.endswith("/log"):
            self._bytes(200, self.cluster.log.encode(), "text/plain")
        elif "/pods/" in path:
            name = path.rpartition("/")[2]
            pod = next(pod for pod in self.cluster.pods if pod["metadata"]["name"] == name)
            self._answer(200, {"apiVersion": "v1", "kind": "Pod", **pod})
        else:
            self._answer(*self._workload(path))

    def do_POST(self) -> None:
        """A review of rights, which kubectl sends as protobuf."""
        self._body()
        review = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}}
        self._answer(201, {**review, "spec": {}, "status": {"allowed": self.cluster.may_patch}})

    def do_PATCH(self) -> None:
        status, found = self._workload(self.path.partition("?")[0])
        if status == 200:
            assert self.headers["Content-Type"] == "application/json-patch+json"
            words = ["patch", self.cluster.resource, "--type", "json", "--patch-file", "/dev/stdin"]
            namespace = self.cluster.workload["metadata"]["namespace"]
            done = self.cluster(("kubectl", "--namespace", namespace, *words), self._body())
            status, found = (
                (422, refusal(422, "Invalid", done.stderr)) if done.returncode else self._workload(self.path)
            )
        self._answer(status, found)

    def _workload(self, path: str) -> tuple[int, dict[str, Any]]:
        name = path.partition("?")[0].rpartition("/")[2]
        if name == self.cluster.workload["metadata"]["name"]:
            return 200, self.cluster.workload
        return 404, refusal(404, "NotFound", f'deployments.apps "{name}" not found')

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        self._bytes(status, json.dumps(value).encode(), "application/json")

    def _bytes(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Quiet."""


def refusal(code: int, reason: str, message: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


@contextmanager
def serving(cluster: FakeCluster) -> Iterator[str]:
    """Its URL, on a free port of this machine."""
    handler = type("ClusterHandler", (Handler,), {"cluster": cluster})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
