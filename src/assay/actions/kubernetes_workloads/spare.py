"""Work in a node's spare time: a pod that anything of a customer's puts out, watched for as long as it is there."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from assay.actions.kubernetes_workloads.cluster import STRATEGIC, Cluster, Object
from assay.actions.kubernetes_workloads.cordoning import read
from assay.actions.kubernetes_workloads.demand import waiting_for
from assay.actions.kubernetes_workloads.keys import MANAGER, WATCHED
from assay.actions.kubernetes_workloads.pod import is_customers, is_spare, job_of
from assay.actions.kubernetes_workloads.refused import Question, Refused
from assay.actions.kubernetes_workloads.spare_end import exit_of, put_out, unplaced
from assay.actions.kubernetes_workloads.spare_pod import GRACE_S, asked_for, humble, input_of, name_of, pod_of
from assay.actions.kubernetes_workloads.times import age_s, now
from assay.actions.workloads import Spare, named
from assay.fleet.kubernetes_cluster import KubernetesCluster
from assay.model.errors import Trouble

LOOK_S = 0.5
WATCH_S = 3.0
UNWATCHED_S = 15.0
"""A pod that nobody watched over for so long is a leftover of a controller that was killed."""

GONE_WITHIN_S = 30.0
MISSING, TAKEN = 404, 409


class SpareTime:
    """One node's spare time in a cluster."""

    def __init__(self, cluster: Cluster, settings: KubernetesCluster, node: str) -> None:
        self._cluster, self._core, self._settings, self._node = cluster, cluster.core, settings, node
        self._namespace, self._name = settings.namespace, name_of(node)

    def run(self, command: Sequence[str], given: bytes, deadline_s: float) -> Spare:
        """Run a command in a pod of its own, which is gone afterwards, whatever happens."""
        ends_at = time.monotonic() + deadline_s
        with self._pod(command, given, deadline_s) as pod:
            return self._watched(pod, ends_at)

    @contextmanager
    def _pod(self, command: Sequence[str], given: bytes, deadline_s: float) -> Iterator[Object]:
        wanted = pod_of(self._template(), self._node, command, deadline_s, now())
        pod = self._created(wanted)
        try:
            if not humble(pod):
                fix = "give it a priorityClassName with a value below 0 and preemptionPolicy Never"
                raise Trouble("the PodTemplate's pods would not make room for customers", where=self._node, fix=fix)
            body = input_of(pod, given)
            self._ask("create", "configmaps", self._core.create_namespaced_config_map, self._namespace, body)
            yield pod
        except BaseException:
            with suppress(Trouble):  # the first trouble counts; what is left is removed at the next look
                delete(self._cluster, pod)
            raise
        delete(self._cluster, pod)

    def _template(self) -> Object:
        name = self._settings.spare
        try:
            return self._ask(
                "get", "podtemplates", self._core.read_namespaced_pod_template, name, self._namespace, name=name
            )
        except Refused as refused:
            if refused.status != MISSING:
                raise
            what = f"there is no PodTemplate {name} in the namespace {self._namespace}"
            fix = "`kubectl apply -f deploy/kubernetes.yaml` brings one"
            raise Trouble(what, where=self._cluster.server, fix=fix) from None

    def _created(self, wanted: Object) -> Object:
        """Create the pod. One of the same name is another controller's, unless nobody watches it any more."""
        ends_at = time.monotonic() + GONE_WITHIN_S
        while True:
            try:
                return self._ask("create", "pods", self._core.create_namespaced_pod, self._namespace, wanted)
            except Refused as refused:
                if refused.status != TAKEN:
                    raise
            there = self._seen()
            if there and not there["metadata"].get("deletionTimestamp") and not sweep(self._cluster, [there]):
                raise Trouble("another controller uses its spare time now", where=self._node)
            if time.monotonic() > ends_at:
                raise Trouble(f"our last pod on it did not go within {GONE_WITHIN_S:g} s", where=self._node)
            time.sleep(LOOK_S)

    def _watched(self, pod: Object, ends_at: float) -> Spare:
        told_at = time.monotonic()
        while True:
            seen = self._seen()
            if seen is None or seen["metadata"]["uid"] != pod["metadata"]["uid"]:
                return Spare(None, yielded=self._taker() or "whoever deleted our pod")
            if ended := exit_of(seen):
                return Spare(ended[0], self._log(seen), ended[1])
            if makes_room := self._for_whom(seen):
                return Spare(None, yielded=makes_room)
            if time.monotonic() > ends_at or seen["status"].get("phase") == "Failed":
                return unplaced(seen)
            if time.monotonic() - told_at > WATCH_S:
                self._still_watched()
                told_at = time.monotonic()
            time.sleep(LOOK_S)

    def _for_whom(self, seen: Object) -> str:
        """Return for whom our pod has to go, or who made it go: "" while nobody wants its place."""
        if disrupted := put_out(seen, self._promised):
            return disrupted
        return self._taker() or named(job_of(pod) for pod in self._waiting(seen))

    def _taker(self) -> str:
        """Return which customers have the node now."""
        there = self._pods(f"spec.nodeName={self._node}")
        return named(job_of(pod) for pod in there if is_customers(pod, self._namespace))

    def _promised(self) -> list[Object]:
        """Return the pods for which the scheduler makes room on the node."""
        return self._pods(f"status.nominatedNodeName={self._node}")

    def _waiting(self, seen: Object) -> Iterable[Object]:
        if not asked_for(seen):
            return []
        node = read(self._cluster, self._node)
        return waiting_for(node, seen, self._pods("spec.nodeName=,status.phase=Pending"), self._namespace)

    def _pods(self, fields: str) -> list[Object]:
        """Return pods as the API server has them at hand (`resourceVersion` 0): asked often, and again soon."""
        call = self._core.list_pod_for_all_namespaces
        return list(
            self._cluster.ask(Question("list", "pods"), call, field_selector=fields, resource_version="0")["items"]
        )

    def _seen(self) -> Object | None:
        try:
            return self._ask("get", "pods", self._core.read_namespaced_pod, self._name, self._namespace)
        except Refused as refused:
            if refused.status == MISSING:
                return None
            raise

    def _log(self, seen: Object) -> bytes:
        question = Question("get", "pods/log", self._name, self._namespace)
        call, first = self._core.read_namespaced_pod_log, seen["spec"]["containers"][0]["name"]
        return self._cluster.ask_bytes(question, call, self._name, self._namespace, container=first)

    def _still_watched(self) -> None:
        told = {"metadata": {"annotations": {WATCHED: now()}}}
        call = self._core.patch_namespaced_pod
        with suppress(Refused):  # gone in between: the next look finds that
            self._ask(
                "patch", "pods", call, self._name, self._namespace, told, field_manager=MANAGER, _content_type=STRATEGIC
            )

    def _ask(self, verb: str, resource: str, call: object, *given: object, name: str = "", **options: object) -> Object:
        question = Question(verb, resource, name or self._name, self._namespace)
        return dict(self._cluster.ask(question, call, *given, **options))  # type: ignore[arg-type]


def sweep(cluster: Cluster, pods: Iterable[Object]) -> int:
    """Delete those of our pods that nobody watches any more; return how many there were."""
    left = [pod for pod in pods if age_s((pod["metadata"].get("annotations") or {})[WATCHED]) > UNWATCHED_S]
    for pod in left:
        delete(cluster, pod)
    return len(left)


def sweep_seen(cluster: Cluster, pods: Iterable[Object], namespace: str) -> None:
    """Delete the leftovers among pods that were seen for another reason, which goes before."""
    with suppress(Trouble):
        sweep(
            cluster, [one for one in pods if is_spare(one, namespace) and not one["metadata"].get("deletionTimestamp")]
        )


def delete(cluster: Cluster, pod: Object) -> None:
    """Delete a pod of ours, if it is still there; what it owns goes with it."""
    meta = pod["metadata"]
    body = {"preconditions": {"uid": meta["uid"]}, "gracePeriodSeconds": GRACE_S, "propagationPolicy": "Background"}
    question = Question("delete", "pods", meta["name"], meta["namespace"])
    try:
        cluster.ask(question, cluster.core.delete_namespaced_pod, meta["name"], meta["namespace"], body=body)
    except Refused as refused:
        if refused.status not in (MISSING, TAKEN):
            raise
