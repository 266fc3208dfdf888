"""Work in a node's spare time is a pod that anything of a customer's puts out, and that never stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from assay.adapters.kubernetes import spare_run
from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.kubernetes.client import connect_cluster
from assay.adapters.kubernetes.cordon import format_kubernetes_now
from assay.adapters.kubernetes.spare_run import build_spare_pod
from assay.adapters.scheduler import SpareRunResult
from assay.model.errors import AssayError
from assay.observe.transports.command import build_probe_script
from tests.support.kubernetes.kube_kubelet import STUCK
from tests.support.kubernetes.kube_make import node, pod
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.kubernetes.kube_store import Thing, written

OURS = "assay-spare-n1"
SLEEPS = ["sleep", "60"]
WITHIN_S = 60.0


def test_a_command_gets_its_input_and_gives_its_output_its_errors_and_its_code(
    kube: KubeFake, adapter: KubernetesScheduler
):
    given = bytes(range(256))
    done = adapter.run_spare("n1", ["sh", "-c", "cat; echo lost one >&2; exit 3"], given, WITHIN_S)
    assert done == SpareRunResult(3, given, "lost one\n")
    assert _left(kube) == [], "nothing of it stays"


def test_the_probe_runs_as_it_does_over_ssh(kube: KubeFake, adapter: KubernetesScheduler):
    done = adapter.run_spare(
        "n1", [sys.executable, "-I", "-S", "-", "--root", "/nowhere"], build_probe_script(), WITHIN_S
    )
    assert done.exit_code == 0, done.stderr
    assert "probe" in json.loads(done.output)
    assert len(build_probe_script()) < 1_000_000, "it fits into a ConfigMap"


def test_the_pod_is_where_it_should_be_and_makes_room_for_all(kube: KubeFake, adapter: KubernetesScheduler):
    with _running(kube, adapter) as (there, ended):
        spec = there["spec"]
        kube.put("pods", "ml", pod("llama-0", "n1"))
        assert ended().preempted_by == "job ml/llama-0 (Job/train, namespace ml)"
    assert (spec["nodeName"], spec["priority"], spec["preemptionPolicy"]) == ("n1", -1000, "Never")
    assert spec["activeDeadlineSeconds"] == WITHIN_S, "its kubelet ends it even if we are gone"
    assert not spec["containers"][0].get("resources"), "no scheduler counts it"
    assert _left(kube) == []


def test_a_node_in_use_is_left_alone(kube: KubeFake, adapter: KubernetesScheduler):
    kube.put("pods", "ml", pod("llama-0", "n1"))
    assert "ml/llama-0" in adapter.run_spare("n1", SLEEPS, b"", WITHIN_S).preempted_by
    assert "create pods" not in kube.asked


def test_our_own_pod_is_nobodys_job(kube: KubeFake, adapter: KubernetesScheduler):
    with _running(kube, adapter) as (_, ended):
        assert adapter.list_jobs("n1") == ()
        assert adapter.read_statuses(["n1", "n2"])["n1"].jobs == ()
        kube.put("pods", "ml", pod("llama-0", "n1"))
        ended()


def test_a_cordoned_node_can_be_checked_in_its_spare_time_too(kube: KubeFake, adapter: KubernetesScheduler):
    adapter.cordon("n1", "suspicious")
    assert adapter.run_spare("n1", ["true"], b"", WITHIN_S).exit_code == 0


def test_a_command_that_takes_too_long_is_ended_and_has_no_code(kube: KubeFake, adapter: KubernetesScheduler):
    assert adapter.run_spare("n1", SLEEPS, b"", 0.5) == SpareRunResult(None)
    assert _left(kube) == []


def test_a_pod_that_finds_no_place_says_why(kube: KubeFake, adapter: KubernetesScheduler):
    closed = {"key": "maintenance", "effect": "NoSchedule"}
    kube.edit("nodes", "", "n1", lambda one: one["spec"]["taints"].append(closed))
    kube.before = lambda asked: _unschedulable(kube) if asked.verb == "get" and asked.resource == "pods" else None
    done = adapter.run_spare("n1", SLEEPS, b"", 0.5)
    assert done == SpareRunResult(None, stderr="PodScheduled: 0/3 nodes are available: 1 had untolerated taint")


def test_a_preempted_pod_says_for_whom_it_made_room(kube: KubeFake, adapter: KubernetesScheduler):
    _asks_for_gpus(kube)
    _only(kube, "n1")
    with _running(kube, adapter) as (_, ended):
        kube.put("pods", "ml", pod("llama-0", gpus=8))
        assert ended().preempted_by.startswith("job ml/llama-0 (Job/train")
    assert kube.get("pods", "ml", "llama-0")["spec"]["nodeName"] == "n1"


def test_a_pod_that_ends_slowly_while_it_is_preempted_says_so_too(kube: KubeFake, adapter: KubernetesScheduler):
    _asks_for_gpus(kube)
    _only(kube, "n1")
    with _running(kube, adapter) as (_, ended):
        kube.edit("pods", "assay", OURS, lambda one: one["metadata"]["annotations"].update({STUCK: "for a while"}))
        kube.put("pods", "ml", pod("llama-0", gpus=8))
        assert ended().preempted_by.startswith("job ml/llama-0 (Job/train"), "who is promised the node"
        assert kube.store.find("pods", "ml", "llama-0")["status"]["nominatedNodeName"] == "n1"


@pytest.mark.parametrize("scheduler", ["volcano", "kueue-scheduler"])
def test_where_the_scheduler_does_not_preempt_we_leave_by_ourselves(
    kube: KubeFake, adapter: KubernetesScheduler, scheduler: str
):
    _asks_for_gpus(kube)
    _only(kube, "n1")
    with _running(kube, adapter) as (_, ended):
        kube.put("pods", "ml", pod("llama-0", gpus=8, schedulerName=scheduler))
        assert ended().preempted_by.startswith("job ml/llama-0 (Job/train")
    assert kube.get("pods", "ml", "llama-0")["spec"]["nodeName"] == "n1"


def test_who_could_not_run_there_anyway_does_not_put_us_out(kube: KubeFake, adapter: KubernetesScheduler):
    _asks_for_gpus(kube)
    _only(kube, "n1")
    for name, more in (
        ("elsewhere", {"nodeSelector": {"zone": "b"}, "gpus": 8}),
        ("too-big", {"gpus": 9}),
        ("no-gpu", {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}),
    ):
        kube.put("pods", "ml", pod(name, schedulerName="volcano", **more))
    assert adapter.run_spare("n1", ["true"], b"", WITHIN_S).exit_code == 0


def test_a_pod_that_a_queue_still_holds_back_puts_us_out_if_it_wants_our_gpus(
    kube: KubeFake, adapter: KubernetesScheduler
):
    _asks_for_gpus(kube)
    _only(kube, "n1")
    kube.put("pods", "ml", pod("queued", gpus=8, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]))
    assert "ml/queued" in adapter.run_spare("n1", SLEEPS, b"", WITHIN_S).preempted_by


def test_without_requests_no_scheduler_has_to_preempt_us(kube: KubeFake, adapter: KubernetesScheduler):
    _only(kube, "n1")
    with _running(kube, adapter) as (_, ended):
        kube.put("pods", "ml", pod("llama-0", gpus=8, schedulerName="volcano"))
        assert kube.get("pods", "ml", "llama-0")["spec"]["nodeName"] == "n1", "placed while we were there"
        assert "ml/llama-0" in ended().preempted_by


def test_a_pod_that_somebody_deletes_was_put_out(kube: KubeFake, adapter: KubernetesScheduler):
    with _running(kube, adapter) as (_, ended):
        kube.edit("pods", "assay", OURS, lambda one: one["metadata"].update(deletionTimestamp=written(1)))
        assert ended().preempted_by == "whoever deleted our pod"


def test_a_kubelet_that_refuses_or_evicts_the_pod_is_named(kube: KubeFake, adapter: KubernetesScheduler):
    with _running(kube, adapter) as (_, ended):
        full = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
        kube.edit("pods", "assay", OURS, lambda one: one["status"].update(full))
        assert ended().preempted_by == "the node's kubelet: Evicted: The node was low on resource: memory."


@pytest.mark.parametrize("spoil", [{"value": 0}, {"value": -1000, "preemptionPolicy": "PreemptLowerPriority"}])
def test_a_template_whose_pods_would_not_make_room_is_refused(
    kube: KubeFake, adapter: KubernetesScheduler, spoil: dict[str, Any]
):
    def change(one: Thing) -> None:
        one.pop("preemptionPolicy")
        one.update(spoil)

    kube.edit("priorityclasses", "", "assay-spare", change)
    with pytest.raises(AssayError, match="would not give way to customers"):
        adapter.run_spare("n1", SLEEPS, b"", WITHIN_S)
    assert _left(kube) == []


def test_too_large_an_input_is_refused_in_words(kube: KubeFake, adapter: KubernetesScheduler):
    with pytest.raises(AssayError, match="1000001 bytes"):
        adapter.run_spare("n1", ["true"], bytes(1_000_001), WITHIN_S)
    assert _left(kube) == []


def test_a_missing_template_names_the_manifest(kube: KubeFake, adapter: KubernetesScheduler):
    kube.store.remove("podtemplates", kube.get("podtemplates", "assay", "assay-spare"))
    with pytest.raises(AssayError, match="there is no PodTemplate assay-spare in the namespace assay") as told:
        adapter.run_spare("n1", ["true"], b"", WITHIN_S)
    assert "deploy/kubernetes.yaml" in told.value.fix


@pytest.mark.parametrize("right", [("create", "", "pods"), ("delete", "", "pods"), ("get", "", "pods/log")])
def test_a_right_that_is_lacking_in_our_namespace_is_named(kube: KubeFake, adapter: KubernetesScheduler, right: Any):
    kube.users["assay-token"].granted.discard((*right, "assay"))
    with pytest.raises(AssayError, match=f"`{right[0]}` `{right[2]}` in the namespace assay"):
        adapter.run_spare("n1", ["true"], b"", WITHIN_S)


def test_two_controllers_do_not_share_one_nodes_spare_time(kube: KubeFake, adapter: KubernetesScheduler):
    with _running(kube, adapter) as (_, ended):
        with pytest.raises(AssayError, match="another controller uses its spare time"):
            adapter.run_spare("n1", ["true"], b"", WITHIN_S)
        kube.put("pods", "ml", pod("llama-0", "n1"))
        ended()


@pytest.mark.slow
def test_what_a_killed_controller_left_is_removed_at_the_next_look(
    kube: KubeFake, adapter: KubernetesScheduler, monkeypatch: pytest.MonkeyPatch
):
    assert _killed_in_the_middle(kube) == -signal.SIGKILL
    assert len(_left(kube)) == 2, "a pod and its input"

    assert adapter.list_jobs("n1") == ()
    assert len(_left(kube)) == 2, "perhaps somebody watches it"
    monkeypatch.setattr(spare_run, "UNWATCHED_AFTER_S", -1.0)
    assert adapter.list_jobs("n1") == ()
    assert _left(kube) == []


def test_a_leftover_without_its_input_gives_way_to_the_next_check_of_the_node(
    kube: KubeFake, adapter: KubernetesScheduler, monkeypatch: pytest.MonkeyPatch
):
    abandoned = spare_run.KubernetesSpareRun(connect_cluster(adapter.settings), adapter.settings, "n1")
    abandoned._create(build_spare_pod(abandoned._read_template(), "n1", SLEEPS, WITHIN_S, format_kubernetes_now()))
    assert _left(kube) == [OURS]
    monkeypatch.setattr(spare_run, "UNWATCHED_AFTER_S", -1.0)
    assert adapter.run_spare("n1", ["true"], b"", WITHIN_S).exit_code == 0
    assert _left(kube) == []


def test_a_pod_is_watched_for_as_long_as_it_runs(
    kube: KubeFake, adapter: KubernetesScheduler, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(spare_run, "WATCH_INTERVAL_S", 0.0)
    with _running(kube, adapter) as (there, ended):
        first = there["metadata"]["annotations"]["assay.dev/watched"]
        _wait(lambda: kube.get("pods", "assay", OURS)["metadata"]["annotations"]["assay.dev/watched"] > first)
        kube.put("pods", "ml", pod("llama-0", "n1"))
        ended()


def test_an_api_server_that_is_lost_while_it_runs_is_trouble_and_no_result(
    kube: KubeFake, adapter: KubernetesScheduler
):
    with _running(kube, adapter) as (_, ended):
        kube.stop()
        with pytest.raises(AssayError, match="does not answer"):
            ended()
        kube.start()


KILLED = """
import sys
from assay.model.specs.node_settings import make_node_settings
from assay.adapters.kubernetes.adapter import KubernetesScheduler
settings = make_node_settings({"kubernetes": {"kubeconfig": sys.argv[1]}})
KubernetesScheduler(settings).run_spare("n1", ["sleep", "60"], b"x", 60.0)
"""


def _killed_in_the_middle(kube: KubeFake) -> int:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(kube.kubeconfig())])
    _wait(lambda: (kube.get("pods", "assay", OURS) or {}).get("status", {}).get("phase") == "Running")
    os.kill(process.pid, signal.SIGKILL)
    return process.wait()


class _running:  # noqa: N801 — reads as a phrase
    """A spare run in a thread: gives its pod once it runs, and `ended`, which waits for its end."""

    def __init__(self, kube: KubeFake, adapter: KubernetesScheduler) -> None:
        self._kube, self._adapter = kube, adapter
        self._result: list[SpareRunResult | AssayError] = []
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self._result.append(self._adapter.run_spare("n1", SLEEPS, b"", WITHIN_S))
        except AssayError as trouble:
            self._result.append(trouble)

    def __enter__(self) -> tuple[Thing, Callable[[], SpareRunResult]]:
        self._thread.start()
        _wait(lambda: (self._kube.get("pods", "assay", OURS) or {}).get("status", {}).get("phase") == "Running")
        return self._kube.get("pods", "assay", OURS), self._ended

    def _ended(self) -> SpareRunResult:
        self._thread.join(WITHIN_S)
        assert self._result, "it did not end"
        if isinstance(self._result[0], AssayError):
            raise self._result[0]
        return self._result[0]

    def __exit__(self, *_: object) -> None:
        self._thread.join(WITHIN_S)


def _wait(seen: Callable[[], object]) -> None:
    ends_at = time.monotonic() + WITHIN_S
    while not seen():
        assert time.monotonic() < ends_at
        time.sleep(0.02)


def _left(kube: KubeFake) -> list[str]:
    kube.settle()
    kube.settle()
    return [one["metadata"]["name"] for kind in ("pods", "configmaps") for one in kube.store.all(kind, "assay")]


def _asks_for_gpus(kube: KubeFake) -> None:
    """A site whose template asks for every GPU, so that the scheduler counts it."""

    def change(one: Thing) -> None:
        one["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "8"}}

    kube.edit("podtemplates", "assay", "assay-spare", change)


def _only(kube: KubeFake, name: str) -> None:
    for one in ("n1", "n2", "n3"):
        if one != name:
            kube.store.remove("nodes", kube.get("nodes", "", one) or node(one))


def _unschedulable(kube: KubeFake) -> None:
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": written()}
    said["message"] = "0/3 nodes are available: 1 had untolerated taint"
    if kube.get("pods", "assay", OURS):
        kube.edit("pods", "assay", OURS, lambda one: one["status"].update(conditions=[said]))
