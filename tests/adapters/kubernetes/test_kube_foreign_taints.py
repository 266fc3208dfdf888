"""A taint by which others keep pods from a node is a drain of others; one that Kubernetes sets by itself is not."""

from __future__ import annotations

import pytest

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.kubernetes.client import KubernetesObject
from assay.decide.moves.proposals import find_respected_cordon
from assay.declare.loader import load_fleet
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.places import ROOT


def taint(kube: KubeFake, key: str, effect: str = "NoSchedule", value: str = "") -> None:
    made = {"key": key, "effect": effect, **({"value": value} if value else {})}
    kube.edit("nodes", "", "n1", lambda one: one["spec"].setdefault("taints", []).append(made))


def close(one: KubernetesObject) -> None:
    """Make a node unschedulable, without any annotation of ours."""
    one["spec"]["unschedulable"] = True


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


def test_a_cordon_without_our_annotation_is_foreign_and_stays(kube: KubeFake, adapter: KubernetesScheduler):
    kube.edit("nodes", "", "n1", close)
    assert foreign(adapter).startswith("made unschedulable")
    assert foreign(adapter).endswith("not by assay")
    adapter.cordon("n1", "gpu.xid.79: off the bus")
    assert foreign(adapter).startswith("made unschedulable"), "also beside ours"
    adapter.uncordon("n1")
    assert foreign(adapter).startswith("made unschedulable")
    seen = kube.get("nodes", "", "n1")
    assert seen is not None
    assert seen["spec"]["unschedulable"] is True


def test_a_taint_that_evicts_stays_beside_our_cordon(kube: KubeFake, adapter: KubernetesScheduler):
    adapter.cordon("n1", "gpu.xid.79: off the bus")
    taint(kube, "maintenance", "NoExecute", "bob-fans")
    assert foreign(adapter) == "tainted maintenance=bob-fans:NoExecute"
    adapter.uncordon("n1")
    assert foreign(adapter) == "tainted maintenance=bob-fans:NoExecute"


@pytest.mark.parametrize(("patterns", "waits"), [([], True), (["made unschedulable*"], True), (["*"], False)])
def test_each_of_a_cordon_and_a_taint_of_others_holds_back_what_would_disturb_them(
    kube: KubeFake, adapter: KubernetesScheduler, patterns: list[str], waits: bool
):
    kube.edit("nodes", "", "n1", close)
    taint(kube, "maintenance", "NoExecute")
    policy = next(iter(load_fleet(ROOT).policies.values()))
    policy = policy.model_copy(update={"cordons": policy.cordons.model_copy(update={"overrule": patterns})})
    assert bool(find_respected_cordon(policy, foreign(adapter))) is waits


def test_cordon_and_taint_of_others_are_both_told(kube: KubeFake, adapter: KubernetesScheduler):
    kube.edit("nodes", "", "n1", close)
    taint(kube, "maintenance")
    assert foreign(adapter).startswith("made unschedulable")
    assert foreign(adapter).endswith("; tainted maintenance:NoSchedule")
