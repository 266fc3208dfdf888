"""A fake API server per test, with this project's own manifest applied to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.adapters.kubernetes import spare_run
from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.model.specs.node_settings import make_node_settings
from tests.support.kubernetes.kube_make import node
from tests.support.kubernetes.kube_rights import MANIFEST, Rights, documents_of, rights_of
from tests.support.kubernetes.kube_server import KubeFake


@pytest.fixture
def kube(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubeFake]:
    for name in ("HTTPS_PROXY", "https_proxy", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(spare_run, "POLL_S", 0.05)
    fake = KubeFake(tmp_path, {"assay-token": rights_of(MANIFEST), "admin": Rights("admin", all=True)})
    for document in documents_of(MANIFEST):
        if document["kind"] in ("PriorityClass", "PodTemplate"):
            fake.put(
                document["kind"].lower() + ("es" if document["kind"] == "PriorityClass" else "s"),
                document["metadata"].get("namespace", ""),
                {key: value for key, value in document.items() if key not in ("apiVersion", "kind")},
            )
    for name in ("n1", "n2", "n3"):
        fake.put("nodes", "", node(name))
    fake.start()
    yield fake
    fake.stop()
    fake.kubelets.stop()


@pytest.fixture
def adapter(kube: KubeFake) -> KubernetesScheduler:
    return KubernetesScheduler(
        make_node_settings({"kubernetes": {"kubeconfig": str(kube.kubeconfig())}}), patience_s=0.0
    )
