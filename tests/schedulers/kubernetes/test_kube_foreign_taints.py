"""A taint by which others keep pods from a node is a drain of others; one that Kubernetes sets by itself is not."""

from __future__ import annotations

import pytest
from kube_server import KubeFake

from assay.schedulers.kubernetes_adapter import KubernetesScheduler


def taint(kube: KubeFake, key: str, effect: str = "NoSchedule", value: str = "") -> None:
    made = {"key": key, "effect": effect, **({"value": value} if value else {})}
    kube.edit("nodes", "", "n1", lambda one: one["spec"].setdefault("taints", []).append(made))


def foreign(adapter: KubernetesScheduler) -> str:
    return adapter.read_statuses(["n1"])["n1"].foreign_cordon


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_of_others_is_foreign_and_says_which(kube: KubeFake, adapter: KubernetesScheduler, effect: str):
    taint(kube, "maintenance", effect, "bob-fans")
    assert foreign(adapter) == f"tainted maintenance=bob-fans:{effect}"
    assert adapter.read_statuses(["n1"])["n1"].cordon == "", "pods that tolerate it still come"


@pytest.mark.parametrize(
    ("key", "effect"),
    [
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        ("node-role.kubernetes.io/control-plane", "NoSchedule"),
        ("maintenance", "PreferNoSchedule"),
    ],
)
def test_what_kubernetes_sets_by_itself_or_only_prefers_is_nobodys(
    kube: KubeFake, adapter: KubernetesScheduler, key: str, effect: str
):
    taint(kube, key, effect)
    assert foreign(adapter) == "", "nor is nvidia.com/gpu, which each of these nodes has"


def test_out_of_service_is_set_by_a_person(kube: KubeFake, adapter: KubernetesScheduler):
    taint(kube, "node.kubernetes.io/out-of-service", "NoExecute", "nodeshutdown")
    assert foreign(adapter) == "tainted node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


def test_a_taint_of_ours_is_ours_and_theirs_stays_beside_it(kube: KubeFake, adapter: KubernetesScheduler):
    adapter.cordon("n1", "gpu.xid.79: off the bus")
    assert foreign(adapter) == ""
    taint(kube, "maintenance")
    assert foreign(adapter) == "tainted maintenance:NoSchedule"
    adapter.uncordon("n1")
    assert foreign(adapter) == "tainted maintenance:NoSchedule"


def test_cordon_and_taint_of_others_are_both_told(kube: KubeFake, adapter: KubernetesScheduler):
    def close(one) -> None:
        one["spec"]["unschedulable"] = True

    kube.edit("nodes", "", "n1", close)
    taint(kube, "maintenance")
    assert foreign(adapter).startswith("made unschedulable")
    assert foreign(adapter).endswith("; tainted maintenance:NoSchedule")
