"""Stands in for the kubelets and the scheduler of a real cluster: leases, pods that run and end, and their logs.

No container runs. A pod of ours ends after `spare_s` with exit code 0; its log is OUTPUT.
"""

from __future__ import annotations

import http.server
import ssl
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.adapters.kubernetes.real_cluster import MERGE, RealCluster
from tests.support.kubernetes.kube_make import node

OUTPUT = b"the output of a check\n"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
PERIOD_S = 0.2


class RealKubelets:
    """The kubelets of all nodes. `silent` are nodes whose kubelet is dead: no lease, and no pod of theirs ends."""

    def __init__(self, cluster: RealCluster) -> None:
        self.cluster, self.nodes, self.silent = cluster, set[str](), set[str]()
        self.spare_s = 1.0
        self.failures: list[str] = []
        self._over = threading.Event()
        self._renewed: dict[str, float] = {}
        self._logs = _serve_logs(cluster.folder)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self._logs.shutdown()

    def add(self, name: str) -> None:
        """Let a node join, and wait until it is ready and open."""
        body = {"apiVersion": "v1", "kind": "Node", **node(name)}
        body["status"] |= {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._logs.server_address[1]}},
        }
        self.cluster.create(body)
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
        self.cluster.ask("POST", LEASES, {**lease, "spec": _lease(name)})
        self.nodes.add(name)
        ends_at = time.monotonic() + 60
        while any(one["key"].startswith("node.kubernetes.io") for one in self.read(name)["spec"].get("taints", [])):
            assert time.monotonic() < ends_at, self.read(name)
            time.sleep(PERIOD_S)

    def read(self, name: str) -> dict[str, Any]:
        return self.cluster.ask("GET", f"/api/v1/nodes/{name}")[1]

    def _run(self) -> None:
        while not self._over.wait(PERIOD_S):
            try:
                self._renew()
                for pod in self.cluster.ask("GET", "/api/v1/pods")[1]["items"]:
                    self._work(pod)
            except Exception as error:
                self.failures.append(repr(error))

    def _renew(self) -> None:
        for name in self.nodes - self.silent:
            if time.monotonic() - self._renewed.get(name, 0.0) > 1.0:
                self._renewed[name] = time.monotonic()
                self.cluster.ask("PATCH", f"{LEASES}/{name}", {"spec": _lease(name)}, **MERGE)

    def _work(self, pod: dict[str, Any]) -> None:
        meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        on = spec.get("nodeName")
        if on is None:
            if wanted := _wanted_node(spec):
                target = {"apiVersion": "v1", "kind": "Node", "name": wanted}
                binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]}, "target": target}
                self.cluster.ask("POST", f"{path}/binding", binding)
        elif on in self.silent:
            return
        elif meta.get("deletionTimestamp"):
            self.cluster.ask("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}})
        elif status.get("phase") == "Pending":
            self.cluster.ask("PATCH", f"{path}/status", {"status": _running()}, **MERGE)
        elif self._is_over(pod):
            self.cluster.ask("PATCH", f"{path}/status", {"status": _ended(spec)}, **MERGE)

    def _is_over(self, pod: dict[str, Any]) -> bool:
        is_spare = "assay.dev/spare" in pod["metadata"].get("labels", {}) and pod["status"].get("phase") == "Running"
        return is_spare and _age_s(pod["status"]["startTime"]) > self.spare_s


def _wanted_node(spec: dict[str, Any]) -> str:
    """Return the node that a pod's affinity names, as for a pod of ours."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms", []):
        for field in term.get("matchFields", []):
            return str(field["values"][0])
    return ""


def _lease(name: str) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"holderIdentity": name, "leaseDurationSeconds": 6, "renewTime": now}


def _running() -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
    return {"phase": "Running", "startTime": now, "conditions": [ready]}


def _ended(spec: dict[str, Any]) -> dict[str, Any]:
    container = spec["containers"][0]
    ended = {"exitCode": 0, "message": "said at the end", "reason": "Completed"}
    told = {"name": container["name"], "image": container["image"], "imageID": "", "ready": False, "restartCount": 0}
    return {"phase": "Succeeded", "containerStatuses": [{**told, "state": {"terminated": ended}}]}


def _age_s(text: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()


class _Logs(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(OUTPUT)))
        self.end_headers()
        self.wfile.write(OUTPUT)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the library's
        pass


def _serve_logs(folder: Path) -> http.server.ThreadingHTTPServer:
    """Serve every pod's log over HTTPS, as kubelets do for the API server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Logs)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
