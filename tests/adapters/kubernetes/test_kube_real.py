"""The adapter against a real API server, etcd and controller manager, with the rights of our manifest and no others.

Pods and leases are written by a stand-in for the kubelets; everything that the adapter sees is the real server's.
"""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assay.adapters.kubernetes import client, jobs, spare_run
from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.kubernetes.client import OLDEST_VERSION
from assay.adapters.kubernetes.cordon import LAST_KEY
from assay.adapters.scheduler import VERIFY_UNDRAIN, NodeNotice
from assay.model.errors import AssayError
from assay.model.specs.node_settings import make_node_settings
from tests.adapters.kubernetes.real_cluster import MERGE, PROGRAMS, RealCluster, now_in_cluster
from tests.adapters.kubernetes.real_kubelets import OUTPUT, RealKubelets
from tests.adapters.nodes_by_state import CLOSED, SERVING, STATES, enrol, run_pass
from tests.support.kubernetes.kube_make import pod
from tests.support.kubernetes.kube_rights import MANIFEST, rights_of
from tests.support.kubernetes.kube_scheduler import suits

pytestmark = [
    pytest.mark.slow(minutes=2),
    pytest.mark.skipif(
        not all(path.exists() for path in PROGRAMS.values()),
        reason="no kube-apiserver here: `tools/kubernetes-server` builds one on Debian 12, in about five minutes",
    ),
]
WITHIN_S = 60.0
ACCOUNT = "system:serviceaccount:assay:assay"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    cluster = RealCluster(tmp_path_factory.mktemp("kubernetes"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def kubelets(real: RealCluster) -> Iterator[RealKubelets]:
    kubelets = RealKubelets(real)
    for name in ("n1", "n2", "n3"):
        kubelets.add(name)
    yield kubelets
    kubelets.stop()
    assert kubelets.failures == []


@pytest.fixture
def adapter(
    real: RealCluster, kubelets: RealKubelets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KubernetesScheduler]:
    for name in ("HTTPS_PROXY", "https_proxy", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    path = real.kubeconfig(f"assay-{tmp_path.name}", token=real.issue_token(3600))
    yield KubernetesScheduler(make_node_settings({"kubernetes": {"kubeconfig": str(path)}}), patience_s=0.0)
    for name in ("n1", "n2", "n3"):
        patch = {"spec": {"unschedulable": None, "taints": None}, "metadata": {"annotations": None, "labels": None}}
        real.ask("PATCH", f"/api/v1/nodes/{name}", patch, **MERGE)
    for kind in ("poddisruptionbudgets", "pods"):
        group = "/api/v1" if kind == "pods" else "/apis/policy/v1beta1"
        for namespace in ("ml", "assay"):
            real.ask("DELETE", f"{group}/namespaces/{namespace}/{kind}", {"gracePeriodSeconds": 0})
    kubelets.silent.clear()
    eventually(lambda: not real.ask("GET", "/api/v1/pods")[1]["items"])


def eventually(done: Callable[[], object]) -> None:
    ends_at = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < ends_at, "it did not come"
        time.sleep(0.1)


def test_the_server_is_the_oldest_that_we_support(real: RealCluster):
    told = real.ask("GET", "/version")[1]
    assert (int(told["major"]), int(told["minor"])) == OLDEST_VERSION


def test_cordons_of_ours_and_of_others(real: RealCluster, kubelets: RealKubelets, adapter: KubernetesScheduler):
    adapter.cordon("n1", "gpu.xid.79: off the bus")
    there = kubelets.read("n1")
    assert there["spec"]["unschedulable"] is True
    assert {"assay.dev/cordon", "nvidia.com/gpu"} <= {taint["key"] for taint in there["spec"]["taints"]}
    assert {"AssayCordoned", "Ready"} == {one["type"] for one in there["status"]["conditions"]}
    assert adapter.read_cordon_reason("n1") == "assay: gpu.xid.79: off the bus"
    adapter.uncordon("n1")
    assert adapter.read_cordon_reason("n1") == ""
    adapter.cordon_many(dict.fromkeys(("n1", "n2", "n3"), "hall 1 is hot"))
    assert {status.cordon for status in adapter.read_statuses(["n1", "n2", "n3"]).values()} == {"assay: hall 1 is hot"}


def test_pods_come_last_to_a_node_by_our_taint_alone(
    real: RealCluster, kubelets: RealKubelets, adapter: KubernetesScheduler
):
    def taints() -> set[tuple[str, str]]:
        return {(taint["key"], taint["effect"]) for taint in kubelets.read("n1")["spec"].get("taints", [])}

    theirs = {"key": "team", "value": "a", "effect": "NoSchedule"}
    real.ask("PATCH", "/api/v1/nodes/n1", {"spec": {"taints": [theirs]}}, **MERGE)
    told = adapter.rank_nodes({"n1": True, "n2": True, "n9": True})
    assert list(told) == ["n9"], "the server has no such node"
    assert taints() == {("team", "NoSchedule"), (LAST_KEY, "PreferNoSchedule")}
    assert adapter.rank_nodes({"n1": True}) == {}, "the same again is well"
    adapter.cordon("n1", "gpu.xid.79: off the bus")
    adapter.uncordon("n1")
    assert taints() == {("team", "NoSchedule"), (LAST_KEY, "PreferNoSchedule")}, "a cordon leaves both"
    assert "unschedulable" not in kubelets.read("n2")["spec"], "pods may still come"
    assert adapter.rank_nodes({"n1": False, "n2": False}) == {}
    assert taints() == {("team", "NoSchedule")}
    assert LAST_KEY not in {taint["key"] for taint in kubelets.read("n2")["spec"].get("taints", [])}


def test_a_write_in_between_is_a_conflict_and_is_tried_again(
    real: RealCluster, kubelets: RealKubelets, adapter: KubernetesScheduler
):
    """With n writes of others in between, the first n of ours are refused (409), and nobody's change is lost."""
    cluster = adapter._cluster
    plain, others = cluster.core.patch_node, iter(range(3))

    def patch(*arguments: Any, **options: Any) -> Any:
        if (number := next(others, None)) is not None:
            mine = {"metadata": {"labels": {f"bob{number}": "was-here"}}}
            real.ask("PATCH", "/api/v1/nodes/n1", mine, **MERGE)
        return plain(*arguments, **options)

    since = now_in_cluster()
    cluster.core.patch_node = patch
    try:
        adapter.cordon("n1", "fw")
    finally:
        cluster.core.patch_node = plain
    codes = [one["responseStatus"]["code"] for one in real.audited(ACCOUNT, since) if one["verb"] == "patch"]
    assert codes[:4] == [409, 409, 409, 200]
    assert {"bob0", "bob1", "bob2", "assay.dev/state"} <= kubelets.read("n1")["metadata"]["labels"].keys()


def test_who_writes_all_the_time_is_told_apart_from_done(real: RealCluster, adapter: KubernetesScheduler):
    cluster = adapter._cluster
    plain = cluster.core.patch_node

    def patch(*arguments: Any, **options: Any) -> Any:
        mine = {"metadata": {"labels": {"bob": str(time.monotonic())}}}
        real.ask("PATCH", "/api/v1/nodes/n1", mine, **MERGE)
        return plain(*arguments, **options)

    cluster.core.patch_node = patch
    try:
        with pytest.raises(AssayError, match="others changed the node 5 times"):
            adapter.cordon("n1", "fw")
    finally:
        cluster.core.patch_node = plain
    assert adapter.read_cordon_reason("n1") == ""


def test_a_list_over_a_compaction_is_whole(
    real: RealCluster, adapter: KubernetesScheduler, monkeypatch: pytest.MonkeyPatch
):
    """The store forgets a list's revision between two of its chunks: the server answers 410, and nothing is missing."""
    monkeypatch.setattr(client, "LIST_CHUNK", 2)
    for number in range(7):
        real.run_pod(f"llama-{number}", f"n{number % 3 + 1}")
    cluster, asked = adapter._cluster, []
    plain = cluster.core.list_pod_for_all_namespaces

    def list_pods(**options: Any) -> Any:
        if "_continue" in options and len(asked) == 1:
            real.ask("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"a": str(time.time())}}}, **MERGE)
            real.compact()
        asked.append(options)
        return plain(**options)

    since = now_in_cluster()
    cluster.core.list_pod_for_all_namespaces = list_pods
    try:
        statuses = adapter.read_statuses(["n1", "n2", "n3"])
    finally:
        cluster.core.list_pod_for_all_namespaces = plain
    listed = [one for one in real.audited(ACCOUNT, since) if one["objectRef"]["resource"] == "pods"]
    assert [one["responseStatus"]["code"] for one in listed] == [200, 410, 200]
    assert sorted(job.id for status in statuses.values() for job in status.jobs) == [f"ml/llama-{n}" for n in range(7)]


def test_a_budget_refuses_the_eviction_until_it_is_gone(real: RealCluster, adapter: KubernetesScheduler):
    real.run_pod("traefik-0", "n1", "traefik")
    real.run_pod("llama-0", "n1")
    budget = real.protect("edge", "traefik", at_least=1)
    eventually(lambda: real.is_counted(budget))
    since = now_in_cluster()
    with pytest.raises(AssayError, match=r"1 of 2 pods may not be evicted now: job ml/traefik-0 .*ml/edge allows no"):
        adapter.drain("n1", "fw", now=True)
    codes = {
        one["objectRef"]["name"]: one["responseStatus"]["code"]
        for one in real.audited(ACCOUNT, since)
        if one["objectRef"].get("subresource") == "eviction"
    }
    assert codes == {"traefik-0": 429, "llama-0": 201}
    eventually(lambda: [job.id for job in adapter.list_jobs("n1")] == ["ml/traefik-0"])
    real.ask("DELETE", budget)
    adapter.drain("n1", "fw", now=True)
    eventually(lambda: adapter.list_jobs("n1") == ())


def test_a_budget_that_nobody_has_counted_yet_is_waited_for(
    real: RealCluster, adapter: KubernetesScheduler, monkeypatch: pytest.MonkeyPatch
):
    """429 too, but without a Retry-After: servers send that since after this version (test_kube_unknown_jobs.py)."""
    real.run_pod("llama-0", "n1")
    manager, waits = real.daemons["kube-controller-manager"], []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        manager.send_signal(signal.SIGCONT)
        eventually(lambda: real.is_counted(budget))

    manager.send_signal(signal.SIGSTOP)
    try:
        budget = real.protect("fresh", "train", at_least=0)
        monkeypatch.setattr(jobs, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
        adapter.patience_s = WITHIN_S
        adapter.drain("n1", "fw", now=True)
    finally:
        manager.send_signal(signal.SIGCONT)
    assert waits == [1.0]
    monkeypatch.undo()
    eventually(lambda: adapter.list_jobs("n1") == ())


def test_a_notice_is_a_condition_and_one_event(real: RealCluster, kubelets: RealKubelets, adapter: KubernetesScheduler):
    left, back = NodeNotice(False, "It left.", "0001"), NodeNotice(True, "It is back.", "0002")
    for notice in (left, left, back):
        adapter.show_notices({"n2": notice})
        assert adapter.find_missing_notices({"n2": notice}) == {}
    conditions = {one["type"]: one for one in kubelets.read("n2")["status"]["conditions"]}
    told = conditions["assay.dev/InService"]
    assert (told["status"], told["reason"], told["message"]) == ("True", "InService", "It is back.")
    assert conditions["Ready"]["reason"] == "KubeletReady", "the kubelet's own condition stays"
    events = real.ask("GET", "/apis/events.k8s.io/v1/namespaces/kube-system/events")[1]["items"]
    ours = {
        one["metadata"]["name"]: one
        for one in events
        if one["regarding"]["name"] == "n2" and "assay" in one["metadata"]["name"]
    }
    assert {name: (one["type"], one["note"]) for name, one in ours.items()} == {
        "assay-0001": ("Warning", "It left."),
        "assay-0002": ("Normal", "It is back."),
    }


def test_a_token_that_expires_is_read_again(real: RealCluster, tmp_path: Path, kubelets: RealKubelets):
    """The kubeconfig stays as it is; only the file that it names has a new token."""
    token, short = tmp_path / "token", real.issue_token(-52.0)  # the server takes it 60 s longer
    token.write_text(short)
    path = real.kubeconfig("expiring", tokenFile=str(token))
    scheduler = KubernetesScheduler(make_node_settings({"kubernetes": {"kubeconfig": str(path)}}))
    assert scheduler.read_cordon_reason("n1") == ""
    eventually(lambda: real.ask("GET", "/api/v1/nodes", token=short)[0] == 401)
    with pytest.raises(AssayError, match=r"does not know us \(401\)"):
        scheduler.read_statuses(["n1"])
    scheduler = KubernetesScheduler(make_node_settings({"kubernetes": {"kubeconfig": str(path)}}))
    token.write_text(real.issue_token(-52.0))
    assert scheduler.read_cordon_reason("n1") == "", "the new token of the file, though 8 s short"
    held = token.read_text()
    eventually(lambda: real.ask("GET", "/api/v1/nodes", token=held)[0] == 401)
    token.write_text(real.issue_token(3600))
    assert scheduler.read_cordon_reason("n1") == "", "no request fails where the file was renewed in time"


def test_a_node_whose_lease_ends_has_lost_its_overdue_pods(
    real: RealCluster, kubelets: RealKubelets, adapter: KubernetesScheduler
):
    """The node controller sees no lease, and says that the node is not ready; a pod that should be gone is lost."""
    real.run_pod("llama-0", "n2")
    kubelets.silent.add("n2")
    real.ask("DELETE", "/api/v1/namespaces/ml/pods/llama-0", {"gracePeriodSeconds": 1})
    (job,) = adapter.read_statuses(["n2"])["n2"].jobs
    assert not job.is_lost, "the lease still lives"
    eventually(lambda: [job.is_lost for job in adapter.read_statuses(["n2"])["n2"].jobs] == [True])
    kubelets.silent.clear()
    eventually(lambda: adapter.read_statuses(["n2"])["n2"].jobs == ())


def test_a_cordon_that_asks_for_a_verification(real: RealCluster, kubelets: RealKubelets, adapter: KubernetesScheduler):
    node, merge = "/api/v1/nodes/n1", {"Content-Type": "application/merge-patch+json", "User-Agent": "kubectl/v1.20"}
    real.ask("PATCH", node, {"spec": {"unschedulable": True}}, **merge)
    real.ask("PATCH", node, {"metadata": {"annotations": {"assay.dev/verify-undrain": "fans"}}}, **merge)
    told = adapter.read_cordon_reason("n1")
    assert told.startswith("made unschedulable by kubectl since 20")
    assert told.endswith(f"{VERIFY_UNDRAIN}: fans")
    assert adapter.undrain_verified("n1", datetime.now(UTC) - timedelta(seconds=60)) == ""
    assert adapter.undrain_verified("n1", datetime.now(UTC) + timedelta(seconds=60)) == told
    assert adapter.read_cordon_reason("n1") == ""
    assert "assay.dev/verify-undrain" not in kubelets.read("n1")["metadata"].get("annotations", {})


def test_the_manifests_rights_suffice_and_none_is_left_over(
    real: RealCluster, adapter: KubernetesScheduler, monkeypatch: pytest.MonkeyPatch
):
    """The server's audit log of everything that the adapter can do, against what the manifest grants."""
    monkeypatch.setattr(spare_run, "WATCH_INTERVAL_S", 0.0)
    since = now_in_cluster()
    result = adapter.run_spare("n3", ["true"], b"given", 60.0)
    assert (result.exit_code, result.output, result.stderr) == (0, OUTPUT, "said at the end")
    real.run_pod("llama-0", "n1")
    adapter.read_statuses(["n1", "n2"])
    adapter.drain("n1", "fw", now=True)
    eventually(lambda: adapter.list_jobs("n1") == ())
    adapter.uncordon("n1")
    notice = {"n1": NodeNotice(in_service=False, text="It is out.", move="left-once")}
    adapter.show_notices(notice)
    assert adapter.find_missing_notices(notice) == {}
    events = list(real.audited(ACCOUNT, since))
    assert [one for one in events if one["annotations"]["authorization.k8s.io/decision"] != "allow"] == []
    used = {
        (one["verb"], ref.get("apiGroup", ""), "/".join(filter(None, (ref["resource"], ref.get("subresource")))))
        for one in events
        for ref in [one["objectRef"]]
    }
    granted = {(verb, group, resource) for verb, group, resource, _ in rights_of(MANIFEST).granted}
    assert used == granted
    namespaces = {(one["verb"], one["objectRef"]["resource"]): one["objectRef"].get("namespace", "") for one in events}
    assert {namespaces[verb, "pods"] for verb in ("get", "patch", "delete")} == {"assay"}


def test_a_user_without_rights_is_told_the_right_that_it_lacks(real: RealCluster, kubelets: RealKubelets):
    path = real.kubeconfig("nobody", token="assay-token")
    scheduler = KubernetesScheduler(make_node_settings({"kubernetes": {"kubeconfig": str(path)}}))
    with pytest.raises(AssayError, match="RBAC does not let us `list` `nodes`: nodes is forbidden: User"):
        scheduler.read_statuses(["n1", "n2"])


def test_no_cordon_is_lost_among_many_writers(real: RealCluster, kubelets: RealKubelets, adapter: KubernetesScheduler):
    over, written = threading.Event(), []

    def write() -> None:
        while not over.wait(0.02):
            label = {"metadata": {"labels": {"bob": str(len(written))}}}
            real.ask("PATCH", "/api/v1/nodes/n2", label, **MERGE)
            written.append(label)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(10):
            adapter.cordon("n2", f"reason {number}")
            assert adapter.read_cordon_reason("n2") == f"assay: reason {number}"
            adapter.uncordon("n2")
    finally:
        over.set()
        thread.join()
    assert written
    assert kubelets.read("n2")["metadata"]["labels"]["bob"] == str(len(written) - 1)


def test_the_recipe_builds_nothing_twice():
    recipe = MANIFEST.parents[1] / "tools" / "kubernetes-server"
    told = subprocess.run([recipe], capture_output=True, text=True, check=False, timeout=60)
    assert told.returncode == 0, told.stderr
    assert "Kubernetes v1." in told.stdout, "what is there is not built again"


def test_a_pod_suits_only_nodes_whose_state_is_in_service(
    real: RealCluster,
    kubelets: RealKubelets,
    adapter: KubernetesScheduler,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """What the server has on each node decides about placement; `suits` is the rule of the scheduler that it lacks."""
    for name in STATES:
        kubelets.add(name)
    memory = enrol(tmp_path, "kubernetes", lambda _: adapter)
    run_pass(memory, monkeypatch)
    train = pod("llama-0", "", owner="train")
    assert [name for name in STATES if suits(train, kubelets.read(name))] == SERVING
    (opened,) = [name for name in CLOSED if STATES[name] == "onboard"]
    patch = {"spec": {"unschedulable": None, "taints": None}, "metadata": {"annotations": None, "labels": None}}
    real.ask("PATCH", f"/api/v1/nodes/{opened}", patch, **MERGE)
    assert suits(train, kubelets.read(opened))
    run_pass(memory, monkeypatch)
    assert not suits(train, kubelets.read(opened))
