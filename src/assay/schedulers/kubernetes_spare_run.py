"""Work in a node's spare time: a pod that anything of a customer's puts out, watched for as long as it is there.

How a pod of ours ended, and for whom it made room.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from assay.model.errors import AssayError
from assay.model.specs.node_settings import KubernetesClusterSettings
from assay.schedulers.kubernetes_client import (
    STRATEGIC_MERGE_PATCH,
    ApiRefusal,
    ApiRequest,
    KubernetesApi,
    KubernetesObject,
)
from assay.schedulers.kubernetes_cordon import read_node
from assay.schedulers.kubernetes_labels import FIELD_MANAGER, WATCHED_ANNOTATION, format_kubernetes_now, measure_age_s
from assay.schedulers.kubernetes_pods import is_customer_pod, is_spare_pod, make_customer_job
from assay.schedulers.kubernetes_spare_pod import (
    GRACE_S,
    build_input_config_map,
    build_spare_pod,
    find_waiting_pods,
    format_spare_pod_name,
    is_preemptible,
    read_resource_requests,
)
from assay.schedulers.scheduler_adapter import SpareRunResult, format_jobs

DEADLINE_EXCEEDED = "DeadlineExceeded"


def read_exit(pod: KubernetesObject) -> tuple[int, str] | None:
    """Return the exit status and last words of a pod's first container; None for one that did not end by itself."""
    if pod["status"].get("reason") or pod["metadata"].get("deletionTimestamp"):
        return None  # DeadlineExceeded, Evicted, Preempting, UnexpectedAdmissionError: somebody else ended it
    name = pod["spec"]["containers"][0]["name"]
    states = [one.get("state") or {} for one in pod["status"].get("containerStatuses") or [] if one["name"] == name]
    ended = next((state["terminated"] for state in states if state.get("terminated")), None)
    return None if ended is None else (int(ended["exitCode"]), str(ended.get("message") or ""))


def describe_preemption(pod: KubernetesObject, promised: Callable[[], Iterable[KubernetesObject]]) -> str:
    """Return who or what ended a pod before its time, "" where nobody did; `promised` asks who shall have the node."""
    disrupted = [one for one in pod["status"].get("conditions") or [] if one["type"] == "DisruptionTarget"]
    if disrupted and disrupted[0]["status"] == "True":
        takers = format_jobs(make_customer_job(taker) for taker in promised())
        return takers or str(disrupted[0].get("message") or disrupted[0].get("reason") or "the cluster")
    reason = pod["status"].get("reason")
    if reason and reason != DEADLINE_EXCEEDED:
        return f"the node's kubelet: {reason}: {pod['status'].get('message', '')}".rstrip(": ")
    return "whoever deleted our pod" if pod["metadata"].get("deletionTimestamp") else ""


def make_unplaced_result(pod: KubernetesObject) -> SpareRunResult:
    """Return what came of a pod whose time is over: why it never began, where it did not."""
    waited = [one for one in pod["status"].get("conditions") or [] if one["status"] == "False" and one.get("message")]
    return SpareRunResult(None, stderr="; ".join(f"{one['type']}: {one['message']}" for one in waited))


POLL_S = 0.5
WATCH_INTERVAL_S = 3.0
UNWATCHED_AFTER_S = 15.0
"""A pod that nobody watched over for so long is a leftover of a controller that was killed."""

DELETE_TIMEOUT_S = 30.0
HTTP_NOT_FOUND, HTTP_CONFLICT = 404, 409


class KubernetesSpareRun:
    """One node's spare time in a cluster."""

    def __init__(self, cluster: KubernetesApi, settings: KubernetesClusterSettings, node: str) -> None:
        self._cluster, self._core, self._settings, self._node = cluster, cluster.core, settings, node
        self._namespace, self._name = settings.namespace, format_spare_pod_name(node)

    def run(self, command: Sequence[str], given: bytes, deadline_s: float) -> SpareRunResult:
        """Run a command in a pod of its own, which is gone afterwards, whatever happens."""
        ends_at = time.monotonic() + deadline_s
        with self._pod(command, given, deadline_s) as pod:
            return self._watch(pod, ends_at)

    @contextmanager
    def _pod(self, command: Sequence[str], given: bytes, deadline_s: float) -> Iterator[KubernetesObject]:
        wanted = build_spare_pod(self._template(), self._node, command, deadline_s, format_kubernetes_now())
        pod = self._create(wanted)
        try:
            if not is_preemptible(pod):
                fix = "give it a priorityClassName with a value below 0 and preemptionPolicy Never"
                raise AssayError("the PodTemplate's pods would not make room for customers", where=self._node, fix=fix)
            body = build_input_config_map(pod, given)
            self._request("create", "configmaps", self._core.create_namespaced_config_map, self._namespace, body)
            yield pod
        except BaseException:
            with suppress(AssayError):  # the first trouble counts; what is left is removed at the next look
                delete_pod(self._cluster, pod)
            raise
        delete_pod(self._cluster, pod)

    def _template(self) -> KubernetesObject:
        name = self._settings.spare
        try:
            return self._request(
                "get", "podtemplates", self._core.read_namespaced_pod_template, name, self._namespace, name=name
            )
        except ApiRefusal as refused:
            if refused.status != HTTP_NOT_FOUND:
                raise
            what = f"there is no PodTemplate {name} in the namespace {self._namespace}"
            fix = "`kubectl apply -f deploy/kubernetes.yaml` brings one"
            raise AssayError(what, where=self._cluster.server, fix=fix) from None

    def _create(self, wanted: KubernetesObject) -> KubernetesObject:
        """Create the pod. One of the same name is another controller's, unless nobody watches it any more."""
        ends_at = time.monotonic() + DELETE_TIMEOUT_S
        while True:
            try:
                return self._request("create", "pods", self._core.create_namespaced_pod, self._namespace, wanted)
            except ApiRefusal as refused:
                if refused.status != HTTP_CONFLICT:
                    raise
            there = self._read_pod()
            if (
                there
                and not there["metadata"].get("deletionTimestamp")
                and not delete_unwatched_pods(self._cluster, [there])
            ):
                raise AssayError("another controller uses its spare time now", where=self._node)
            if time.monotonic() > ends_at:
                raise AssayError(f"our last pod on it did not go within {DELETE_TIMEOUT_S:g} s", where=self._node)
            time.sleep(POLL_S)

    def _watch(self, pod: KubernetesObject, ends_at: float) -> SpareRunResult:
        told_at = time.monotonic()
        while True:
            seen = self._read_pod()
            if seen is None or seen["metadata"]["uid"] != pod["metadata"]["uid"]:
                return SpareRunResult(None, preempted_by=self._find_customers() or "whoever deleted our pod")
            if ended := read_exit(seen):
                return SpareRunResult(ended[0], self._log(seen), ended[1])
            if makes_room := self._find_preemptor(seen):
                return SpareRunResult(None, preempted_by=makes_room)
            if time.monotonic() > ends_at or seen["status"].get("phase") == "Failed":
                return make_unplaced_result(seen)
            if time.monotonic() - told_at > WATCH_INTERVAL_S:
                self._renew_watch()
                told_at = time.monotonic()
            time.sleep(POLL_S)

    def _find_preemptor(self, seen: KubernetesObject) -> str:
        """Return for whom our pod has to go, or who made it go: "" while nobody wants its place."""
        if disrupted := describe_preemption(seen, self._list_nominated):
            return disrupted
        return self._find_customers() or format_jobs(make_customer_job(pod) for pod in self._list_waiting(seen))

    def _find_customers(self) -> str:
        """Return which customers have the node now."""
        there = self._pods(f"spec.nodeName={self._node}")
        return format_jobs(make_customer_job(pod) for pod in there if is_customer_pod(pod, self._namespace))

    def _list_nominated(self) -> list[KubernetesObject]:
        """Return the pods for which the scheduler makes room on the node."""
        return self._pods(f"status.nominatedNodeName={self._node}")

    def _list_waiting(self, seen: KubernetesObject) -> Iterable[KubernetesObject]:
        if not read_resource_requests(seen):
            return []
        node = read_node(self._cluster, self._node)
        return find_waiting_pods(node, seen, self._pods("spec.nodeName=,status.phase=Pending"), self._namespace)

    def _pods(self, fields: str) -> list[KubernetesObject]:
        """Return pods as the API server has them at hand (`resourceVersion` 0): asked often, and again soon."""
        call = self._core.list_pod_for_all_namespaces
        return list(
            self._cluster.request(ApiRequest("list", "pods"), call, field_selector=fields, resource_version="0")[
                "items"
            ]
        )

    def _read_pod(self) -> KubernetesObject | None:
        try:
            return self._request("get", "pods", self._core.read_namespaced_pod, self._name, self._namespace)
        except ApiRefusal as refused:
            if refused.status == HTTP_NOT_FOUND:
                return None
            raise

    def _log(self, seen: KubernetesObject) -> bytes:
        question = ApiRequest("get", "pods/log", self._name, self._namespace)
        call, first = self._core.read_namespaced_pod_log, seen["spec"]["containers"][0]["name"]
        return self._cluster.request_bytes(question, call, self._name, self._namespace, container=first)

    def _renew_watch(self) -> None:
        told = {"metadata": {"annotations": {WATCHED_ANNOTATION: format_kubernetes_now()}}}
        call = self._core.patch_namespaced_pod
        with suppress(ApiRefusal):  # gone in between: the next look finds that
            self._request(
                "patch",
                "pods",
                call,
                self._name,
                self._namespace,
                told,
                field_manager=FIELD_MANAGER,
                _content_type=STRATEGIC_MERGE_PATCH,
            )

    def _request(
        self, verb: str, resource: str, call: object, *given: object, name: str = "", **options: object
    ) -> KubernetesObject:
        question = ApiRequest(verb, resource, name or self._name, self._namespace)
        return dict(self._cluster.request(question, call, *given, **options))  # type: ignore[arg-type]


def delete_unwatched_pods(cluster: KubernetesApi, pods: Iterable[KubernetesObject]) -> int:
    """Delete those of our pods that nobody watches any more; return how many there were."""
    left = [
        pod
        for pod in pods
        if measure_age_s((pod["metadata"].get("annotations") or {})[WATCHED_ANNOTATION]) > UNWATCHED_AFTER_S
    ]
    for pod in left:
        delete_pod(cluster, pod)
    return len(left)


def delete_leftover_pods(cluster: KubernetesApi, pods: Iterable[KubernetesObject], namespace: str) -> None:
    """Delete the leftovers among pods that were seen for another reason, which goes before."""
    with suppress(AssayError):
        delete_unwatched_pods(
            cluster,
            [one for one in pods if is_spare_pod(one, namespace) and not one["metadata"].get("deletionTimestamp")],
        )


def delete_pod(cluster: KubernetesApi, pod: KubernetesObject) -> None:
    """Delete a pod of ours, if it is still there; what it owns goes with it."""
    meta = pod["metadata"]
    body = {"preconditions": {"uid": meta["uid"]}, "gracePeriodSeconds": GRACE_S, "propagationPolicy": "Background"}
    question = ApiRequest("delete", "pods", meta["name"], meta["namespace"])
    try:
        cluster.request(question, cluster.core.delete_namespaced_pod, meta["name"], meta["namespace"], body=body)
    except ApiRefusal as refused:
        if refused.status not in (HTTP_NOT_FOUND, HTTP_CONFLICT):
            raise
