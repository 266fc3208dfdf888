"""A real Kubernetes for slow tests: etcd, kube-apiserver and kube-controller-manager on loopback, without kubelets.

`tools/kubernetes-server` builds them. The kubelets are `real_kubelets.RealKubelets`.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trustme
import urllib3
import yaml
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.support.kubernetes.kube_make import pod
from tests.support.kubernetes.kube_rights import MANIFEST, documents_of
from tests.support.reserved_ports import reserve_ports

HOME = Path(
    os.environ.get("ASSAY_KUBERNETES") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "assay/kubernetes")
)
PROGRAMS = {name: HOME.expanduser() / "bin" / name for name in ("etcd", "kube-apiserver", "kube-controller-manager")}
ISSUER, AUDIT = "https://kubernetes.default.svc", "audit.log"
READY_WITHIN_S = 120.0
NODE_GRACE_S = 6
MERGE = {"Content-Type": "application/merge-patch+json"}
PLURALS = {"PriorityClass": "priorityclasses"}


class RealCluster:
    """One cluster whose files lie in `folder`. `admin` may do everything; `assay` is the manifest's service account."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.etcd_port, self.peer_port, self.port = reserve_ports(3)
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._authority, self._key = trustme.CA(), rsa.generate_private_key(65537, 2048)
        self._pool = urllib3.PoolManager(ca_certs=str(folder / "ca.pem"))

    @property
    def address(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start all daemons and apply the manifest. Raises AssertionError with the end of a log if one does not run."""
        self._write_keys()
        etcd = f"http://127.0.0.1:{self.etcd_port}"
        peer = f"http://127.0.0.1:{self.peer_port}"
        self.spawn(
            "etcd",
            *(f"--data-dir={self.folder / 'etcd'}", f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}"),
            *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", "--unsafe-no-fsync"),
            f"--initial-cluster=default={peer}",
        )
        self.spawn("kube-apiserver", *self._apiserver_flags(etcd))
        self.wait_for("the API server", lambda: self.ask("GET", "/readyz")[0] == 200)
        self.spawn("kube-controller-manager", *self._manager_flags())
        self.wait_for("kube-system", lambda: self.ask("GET", "/api/v1/namespaces/kube-system")[0] == 200)
        for document in documents_of(MANIFEST):
            self.create(document)
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})

    def stop(self) -> None:
        """End all daemons, the store last."""
        for process in reversed(self.daemons.values()):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def spawn(self, name: str, *flags: str) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        self.daemons[name] = subprocess.Popen([PROGRAMS[name], *flags], cwd=self.folder, stdout=log, stderr=log)

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str = "admin", **headers: str
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Return the status, the JSON and the headers of an answer."""
        given = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **headers}
        content = None if body is None else json.dumps(body)
        answer = self._pool.request(
            method, self.address + path, body=content, headers=given, retries=False, timeout=30.0
        )
        told = answer.json() if answer.data[:1] == b"{" else {"text": answer.data.decode()}
        return answer.status, told, dict(answer.headers)

    def create(self, document: dict[str, Any]) -> dict[str, Any]:
        """Create an object of the manifest's form; one that is there is no error."""
        status, told, _ = self.ask("POST", path_of(document), document)
        assert status in (201, 409), told
        return told

    def run_pod(self, name: str, on: str, owner: str = "train") -> None:
        """Create a customer's pod in `ml`, and wait until its kubelet says that it runs."""
        body = pod(name, on, kind="", owner=owner)
        del body["status"], body["spec"]["priority"]
        body["metadata"]["namespace"] = "ml"
        self.create({"apiVersion": "v1", "kind": "Pod", **body})
        path = f"/api/v1/namespaces/ml/pods/{name}"
        self.wait_for(name, lambda: self.ask("GET", path)[1].get("status", {}).get("phase") == "Running")

    def protect(self, name: str, owner: str, at_least: int) -> str:
        """Create a PodDisruptionBudget in `ml`; return its path."""
        spec = {"minAvailable": at_least, "selector": {"matchLabels": {"app": owner}}}
        meta = {"name": name, "namespace": "ml"}
        self.create({"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec})
        return f"/apis/policy/v1beta1/namespaces/ml/poddisruptionbudgets/{name}"

    def is_counted(self, budget: str) -> bool:
        """Say whether the disruption controller has seen a budget as it is now."""
        told = self.ask("GET", budget)[1]
        return bool(told.get("status", {}).get("observedGeneration") == told["metadata"].get("generation"))

    def compact(self) -> None:
        """Let etcd forget every revision but the last, as it does every five minutes in a real cluster."""
        revision = self._etcd("kv/range", {"key": base64.b64encode(b"\0").decode(), "limit": "1"})["header"]["revision"]
        self._etcd("kv/compaction", {"revision": revision, "physical": True})

    def issue_token(self, expires_in_s: float) -> str:
        """Return a token of the service account, as the API server would have signed it some time ago.

        The API server takes a token for one minute longer than it lives.
        """
        account = self.ask("GET", "/api/v1/namespaces/assay/serviceaccounts/assay")[1]["metadata"]
        now = time.time()
        claims = {
            "iss": ISSUER,
            "aud": [ISSUER],
            "iat": int(now - 3600),
            "nbf": int(now - 3600),
            "exp": int(now + expires_in_s),
            "sub": "system:serviceaccount:assay:assay",
            "kubernetes.io": {"namespace": "assay", "serviceaccount": {"name": "assay", "uid": account["uid"]}},
        }
        parts = [{"alg": "RS256", "kid": self._key_id()}, claims]
        signed = b".".join(_base64url(json.dumps(part).encode()) for part in parts)
        signature = self._key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
        return (signed + b"." + _base64url(signature)).decode()

    def kubeconfig(self, name: str, **user: str) -> Path:
        """Write a kubeconfig for a user, such as `token="admin"` or `tokenFile=PATH`."""
        cluster = {"server": self.address, "certificate-authority": str(self.folder / "ca.pem")}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "real",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "we", "user": user}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "we"}}],
        }
        path = self.folder / f"kubeconfig-{name}"
        path.write_text(yaml.safe_dump(content))
        return path

    def audited(self, user: str, since: datetime) -> Iterable[dict[str, Any]]:
        """Yield what the API server has on record of a user's requests for resources."""
        for line in (self.folder / AUDIT).read_text().splitlines():
            event = json.loads(line)
            at = datetime.fromisoformat(event["requestReceivedTimestamp"])
            if event["user"].get("username") == user and at >= since and "objectRef" in event:
                yield event

    def _etcd(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        address = f"http://127.0.0.1:{self.etcd_port}/v3/{path}"
        return dict(self._pool.request("POST", address, body=json.dumps(body)).json())

    def _key_id(self) -> str:
        form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        digest = hashes.Hash(hashes.SHA256())
        digest.update(self._key.public_key().public_bytes(*form))
        return _base64url(digest.finalize()).decode()

    def _write_keys(self) -> None:
        certificate = self._authority.issue_cert("127.0.0.1", "localhost")
        self._authority.cert_pem.write_to_path(str(self.folder / "ca.pem"))
        certificate.cert_chain_pems[0].write_to_path(str(self.folder / "cert.pem"))
        certificate.private_key_pem.write_to_path(str(self.folder / "key.pem"))
        form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        (self.folder / "accounts.pem").write_bytes(self._key.private_bytes(*form))
        (self.folder / "tokens.csv").write_text("admin,admin,1,system:masters\nassay-token,we,2\n")
        rule = {"level": "Metadata", "omitStages": ["RequestReceived"]}
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [rule]}
        (self.folder / "audit.yaml").write_text(yaml.safe_dump(policy))

    def _apiserver_flags(self, etcd: str) -> list[str]:
        account = self.folder / "accounts.pem"
        return [
            *(f"--etcd-servers={etcd}", "--etcd-compaction-interval=0", f"--secure-port={self.port}"),
            *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--cert-dir={self.folder}"),
            *(f"--tls-cert-file={self.folder / 'cert.pem'}", f"--tls-private-key-file={self.folder / 'key.pem'}"),
            *("--authorization-mode=RBAC", f"--token-auth-file={self.folder / 'tokens.csv'}"),
            *(f"--service-account-issuer={ISSUER}", f"--service-account-key-file={account}"),
            *(f"--service-account-signing-key-file={account}", "--service-cluster-ip-range=10.0.0.0/24"),
            *("--disable-admission-plugins=ServiceAccount", "--allow-privileged=true"),
            "--enable-bootstrap-token-auth=true",
            *(f"--audit-policy-file={self.folder / 'audit.yaml'}", f"--audit-log-path={self.folder / AUDIT}"),
        ]

    def _manager_flags(self) -> list[str]:
        return [
            *(f"--kubeconfig={self.kubeconfig('manager', token='admin')}", "--leader-elect=false", "--port=0"),
            *("--secure-port=0", "--controllers=disruption,garbagecollector,nodelifecycle,namespace"),
            *("--node-monitor-period=1s", f"--node-monitor-grace-period={NODE_GRACE_S}s"),
        ]

    def wait_for(self, what: str, done: Callable[[], object]) -> None:
        """Wait until something is done, as long as every daemon runs."""
        ends_at = time.monotonic() + READY_WITHIN_S
        while True:
            for name, process in self.daemons.items():
                assert process.poll() is None, f"{name} ended: {self._log_end(name)}"
            try:
                if done():
                    return
            except urllib3.exceptions.HTTPError:
                pass
            assert time.monotonic() < ends_at, f"{what} is not ready: {self._log_end('kube-apiserver')}"
            time.sleep(0.2)

    def _log_end(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-1500:]


def path_of(document: dict[str, Any]) -> str:
    """Return the path at which objects of a document's kind are created."""
    version, kind = document["apiVersion"], document["kind"]
    namespace = document["metadata"].get("namespace")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    place = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{place}/{PLURALS.get(kind, kind.lower() + 's')}"


def now_in_cluster() -> datetime:
    """Return the time, for `audited`."""
    return datetime.now(UTC)


def _base64url(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")
