"""An outside judge of the fake, and another hand on the nodes: the real kubectl, unmodified."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.scheduler import NodeNotice
from tests.support.kubernetes.kube_make import budget, pod
from tests.support.kubernetes.kube_server import KubeFake

pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None,
    reason="no kubectl here (Debian: kubernetes-client): the fake is judged by the client only",
)


def kubectl(kube: KubeFake, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["kubectl", f"--kubeconfig={kube.kubeconfig('admin')}", f"--cache-dir={kube.folder}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_kubectl_reads_what_we_write_on_a_node(kube: KubeFake, adapter: KubernetesScheduler):
    adapter.cordon("n1", "gpu.xid.79: off the bus")

    chosen = kubectl(kube, "get", "nodes", "--selector=assay.dev/state=cordoned", "--output=name")
    assert chosen.stdout == "node/n1\n", chosen.stderr
    condition = "jsonpath={.status.conditions[?(@.type=='AssayCordoned')].message}"
    assert kubectl(kube, "get", "node", "n1", f"--output={condition}").stdout == "assay: gpu.xid.79: off the bus"


def test_a_cordon_by_kubectl_is_honoured_and_ours_is_visible_to_it(kube: KubeFake, adapter: KubernetesScheduler):
    done = kubectl(kube, "cordon", "n1")
    assert done.stdout == "node/n1 cordoned\n", done.stderr
    adapter.cordon("n1", "fault")
    adapter.uncordon("n1")
    assert "made unschedulable by kubectl" in adapter.read_cordon_reason("n1")
    kubectl(kube, "uncordon", "n1")
    assert adapter.read_cordon_reason("n1") == ""

    adapter.cordon("n1", "fault")
    assert kubectl(kube, "cordon", "n1").stdout == "node/n1 already cordoned\n"
    kubectl(kube, "uncordon", "n1")
    assert adapter.read_cordon_reason("n1") == "assay: fault", "the taint still stands"


def test_a_drain_by_kubectl_meets_the_same_budgets_as_ours(kube: KubeFake, adapter: KubernetesScheduler):
    kube.put("daemonsets", "kube-system", _proxy())
    kube.put("pods", "kube-system", pod("proxy-x", "n1", kind="DaemonSet", owner="proxy"))
    kube.put("pods", "ml", pod("llama-0", "n1"))
    kube.put("pods", "shop", pod("web-0", "n1", kind="ReplicaSet", owner="web"))
    kube.put("poddisruptionbudgets", "shop", budget("web", "web", minAvailable=1))

    words = ("drain", "n1", "--ignore-daemonsets", "--timeout=4s")
    refused = kubectl(kube, *words)
    assert refused.returncode == 1
    assert "Cannot evict pod as it would violate the pod's disruption budget" in refused.stderr
    assert [job.id for job in adapter.list_jobs("n1")] == ["shop/web-0"]
    assert "PodDisruptionBudget shop/web allows no disruption since" in adapter.list_jobs("n1")[0].blocked_by

    kube.put("pods", "shop", pod("web-1", "n2", kind="ReplicaSet", owner="web"))
    assert "node/n1 drained" in kubectl(kube, *words[:-1], "--timeout=50s").stdout


def _proxy() -> dict[str, object]:
    labels = {"app": "proxy"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "proxy"}, "spec": spec}


def test_kubectl_reads_what_customers_are_told(kube: KubeFake, adapter: KubernetesScheduler):
    adapter.show_notices({"n1": NodeNotice(in_service=False, text="It left service.", move="a1")})
    condition = "jsonpath={.status.conditions[?(@.type=='assay.dev/InService')].message}"
    assert kubectl(kube, "get", "node", "n1", f"--output={condition}").stdout == "It left service."
    event = "jsonpath={.items[*].regarding.name}: {.items[*].note}"
    told = kubectl(kube, "get", "events.events.k8s.io", "--namespace=kube-system", f"--output={event}")
    assert told.stdout == "n1: It left service.", told.stderr
