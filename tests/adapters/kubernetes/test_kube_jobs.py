"""Whose pods are on a node, what keeps them there, and eviction that asks PodDisruptionBudgets."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.scheduler import SchedulerNodeStatus
from assay.model.errors import AssayError
from assay.model.specs.node_settings import make_node_settings
from tests.support.kubernetes.kube_kubelet import STUCK
from tests.support.kubernetes.kube_make import budget, mirror, node, pod
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.kubernetes.kube_store import written


def test_a_job_is_a_pod_with_its_namespace_and_its_controller(kube: KubeFake, adapter: KubernetesScheduler):
    made = kube.put("pods", "ml", pod("llama-0", "n1", owner="llama"))
    (job,) = adapter.list_jobs("n1")
    assert str(job) == "job ml/llama-0 (Job/llama, namespace ml)"
    assert job.since == made["status"]["startTime"]


def test_the_nodes_own_pods_and_ended_ones_are_nobodys_job(kube: KubeFake, adapter: KubernetesScheduler):
    kube.put("pods", "kube-system", pod("proxy-x", "n1", kind="DaemonSet", owner="proxy"))
    kube.put("pods", "kube-system", mirror("etcd-n1", "n1"))
    for name, phase in (("done", "Succeeded"), ("broken", "Failed")):
        ended = pod(name, "n1")
        ended["status"]["phase"] = phase
        kube.put("pods", "ml", ended)
    kube.put("pods", "ml", pod("elsewhere", "n2"))
    assert adapter.list_jobs("n1") == ()


def test_a_customer_who_wears_our_label_is_still_a_customer(kube: KubeFake, adapter: KubernetesScheduler):
    clever = pod("clever", "n1")
    clever["metadata"]["labels"]["assay.dev/spare"] = "true"
    kube.put("pods", "ml", clever)
    assert [job.id for job in adapter.list_jobs("n1")] == ["ml/clever"]


def test_a_node_that_the_cluster_does_not_know_is_trouble_and_no_idle_node(adapter: KubernetesScheduler):
    for ask in (
        adapter.list_jobs,
        adapter.read_cordon_reason,
        lambda name: adapter.cordon(name, "x"),
        adapter.uncordon,
    ):
        with pytest.raises(AssayError, match="does not know the node n7"):
            ask("n7")
    assert adapter.read_statuses(["n1", "n7"]) == {"n1": SchedulerNodeStatus()}
    assert adapter.read_statuses(["n7"]) == {}
    assert adapter.read_statuses([]) == {}


def test_a_drain_closes_the_node_and_leaves_its_pods_alone(kube: KubeFake, adapter: KubernetesScheduler):
    kube.put("pods", "ml", pod("llama-0", "n1"))
    adapter.drain("n1", "gpu.pcie.degraded")
    assert [job.id for job in adapter.list_jobs("n1")] == ["ml/llama-0"]
    there = kube.get("nodes", "", "n1")
    assert there is not None
    assert there["metadata"]["labels"]["assay.dev/state"] == "draining"
    message = there["status"]["conditions"][-1]["message"]
    assert message == "assay: gpu.pcie.degraded; waits for job ml/llama-0 (Job/train, namespace ml)"


def test_drain_now_evicts_whatever_no_budget_keeps(kube: KubeFake, adapter: KubernetesScheduler):
    kube.put("pods", "ml", pod("llama-0", "n1"))
    kube.put("pods", "kube-system", pod("proxy-x", "n1", kind="DaemonSet", owner="proxy"))
    adapter.drain("n1", "gpu.xid.79", now=True)
    assert adapter.list_jobs("n1") == ()
    assert kube.get("pods", "kube-system", "proxy-x"), "a DaemonSet's pod would only come back"
    assert "delete pods" not in kube.asked


def test_a_budget_that_allows_none_is_named_with_its_age_and_nothing_is_deleted(
    kube: KubeFake, adapter: KubernetesScheduler
):
    _web(kube, 3, minAvailable=3)
    with pytest.raises(AssayError, match=r"1 of 1 pods may not be evicted now: job shop/web-0 .*allows no disruption"):
        adapter.drain("n1", "gpu.xid.79", now=True)

    (job,) = adapter.list_jobs("n1")
    stopped = kube.get("poddisruptionbudgets", "shop", "web")["status"]["conditions"][0]["lastTransitionTime"]
    assert job.blocked_by == f"PodDisruptionBudget shop/web allows no disruption since {stopped}"
    assert str(job).endswith(f"; {job.blocked_by})")
    assert "delete pods" not in kube.asked
    assert adapter.read_statuses(["n1", "n2"])["n1"].jobs == (job,)


def test_a_budget_that_allows_some_is_spent_pod_by_pod(kube: KubeFake, adapter: KubernetesScheduler):
    for name in ("web-0", "web-1"):
        kube.put("pods", "shop", pod(name, "n1", kind="ReplicaSet", owner="web"))
    kube.put("pods", "shop", pod("web-2", "n2", kind="ReplicaSet", owner="web"))
    kube.replicas[_uid(kube, "web-0")] = 3
    kube.put("poddisruptionbudgets", "shop", budget("web", "web", maxUnavailable=1))

    with pytest.raises(AssayError, match="1 of 2 pods may not be evicted now: job shop/web-1"):
        adapter.drain("n1", "fw", now=True)
    assert [job.id for job in adapter.list_jobs("n1")] == ["shop/web-1"]

    kube.put("pods", "shop", pod("web-3", "n3", kind="ReplicaSet", owner="web"))
    adapter.drain("n1", "fw", now=True)
    assert adapter.list_jobs("n1") == (), "its replacement is up elsewhere, so the next may go"


def test_a_refused_eviction_is_asked_again_within_the_patience(kube: KubeFake, monkeypatch: pytest.MonkeyPatch):
    from assay.adapters.kubernetes import jobs

    monkeypatch.setattr(jobs, "EVICTION_RETRY_S", 0.05)
    adapter = KubernetesScheduler(
        make_node_settings({"kubernetes": {"kubeconfig": str(kube.kubeconfig())}}), patience_s=30.0
    )
    _web(kube, 1, minAvailable=1)

    def replace_it(asked: object) -> None:
        if kube.asked.count("create pods/eviction") == 3 and not kube.get("pods", "shop", "web-new"):
            kube.put("pods", "shop", pod("web-new", "n3", kind="ReplicaSet", owner="web"))

    kube.before = replace_it
    adapter.drain("n1", "fw", now=True)
    assert adapter.list_jobs("n1") == ()


def test_two_budgets_on_one_pod_are_named_since_no_eviction_is_possible(kube: KubeFake, adapter: KubernetesScheduler):
    _web(kube, 1, maxUnavailable=1)
    kube.put("poddisruptionbudgets", "shop", budget("web-too", "web", maxUnavailable=1))
    kube.put("pods", "ml", pod("zz-llama", "n1"))
    with pytest.raises(AssayError, match=r"create pods/eviction web-0 in shop \(500\): .*more than one"):
        adapter.drain("n1", "fw", now=True)
    (job,) = adapter.list_jobs("n1")
    assert "PodDisruptionBudgets web, web-too all select it" in job.blocked_by


@pytest.mark.parametrize(("policy", "kept"), [("AlwaysAllow", False), ("IfHealthyBudget", True)])
def test_what_is_told_of_an_unready_pod_is_what_the_server_does(
    kube: KubeFake, adapter: KubernetesScheduler, policy: str, kept: bool
):
    kube.put("pods", "shop", pod("web-0", "n1", owner="web", ready=False))
    kube.put("poddisruptionbudgets", "shop", budget("web", "web", minAvailable=1, unhealthyPodEvictionPolicy=policy))
    assert bool(adapter.list_jobs("n1")[0].blocked_by) is kept
    with pytest.raises(AssayError, match="may not be evicted") if kept else nullcontext():
        adapter.drain("n1", "fw", now=True)
    assert bool(adapter.list_jobs("n1")) is kept


def test_a_pod_stuck_terminating_is_still_there_and_says_since_when(kube: KubeFake, adapter: KubernetesScheduler):
    stuck = pod("stuck", "n1")
    stuck["metadata"].update(annotations={STUCK: "yes"}, finalizers=["example.org/unmount"])
    kube.put("pods", "ml", stuck)

    adapter.drain("n1", "fw", now=True)
    adapter.drain("n1", "fw", now=True)

    (job,) = adapter.list_jobs("n1")
    assert job.blocked_by.startswith("is ending, was to be gone by 20")
    assert job.blocked_by.endswith("held by the finalizer example.org/unmount")
    assert kube.asked.count("create pods/eviction") == 1, "it was told once"


def test_a_pod_whose_time_is_over_is_lost_with_a_node_that_does_not_answer(
    kube: KubeFake, adapter: KubernetesScheduler
):
    stuck = pod("stuck", "n1")
    stuck["metadata"].update(annotations={STUCK: "yes"}, finalizers=["example.org/unmount"])
    kube.put("pods", "ml", stuck | {"metadata": stuck["metadata"] | {"deletionTimestamp": written(-300)}})
    kube.put("pods", "ml", pod("llama-0", "n1"))
    assert [job.is_lost for job in adapter.read_statuses(["n1"])["n1"].jobs] == [False, False]

    silent = node("n1")
    silent["status"]["conditions"][0]["status"] = "Unknown"
    kube.put("nodes", "", silent)
    assert {job.id: job.is_lost for job in adapter.read_statuses(["n1"])["n1"].jobs} == {
        "ml/stuck": True,
        "ml/llama-0": False,
    }


def test_the_pod_of_the_same_name_that_came_up_elsewhere_is_not_evicted(kube: KubeFake, adapter: KubernetesScheduler):
    kube.put("pods", "db", pod("db-0", "n1", kind="StatefulSet", owner="db"))

    def moved(asked: object) -> None:
        if getattr(asked, "sub", "") == "eviction":
            kube.put("pods", "db", pod("db-0", "n2", kind="StatefulSet", owner="db"))

    kube.before = moved
    adapter.drain("n1", "fw", now=True)
    assert kube.get("pods", "db", "db-0"), "the new one stays"


def test_a_list_that_went_stale_between_two_chunks_is_asked_for_anew(kube: KubeFake, adapter: KubernetesScheduler):
    for number in range(700):
        kube.put("nodes", "", node(f"m{number}"))

    def forget(asked: object) -> None:
        kube.store.oldest = kube.store.version + 1

    kube.before = forget
    assert len(adapter.read_statuses([f"m{number}" for number in range(700)])) == 700
    assert kube.asked.count("list nodes") == 3


def _web(kube: KubeFake, replicas: int, **spec: int) -> None:
    """One pod of `web` on n1 and the others elsewhere, under a budget."""
    for number in range(replicas):
        kube.put("pods", "shop", pod(f"web-{number}", f"n{number % 3 + 1}", kind="ReplicaSet", owner="web"))
    kube.put("poddisruptionbudgets", "shop", budget("web", "web", **spec))


def _uid(kube: KubeFake, name: str) -> str:
    there = kube.get("pods", "shop", name)
    assert there is not None
    return there["metadata"]["ownerReferences"][0]["uid"]
