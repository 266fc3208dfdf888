"""The fake answers as a real API server did, and a real one still answers so: one recorded set of exchanges."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from tests.adapters.kubernetes.kube_exchanges import RECORDED, Answer, play_exchanges
from tests.adapters.kubernetes.real_cluster import MERGE, PROGRAMS, RealCluster
from tests.adapters.kubernetes.real_kubelets import RealKubelets
from tests.support.kubernetes import kube_discovery
from tests.support.kubernetes.kube_make import budget, pod
from tests.support.kubernetes.kube_server import KubeFake

KNOWN: dict[str, Any] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
TOKENS = {"assay": "assay-token", "admin": "admin", "nobody": "stale"}


class FakeServer:
    """The fake, as `Server`."""

    def __init__(self, kube: KubeFake) -> None:
        self.kube = kube
        self._pool = urllib3.PoolManager(ca_certs=str(kube.folder / "ca.pem"))

    def ask(self, method: str, path: str, body: Any = None, *, user: str = "assay", **headers: str) -> Answer:
        given = {"Authorization": f"Bearer {TOKENS[user]}", "Content-Type": "application/json", **headers}
        content = None if body is None else json.dumps(body)
        answer = self._pool.request(method, self.kube.address + path, body=content, headers=given, retries=False)
        return answer.status, answer.json(), answer.headers

    def run_pod(self, name: str, on: str, owner: str) -> None:
        self.kube.put("pods", "ml", pod(name, on, kind="", owner=owner))

    def protect(self, name: str, owner: str, at_least: int, *, counted: bool = True) -> None:
        self.kube.counts_budgets = counted
        self.kube.put("poddisruptionbudgets", "ml", budget(name, owner, minAvailable=at_least))

    def compact(self) -> None:
        self.kube.store.oldest = self.kube.store.version + 1


class RealServer:
    """The real cluster, as `Server`."""

    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster
        self._tokens = {**TOKENS, "assay": cluster.issue_token(3600)}

    def ask(self, method: str, path: str, body: Any = None, *, user: str = "assay", **headers: str) -> Answer:
        return self.cluster.ask(method, path, body, token=self._tokens[user], **headers)

    def run_pod(self, name: str, on: str, owner: str) -> None:
        self.cluster.run_pod(name, on, owner)

    def protect(self, name: str, owner: str, at_least: int, *, counted: bool = True) -> None:
        if not counted:
            self.cluster.daemons["kube-controller-manager"].send_signal(signal.SIGSTOP)
        path = self.cluster.protect(name, owner, at_least)
        if counted:
            self.cluster.wait_for("the budget", lambda: self.cluster.is_counted(path))

    def compact(self) -> None:
        label = {"metadata": {"labels": {"touched": "true"}}}
        self.cluster.ask("PATCH", "/api/v1/namespaces/ml", label, **MERGE)
        self.cluster.compact()


@pytest.fixture
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    if not all(path.exists() for path in PROGRAMS.values()):
        pytest.skip("no kube-apiserver here: `tools/kubernetes-server` builds one on Debian 12, in about five minutes")
    cluster = RealCluster(tmp_path_factory.mktemp("exchanges"))
    try:
        cluster.start()
        kubelets = RealKubelets(cluster)
        for name in ("n1", "n2"):
            kubelets.add(name)
        yield RealServer(cluster)
        kubelets.stop()
    finally:
        cluster.daemons["kube-controller-manager"].send_signal(signal.SIGCONT)
        cluster.stop()


def test_the_fake_answers_as_the_real_one_did(kube: KubeFake, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kube_discovery, "VERSION", KNOWN["version"]["answered"]["gitVersion"])
    kube.users["admin"].user = "admin"
    played = play_exchanges(FakeServer(kube))
    assert list(played) == list(KNOWN)
    for name, one in played.items():
        assert one == KNOWN[name], f"{name}: the fake, and what was recorded"


@pytest.mark.slow
def test_the_real_one_still_answers_so(real: RealServer):
    played = play_exchanges(real)
    if os.environ.get("ASSAY_RECORD_EXCHANGES"):
        RECORDED.write_text(json.dumps(played, indent=1, ensure_ascii=False) + "\n")
        pytest.skip(f"recorded {len(played)} exchanges in {RECORDED.name}")
    assert played == KNOWN
