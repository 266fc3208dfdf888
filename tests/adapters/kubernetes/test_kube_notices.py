"""What customers are told of a node, in Kubernetes: our condition and our Events, proved by reading again."""

from __future__ import annotations

from typing import Any

import pytest

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.kubernetes.cordon import IN_SERVICE_CONDITION
from assay.adapters.scheduler import NodeNotice, ShowsNotices
from assay.model.errors import AssayError
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.kubernetes.kube_store import Thing

LEFT = NodeNotice(in_service=False, text="It left service. Back: not known yet.", move="a1")
BACK = NodeNotice(in_service=True, text="It is in service again.", move="a2")


def condition(kube: KubeFake, node: str = "n1") -> Thing:
    there = kube.get("nodes", "", node)
    assert there is not None
    return next(one for one in there["status"]["conditions"] if one["type"] == IN_SERVICE_CONDITION)


def events(kube: KubeFake) -> list[tuple[Any, ...]]:
    return [(one["regarding"]["name"], one["type"], one["note"]) for one in kube.store.all("events", "kube-system")]


def test_a_node_that_leaves_has_a_condition_and_an_event(kube: KubeFake, adapter: KubernetesScheduler):
    assert isinstance(adapter, ShowsNotices)
    adapter.show_notices({"n1": LEFT})
    told = condition(kube)
    assert (told["status"], told["reason"], told["message"]) == ("False", "OutOfService", LEFT.text)
    assert events(kube) == [("n1", "Warning", LEFT.text)]
    assert adapter.find_missing_notices({"n1": LEFT}) == {}
    ready = kube.get("nodes", "", "n1")["status"]["conditions"][0]  # type: ignore[index]
    assert ready["type"] == "Ready", "the conditions of others stay"


def test_what_is_shown_again_is_shown_once(kube: KubeFake, adapter: KubernetesScheduler):
    adapter.show_notices({"n1": LEFT})
    once = condition(kube)
    kube.asked.clear()
    adapter.show_notices({"n1": LEFT})
    assert condition(kube) == once
    assert len(events(kube)) == 1
    assert "patch nodes/status" not in kube.asked


def test_new_words_change_the_condition_and_make_no_event(kube: KubeFake, adapter: KubernetesScheduler):
    adapter.show_notices({"n1": LEFT})
    kube.edit(
        "nodes", "", "n1", lambda one: one["status"]["conditions"][-1].update(lastTransitionTime="2020-01-02T03:04:05Z")
    )
    renewed = NodeNotice(in_service=False, text="Back: by noon.")
    adapter.show_notices({"n1": renewed})
    assert condition(kube)["message"] == "Back: by noon."
    assert condition(kube)["lastTransitionTime"] == "2020-01-02T03:04:05Z", "it is out since then"
    assert len(events(kube)) == 1
    adapter.show_notices({"n1": BACK})
    assert condition(kube)["status"] == "True"
    assert [one[1] for one in events(kube)] == ["Warning", "Normal"]


def test_what_is_not_there_is_found_missing(kube: KubeFake, adapter: KubernetesScheduler):
    notices = {"n1": LEFT, "n2": LEFT, "n9": LEFT}
    assert set(adapter.find_missing_notices(notices)) == {"n1", "n2", "n9"}
    with pytest.raises(AssayError, match="1 of 3 notices could not be shown: the cluster does not know the node n9"):
        adapter.show_notices({**notices, "n2": NodeNotice(False, LEFT.text, "b7")})
    missing = adapter.find_missing_notices(notices)
    assert missing == {"n2": "the event assay-a1 is about n1", "n9": "the cluster does not know this node"}
    kube.edit("nodes", "", "n1", lambda one: one["status"].update(conditions=one["status"]["conditions"][:1]))
    assert "does not say so" in adapter.find_missing_notices({"n1": LEFT})["n1"]
    for event in list(kube.store.all("events", "kube-system")):
        kube.store.remove("events", event)
    adapter.show_notices({"n1": NodeNotice(False, LEFT.text)})
    assert "not found" in adapter.find_missing_notices({"n1": LEFT})["n1"]


def test_a_lacking_right_is_named(kube: KubeFake, adapter: KubernetesScheduler):
    kube.users["assay-token"].granted.discard(("create", "events.k8s.io", "events", "kube-system"))
    with pytest.raises(
        AssayError, match=r"RBAC does not let us `create` `events\.events\.k8s\.io` in the namespace kube-system"
    ):
        adapter.show_notices({"n1": LEFT})


def test_a_long_text_is_cut_where_the_api_server_would_refuse_it(kube: KubeFake, adapter: KubernetesScheduler):
    long = NodeNotice(False, "ä" * 900, "a3")
    adapter.show_notices({"n1": long})
    assert condition(kube)["message"] == long.text
    assert events(kube)[0][2] == "ä" * 500
