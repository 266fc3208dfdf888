"""Customers read on the node that it left service and that it is back: recorded first, proved by reading, told once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.model.entries.entry_content import EntryContent
from assay.model.entries.node_entries import OperationDeferredEntry, OperationDroppedEntry, OperationPlannedEntry
from assay.model.specs.node_settings import make_node_settings
from assay.model.timestamps import format_time
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.kubernetes.kube_store import Thing
from tests.tell.messages.hall import Hall

SHOWN = {"scheduler": {"shown": True, "every_minutes": 60}}


@pytest.fixture
def cluster(hall: Hall, kube: KubeFake) -> KubeFake:
    """Return the cluster of a hall whose policy asks for notices."""
    hall.rules = SHOWN
    hall.scheduler = KubernetesScheduler(make_node_settings({"kubernetes": {"kubeconfig": str(kube.kubeconfig())}}))
    return kube


def shown(kube: KubeFake, name: str = "n0003") -> Thing:
    there = kube.get("nodes", "", name)
    assert there is not None
    return {one["type"]: one for one in there["status"]["conditions"]}.get("assay.dev/InService", {})


def events(kube: KubeFake) -> list[tuple[str, str]]:
    return sorted((one["eventTime"], one["reason"]) for one in kube.store.all("events", "kube-system"))


def kinds(hall: Hall) -> list[str]:
    return [one.kind for one in hall.notes()]


def test_customers_read_that_a_node_left_and_that_it_is_back(hall: Hall, cluster: KubeFake):
    hall.leaves("n0003")
    hall.tell()
    assert shown(cluster)["status"] == "False"
    assert "a GPU no longer answers" in shown(cluster)["message"]
    assert " It should be back by " in shown(cluster)["message"]
    assert kinds(hall) == ["notice.intent", "notice.verified"]
    hall.returns("n0003")
    hall.tell()
    assert (shown(cluster)["status"], shown(cluster)["reason"]) == ("True", "InService")
    assert "it was out of service from" in shown(cluster)["message"]
    assert [reason for _, reason in events(cluster)] == ["OutOfService", "InService"]
    assert shown(cluster, "n0004") == {}, "of a node that never left, nobody is told anything"


def test_what_was_told_is_not_told_again(hall: Hall, cluster: KubeFake):
    hall.leaves("n0003")
    hall.tell()
    cluster.asked.clear()
    hall.tell()
    assert cluster.asked == []
    hall.crash()
    hall.tell()
    assert cluster.asked == ["list nodes"], "a new process reads what is there, and writes nothing"
    hall.returns("n0003")
    hall.tell()
    hall.paper.later(hours=30)
    cluster.asked.clear()
    hall.crash()
    hall.tell()
    assert cluster.asked == []


def test_new_words_wait_for_their_time(hall: Hall, cluster: KubeFake):
    hall.leaves("n0003")
    hall.tell()
    until = (hall.now().replace(microsecond=0)).replace(year=hall.now().year + 1).isoformat()
    hall.paper.say("hold", "n0003", until=until)
    hall.tell()
    assert "staff hold" not in shown(cluster)["message"]
    hall.paper.later(hours=1)
    hall.tell()
    assert "our staff hold it until then" in shown(cluster)["message"]
    assert len(events(cluster)) == 1


def test_an_interrupted_notice_is_finished_by_the_next_process(hall: Hall, cluster: KubeFake):
    hall.leaves("n0003")
    cluster.stop()
    hall.tell()
    assert kinds(hall) == ["notice.intent"]
    assert "n0003: customers are not told on the node: the API server does not answer" in hall.said[-1]
    cluster.start()
    hall.crash()
    hall.tell()
    assert kinds(hall) == ["notice.intent", "notice.verified"]
    assert len(events(cluster)) == 1


def test_what_a_reading_does_not_show_has_failed_and_is_tried_again_later(hall: Hall, cluster: KubeFake):
    right = ("create", "events.k8s.io", "events", "kube-system")
    cluster.users["assay-token"].granted.discard(right)
    hall.leaves("n0003")
    hall.tell()
    (failed,) = hall.notes("notice.failed")
    assert "not found" in failed.body["reason"]
    assert "RBAC does not let us `create`" in failed.body["reason"]
    cluster.users["assay-token"].granted.add(right)
    hall.tell()
    assert kinds(hall) == ["notice.intent", "notice.failed"]
    hall.paper.later(hours=1)
    hall.tell()
    assert kinds(hall)[-1] == "notice.verified"
    assert [reason for _, reason in events(cluster)] == ["OutOfService"]


def test_a_node_that_the_cluster_lacks_holds_up_no_other(hall: Hall, cluster: KubeFake):
    hall.leaves("n0009", "n0004")
    hall.tell()
    assert shown(cluster, "n0004")["status"] == "False"
    assert {one.node: one.kind for one in hall.notes("notice.verified", "notice.failed")} == {
        "n0004": "notice.verified",
        "n0009": "notice.failed",
    }


def test_a_node_that_left_again_in_between_has_an_event_for_it(hall: Hall, cluster: KubeFake):
    hall.leaves("n0003")
    hall.tell()
    hall.returns("n0003")
    hall.paper.later(minutes=10)
    hall.leaves("n0003")
    hall.tell()
    assert [reason for _, reason in events(cluster)] == ["OutOfService", "OutOfService"]


def test_a_notice_that_somebody_took_away_is_shown_again_and_not_announced_again(hall: Hall, cluster: KubeFake):
    hall.leaves("n0003")
    hall.tell()
    cluster.edit("nodes", "", "n0003", lambda one: one["status"].update(conditions=one["status"]["conditions"][:1]))
    for event in list(cluster.store.all("events", "kube-system")):
        cluster.store.remove("events", event)  # as Kubernetes does after an hour
    hall.tell()
    assert shown(cluster) == {}
    hall.paper.later(hours=1)
    hall.tell()
    assert shown(cluster)["status"] == "False"
    assert (events(cluster), kinds(hall)[-1]) == ([], "notice.verified")


def plan(hall: Hall, days: int, reason: str = "a new kernel") -> None:
    """Plan a restart of n0004, or the same at another time."""
    hall.tell()  # the ledger knows the nodes
    at = hall.now() + timedelta(days=days)
    window = format_time(at), format_time(at + timedelta(hours=4))
    known = list(hall.ledger.entries(kinds=["operation.planned"]))
    entry: EntryContent = OperationPlannedEntry(
        "op-1", "reboot", "key-1", "production-reboot", "ann", reason, ("n0004",), *window
    )
    if known:
        entry = OperationDeferredEntry("op-1", "ann", reason, *window)
    hall.ledger.append(entry.make_entry(f"entry-{days}", hall.now().isoformat()))


def test_planned_work_is_read_on_a_node_that_serves_until_it_is_over(hall: Hall, cluster: KubeFake):
    plan(hall, days=3)
    hall.tell()
    assert (shown(cluster, "n0004")["status"], shown(cluster, "n0004")["reason"]) == ("True", "PlannedWork")
    first = shown(cluster, "n0004")["message"]
    assert first.startswith("Planned: reboot from ")
    assert first.endswith(": a new kernel")
    hall.crash()
    hall.tell()
    assert kinds(hall) == ["notice.intent", "notice.verified"], "it is told once"
    plan(hall, days=5)
    hall.tell()
    assert shown(cluster, "n0004")["message"] not in ("", first)
    assert [reason for _, reason in events(cluster)] == ["PlannedWork"] * 2, "a deferral is announced"
    dropped = OperationDroppedEntry("op-1", "ann", "not needed any more")
    hall.ledger.append(dropped.make_entry("dropped", hall.now().isoformat()))
    hall.tell()
    hall.tell()
    assert shown(cluster, "n0004")["message"] == "The node is in service, and no work is planned on it."
    assert shown(cluster, "n0004")["reason"] == "InService"
    assert kinds(hall) == ["notice.intent", "notice.verified"] * 3


def test_a_node_that_leaves_tells_that_and_no_plan(hall: Hall, cluster: KubeFake):
    plan(hall, days=3)
    hall.leaves("n0004")
    hall.tell()
    assert shown(cluster, "n0004")["status"] == "False"
    assert "Planned" not in shown(cluster, "n0004")["message"]
    hall.returns("n0004")
    hall.tell()
    assert shown(cluster, "n0004")["status"] == "True"
    assert shown(cluster, "n0004")["message"].startswith("Planned: ")


def test_without_the_policys_word_nothing_is_written(hall: Hall, cluster: KubeFake):
    hall.rules = {}
    plan(hall, days=3)
    hall.leaves("n0003")
    hall.tell()
    assert (cluster.asked, hall.notes()) == ([], [])
