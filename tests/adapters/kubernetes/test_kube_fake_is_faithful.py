"""The fake is as strict as the API server that it stands for: each of these is something that it must refuse or do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.kubernetes.client import (
    STRATEGIC_MERGE_PATCH,
    ApiRefusal,
    ApiRequest,
    KubernetesApi,
    connect_cluster,
)
from assay.model.errors import AssayError
from tests.support.kubernetes import kube_server
from tests.support.kubernetes.kube_make import node, pod
from tests.support.kubernetes.kube_models import Unfaithful, judged
from tests.support.kubernetes.kube_server import KubeFake

MERGE, JSON = "application/merge-patch+json", "application/json-patch+json"
PATCH = ApiRequest("patch", "nodes", "n1")


@pytest.fixture
def cluster(adapter: KubernetesScheduler) -> KubernetesApi:
    return connect_cluster(adapter.settings)


@pytest.mark.parametrize(
    "spoil",
    [
        {"spec": {"unschedulabel": True}},
        {"spec": {"taints": [{"key": "a", "effect": "NoSchedule", "reason": "x"}]}},
        {"spec": {"taints": [{"key": "a"}]}},
        {"spec": {"unschedulable": "true"}},
        {"metadata": {"annotations": {"a": 7}}},
    ],
)
def test_a_body_that_the_clients_models_do_not_have_is_refused(cluster: KubernetesApi, spoil: dict[str, Any]):
    with pytest.raises(ApiRefusal, match="strict decoding error") as told:
        cluster.request(PATCH, cluster.core.patch_node, "n1", spoil, _content_type=STRATEGIC_MERGE_PATCH)
    assert told.value.status == 400


def test_a_pod_with_an_unknown_field_is_not_created(cluster: KubernetesApi, kube: KubeFake):
    spec = {"containers": [{"name": "main"}], "priorty": 1}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}
    channel = cluster.core.api_client  # by hand: the client's own models let no such body out
    headers = {"Authorization": "Bearer assay-token", "Content-Type": "application/json"}
    answer = channel.call_api("POST", f"{kube.address}/api/v1/namespaces/assay/pods", headers, body)
    assert (answer.status, b"priorty" in answer.read()) == (400, True)
    assert kube.get("pods", "assay", "x") is None


def test_a_template_that_the_client_is_too_old_for_is_trouble(
    kube: KubeFake, adapter: KubernetesScheduler, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kube_server, "judged", lambda _, body: body)  # a server newer than our client
    template = kube.get("podtemplates", "assay", "assay-spare")
    assert template is not None
    template["template"]["spec"]["newerThanTheClient"] = True
    with pytest.raises(AssayError, match=r"does not know these fields of the body: spec\.newerThanTheClient"):
        adapter.run_spare("n1", ["true"], b"", 5.0)


def test_an_answer_that_would_lose_something_is_no_answer():
    strange = node("n9")
    strange["status"]["mood"] = "good"
    with pytest.raises(Unfaithful, match="mood"):
        judged("V1Node", strange)


def test_a_stale_resource_version_is_a_conflict(cluster: KubernetesApi):
    stale = {"metadata": {"resourceVersion": "1"}, "spec": {"unschedulable": True}}
    with pytest.raises(ApiRefusal, match="object has been modified") as told:
        cluster.request(PATCH, cluster.core.patch_node, "n1", stale, _content_type=STRATEGIC_MERGE_PATCH)
    assert told.value.status == 409


def test_taints_are_replaced_whole_and_conditions_merge_by_type(cluster: KubernetesApi, kube: KubeFake):
    mine = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    cluster.request(PATCH, cluster.core.patch_node, "n1", mine, _content_type=STRATEGIC_MERGE_PATCH)
    told = {"status": {"conditions": [{"type": "X", "status": "True"}]}}
    cluster.request(PATCH, cluster.core.patch_node_status, "n1", told, _content_type=STRATEGIC_MERGE_PATCH)
    there = kube.get("nodes", "", "n1")
    assert there is not None
    assert [taint["key"] for taint in there["spec"]["taints"]] == ["a"]
    assert [one["type"] for one in there["status"]["conditions"]] == ["Ready", "X"]


def test_a_status_is_written_through_its_subresource_only(cluster: KubernetesApi, kube: KubeFake):
    both = {"spec": {"unschedulable": True}, "status": {"phase": "x"}}
    before = kube.get("nodes", "", "n1")
    cluster.request(
        PATCH, cluster.core.patch_node, "n1", {"status": {"phase": "x"}}, _content_type=STRATEGIC_MERGE_PATCH
    )
    cluster.request(PATCH, cluster.core.patch_node_status, "n1", both, _content_type=STRATEGIC_MERGE_PATCH)
    after = kube.get("nodes", "", "n1")
    assert before is not None
    assert after is not None
    assert "unschedulable" not in after["spec"]
    assert after["status"] == before["status"] | {"phase": "x"}


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (MERGE, {"spec": {"unschedulable": True, "taints": None}}),
        (
            JSON,
            [
                {"op": "test", "path": "/spec/taints/0/key", "value": "nvidia.com/gpu"},
                {"op": "add", "path": "/spec/unschedulable", "value": True},
                {"op": "remove", "path": "/spec/taints"},
            ],
        ),
    ],
)
def test_the_other_kinds_of_patch(cluster: KubernetesApi, kind: str, patch: Any):
    after = cluster.request(PATCH, cluster.core.patch_node, "n1", patch, _content_type=kind)
    assert after["spec"] == {"unschedulable": True}


@pytest.mark.parametrize("fields", ["spec.nodName=n1", "status.reason=x"])
def test_a_field_selector_that_is_not_supported_is_refused(cluster: KubernetesApi, fields: str):
    call = cluster.core.list_pod_for_all_namespaces
    with pytest.raises(ApiRefusal, match="field label not supported"):
        cluster.list_all(ApiRequest("list", "pods"), call, field_selector=fields)


def test_every_chunk_of_a_list_is_whole_and_they_are_all(cluster: KubernetesApi, kube: KubeFake):
    for number in range(11):
        kube.put("pods", "ml", pod(f"p{number:02}", "n1"))
    found: list[str] = []
    more: dict[str, Any] = {}
    while True:
        page = cluster.request(ApiRequest("list", "pods"), cluster.core.list_pod_for_all_namespaces, limit=4, **more)
        found += [one["metadata"]["name"] for one in page["items"]]
        if not (token := page["metadata"].get("continue")):
            break
        assert page["metadata"]["remainingItemCount"] == 11 - len(found)
        more = {"_continue": token}
    assert found == [f"p{number:02}" for number in range(11)]


def test_the_clients_own_models_read_what_it_says(cluster: KubernetesApi, kube: KubeFake):
    kube.put("pods", "ml", pod("llama-0", "n1"))
    typed = cluster.core.read_node("n1")
    assert typed.status.allocatable["nvidia.com/gpu"] == "8"
    (one,) = cluster.core.list_pod_for_all_namespaces(field_selector="spec.nodeName=n1").items
    assert one.metadata.owner_references[0].kind == "Job"
    assert json.dumps(cluster.core.api_client.sanitize_for_serialization(one)), "and write it again"
