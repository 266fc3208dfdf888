"""Runs a command in a node's spare time on Kubernetes, in a pod that gives way to every customer's pod.

A controller watches the pod as long as it exists. A pod that nobody watches is deleted by the next controller.

The pod is the site's PodTemplate with our command. Its input is a ConfigMap, not `attach`: no broken connection cuts it
short, a restarted kubelet finds it again, and it ends with the pod. Its output is the pod's log. Its standard error is
the termination message, of which the kubelet keeps the last 4 KiB.
"""

from __future__ import annotations

import base64
import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from assay.adapters.kubernetes.client import (
    HTTP_CONFLICT,
    HTTP_NOT_FOUND,
    STRATEGIC_MERGE_PATCH,
    ApiRefusal,
    ApiRequest,
    KubernetesApi,
    KubernetesObject,
)
from assay.adapters.kubernetes.cordon import (
    CORDON_KEY,
    FIELD_MANAGER,
    NODE_ANNOTATION,
    SPARE_LABEL,
    WATCHED_ANNOTATION,
    format_kubernetes_now,
    measure_age_s,
    read_annotations,
    read_node,
)
from assay.adapters.kubernetes.jobs import (
    find_waiting_pods,
    is_customer_pod,
    is_spare_pod,
    make_customer_job,
    read_resource_requests,
)
from assay.adapters.scheduler import SpareRunResult, format_jobs
from assay.model.errors import AssayError
from assay.model.specs.node.load_tools import LoadDelivery
from assay.model.specs.node_settings import KubernetesClusterSettings

MAX_INPUT_BYTES = 1_000_000
"""The API server takes a ConfigMap of up to 1 MiB (`MaxSecretSize`)."""
GRACE_S = 1
STDERR_PATH = "/dev/termination-log"
INPUT_FOLDER, INPUT_FILE = "/assay", "given"
RUN_SCRIPT = (
    '"$@" <"$ASSAY_GIVEN" 2>"$ASSAY_SAID" & child=$!; trap "kill -9 $child; exit 143" TERM INT; wait $child; exit $?'
)
"""The shell ends at once when the kubelet tells it to. Without a trap, the kernel ignores that for a first process."""
TOLERATED_TAINTS = (CORDON_KEY, "node.kubernetes.io/unschedulable")
MISSING_IMAGE = "ErrImageNeverPull"
DEADLINE_EXCEEDED = "DeadlineExceeded"
POLL_S = 0.25
LEAVE_POLL_S = 0.05
LEAVE_TIMEOUT_S = 5.0
WATCH_INTERVAL_S = 3.0
UNWATCHED_AFTER_S = 15.0
"""A pod that was not watched for this long is a leftover of a killed controller."""
DELETE_TIMEOUT_S = 30.0


class KubernetesSpareRun:
    """The spare time of one node."""

    def __init__(
        self, cluster: KubernetesApi, settings: KubernetesClusterSettings, node: str, load: LoadDelivery | None = None
    ) -> None:
        self._load = load if load and load.way == "kubernetes" else None
        self._cluster = cluster
        self._core = cluster.core
        self._settings = settings
        self._node = node
        self._namespace, self._name = settings.namespace, format_spare_pod_name(node)

    def run(self, command: Sequence[str], given: bytes, deadline_s: float) -> SpareRunResult:
        """Run a command in a pod of its own, with `given` as its input. The pod is deleted in every case."""
        ends_at = time.monotonic() + deadline_s
        with self._pod(command, given, deadline_s) as pod:
            result = self._watch(pod, ends_at)
            return self._leave(pod, result) if result.preempted_by else result

    @contextmanager
    def _pod(self, command: Sequence[str], given: bytes, deadline_s: float) -> Iterator[KubernetesObject]:
        template, moment = self._read_template(), format_kubernetes_now()
        wanted = build_spare_pod(template, self._node, command, deadline_s, moment, self._load)
        pod = self._create(wanted)
        try:
            if not is_preemptible(pod):
                fix = "give it a priorityClassName with a value below 0 and preemptionPolicy Never"
                raise AssayError("the PodTemplate's pods would not give way to customers", where=self._node, fix=fix)
            body = build_input_config_map(pod, given)
            self._request("create", "configmaps", self._core.create_namespaced_config_map, self._namespace, body)
            yield pod
        except BaseException:
            with suppress(AssayError):  # the first error counts; the next reading deletes what is left
                delete_pod(self._cluster, pod)
            raise
        delete_pod(self._cluster, pod)

    def _read_template(self) -> KubernetesObject:
        name, read = self._settings.spare, self._core.read_namespaced_pod_template
        try:
            return self._request("get", "podtemplates", read, name, self._namespace, name=name)
        except ApiRefusal as refusal:
            if refusal.status != HTTP_NOT_FOUND:
                raise
            problem = f"there is no PodTemplate {name} in the namespace {self._namespace}"
            fix = "`kubectl apply -f deploy/kubernetes.yaml` creates one"
            raise AssayError(problem, where=self._cluster.server, fix=fix) from None

    def _create(self, wanted: KubernetesObject) -> KubernetesObject:
        """Create the pod. A pod of that name is another controller's, or a leftover that is deleted first."""
        ends_at = time.monotonic() + DELETE_TIMEOUT_S
        while True:
            try:
                return self._request("create", "pods", self._core.create_namespaced_pod, self._namespace, wanted)
            except ApiRefusal as refusal:
                if refusal.status != HTTP_CONFLICT:
                    raise
            there = self._read_pod()
            is_ending = there is None or bool(there["metadata"].get("deletionTimestamp"))
            if there and not is_ending and not delete_unwatched_pods(self._cluster, [there]):
                raise AssayError("another controller uses its spare time now", where=self._node)
            if time.monotonic() > ends_at:
                problem = f"the last pod of its spare time was not deleted within {DELETE_TIMEOUT_S:g} s"
                raise AssayError(problem, where=self._node)
            time.sleep(POLL_S)

    def _leave(self, pod: KubernetesObject, result: SpareRunResult) -> SpareRunResult:
        """Make room, then read what the pod printed until now, and measure how long at most customers waited."""
        delete_pod(self._cluster, pod)
        output = b""
        with suppress(AssayError):  # its container may be gone already
            output = self._read_log(pod)
        ends_at = time.monotonic() + LEAVE_TIMEOUT_S
        while time.monotonic() < ends_at:
            there = self._read_pod()
            states = there["status"].get("containerStatuses") or [] if there else []
            has_ended = bool(states) and all("terminated" in (state.get("state") or {}) for state in states)
            if there is None or there["metadata"]["uid"] != pod["metadata"]["uid"] or has_ended:
                gone_ms = math.ceil(1000 * (time.monotonic() - self._free_until))
                return replace(result, output=output, gone_ms=gone_ms)
            time.sleep(LEAVE_POLL_S)
        return replace(result, output=output)

    def _watch(self, pod: KubernetesObject, ends_at: float) -> SpareRunResult:
        renewed_at = time.monotonic()
        self._free_until = time.monotonic()
        while True:
            asked_at = time.monotonic()
            seen = self._read_pod()
            if seen is None or seen["metadata"]["uid"] != pod["metadata"]["uid"]:
                return SpareRunResult(None, preempted_by=self._find_customers() or "whoever deleted our pod")
            if ended := read_exit(seen):
                return SpareRunResult(ended[0], self._read_log(seen), ended[1])
            preemptor = (
                describe_preemption(seen, self._list_nominated)
                or self._find_customers()
                or format_jobs(make_customer_job(waiting) for waiting in self._list_waiting(seen))
            )
            if preemptor:
                return SpareRunResult(None, preempted_by=preemptor)
            self._free_until = asked_at
            if lack := find_missing_image(seen):
                return SpareRunResult(None, stderr=lack)
            if time.monotonic() > ends_at or seen["status"].get("phase") == "Failed":
                return make_unplaced_result(seen)
            if time.monotonic() - renewed_at > WATCH_INTERVAL_S:
                self._renew_watch()
                renewed_at = time.monotonic()
            time.sleep(POLL_S)

    def _find_customers(self) -> str:
        """Return the customers that are on the node."""
        pods = self._list_pods(f"spec.nodeName={self._node}")
        return format_jobs(make_customer_job(pod) for pod in pods if is_customer_pod(pod, self._namespace))

    def _list_nominated(self) -> list[KubernetesObject]:
        """Return the pods for which the scheduler makes room on the node."""
        return self._list_pods(f"status.nominatedNodeName={self._node}")

    def _list_waiting(self, seen: KubernetesObject) -> Iterable[KubernetesObject]:
        if not read_resource_requests(seen):
            return []
        node = read_node(self._cluster, self._node)
        return find_waiting_pods(node, seen, self._list_pods("spec.nodeName=,status.phase=Pending"), self._namespace)

    def _list_pods(self, fields: str) -> list[KubernetesObject]:
        """Return pods from the API server's cache (`resourceVersion` 0): this is asked often, and again soon."""
        call, request = self._core.list_pod_for_all_namespaces, ApiRequest("list", "pods")
        return self._cluster.list_at_once(request, call, field_selector=fields, resource_version="0")

    def _read_pod(self) -> KubernetesObject | None:
        try:
            return self._request("get", "pods", self._core.read_namespaced_pod, self._name, self._namespace)
        except ApiRefusal as refusal:
            if refusal.status == HTTP_NOT_FOUND:
                return None
            raise

    def _read_log(self, seen: KubernetesObject) -> bytes:
        request = ApiRequest("get", "pods/log", self._name, self._namespace)
        call, first = self._core.read_namespaced_pod_log, seen["spec"]["containers"][0]["name"]
        return self._cluster.request_bytes(request, call, self._name, self._namespace, container=first)

    def _renew_watch(self) -> None:
        patch = {"metadata": {"annotations": {WATCHED_ANNOTATION: format_kubernetes_now()}}}
        options = {"field_manager": FIELD_MANAGER, "_content_type": STRATEGIC_MERGE_PATCH}
        call = self._core.patch_namespaced_pod
        with suppress(ApiRefusal):  # the pod is gone: the next reading finds that
            self._request("patch", "pods", call, self._name, self._namespace, patch, **options)

    def _request(
        self, verb: str, resource: str, call: object, *arguments: object, name: str = "", **options: object
    ) -> KubernetesObject:
        request = ApiRequest(verb, resource, name or self._name, self._namespace)
        return dict(self._cluster.request(request, call, *arguments, **options))  # type: ignore[arg-type]


def read_exit(pod: KubernetesObject) -> tuple[int, str] | None:
    """Return exit code and termination message of a pod's first container; None if it did not end by itself."""
    if pod["status"].get("reason") or pod["metadata"].get("deletionTimestamp"):
        return None  # DeadlineExceeded, Evicted, Preempting, UnexpectedAdmissionError: somebody else ended it
    name = pod["spec"]["containers"][0]["name"]
    states = [
        status.get("state") or {} for status in pod["status"].get("containerStatuses") or [] if status["name"] == name
    ]
    ended = next((state["terminated"] for state in states if state.get("terminated")), None)
    return None if ended is None else (int(ended["exitCode"]), str(ended.get("message") or ""))


def find_missing_image(pod: KubernetesObject) -> str:
    """Return that the node lacks the image of the pod, "" if it has it or that is not known yet."""
    states = (status.get("state") or {} for status in pod["status"].get("containerStatuses") or [])
    waiting = [state["waiting"] for state in states if state.get("waiting")]
    lacks = [status for status in waiting if status.get("reason") == MISSING_IMAGE]
    image = pod["spec"]["containers"][0].get("image", "")
    return f"the image {image} is not on the node, and a visit pulls nothing (docs/load-tools.md)" if lacks else ""


def describe_preemption(pod: KubernetesObject, list_nominated: Callable[[], Iterable[KubernetesObject]]) -> str:
    """Return who or what ended a pod early, "" if nobody did. `list_nominated` returns the pods that get its node."""
    conditions = pod["status"].get("conditions") or []
    disruption = next((condition for condition in conditions if condition["type"] == "DisruptionTarget"), None)
    if disruption and disruption["status"] == "True":
        takers = format_jobs(make_customer_job(taker) for taker in list_nominated())
        return takers or str(disruption.get("message") or disruption.get("reason") or "the cluster")
    reason = pod["status"].get("reason")
    if reason and reason != DEADLINE_EXCEEDED:
        return f"the node's kubelet: {reason}: {pod['status'].get('message', '')}".rstrip(": ")
    return "whoever deleted our pod" if pod["metadata"].get("deletionTimestamp") else ""


def make_unplaced_result(pod: KubernetesObject) -> SpareRunResult:
    """Return the result of a pod that ran out of time, with the reasons why it did not start."""
    conditions = pod["status"].get("conditions") or []
    reasons = [
        f"{condition['type']}: {condition['message']}"
        for condition in conditions
        if condition["status"] == "False" and condition.get("message")
    ]
    return SpareRunResult(None, stderr="; ".join(reasons))


def delete_unwatched_pods(cluster: KubernetesApi, pods: Iterable[KubernetesObject]) -> int:
    """Delete those of our pods that no controller watches. Return how many there were."""
    unwatched = [pod for pod in pods if measure_age_s(read_annotations(pod)[WATCHED_ANNOTATION]) > UNWATCHED_AFTER_S]
    for pod in unwatched:
        delete_pod(cluster, pod)
    return len(unwatched)


def delete_leftover_pods(cluster: KubernetesApi, pods: Iterable[KubernetesObject], namespace: str) -> None:
    """Delete our unwatched pods among `pods`, which were read for another purpose. Errors are ignored."""
    ours = [pod for pod in pods if is_spare_pod(pod, namespace) and not pod["metadata"].get("deletionTimestamp")]
    with suppress(AssayError):
        delete_unwatched_pods(cluster, ours)


def delete_pod(cluster: KubernetesApi, pod: KubernetesObject) -> None:
    """Delete a pod of ours, and with it what it owns. A pod that is gone is no error."""
    meta = pod["metadata"]
    body = {"preconditions": {"uid": meta["uid"]}, "gracePeriodSeconds": GRACE_S, "propagationPolicy": "Background"}
    request = ApiRequest("delete", "pods", meta["name"], meta["namespace"])
    try:
        cluster.request(request, cluster.core.delete_namespaced_pod, meta["name"], meta["namespace"], body=body)
    except ApiRefusal as refusal:
        if refusal.status not in (HTTP_NOT_FOUND, HTTP_CONFLICT):
            raise


def format_spare_pod_name(node: str) -> str:
    """Return the name of a node's pod. It is the same for all controllers, so that a node has one at most."""
    return f"assay-spare-{node}"


def build_spare_pod(
    template: KubernetesObject,
    node: str,
    command: Sequence[str],
    deadline_s: float,
    moment: str,
    load: LoadDelivery | None = None,
) -> KubernetesObject:
    """Return the pod. It ends after `deadline_s` by itself, even if no controller watches it any more.

    With `load`, it runs that image, which the kubelet must have already: a visit pulls nothing.
    """
    spec: KubernetesObject = copy.deepcopy(template["template"]["spec"])
    meta = template["template"].get("metadata") or {}
    first = spec["containers"][0]
    first["command"] = ["sh", "-c", RUN_SCRIPT, "sh", *command]
    first.pop("args", None)
    first["terminationMessagePath"] = STDERR_PATH
    if load is not None:
        _use_load_image(spec, load)
    streams = [
        {"name": "ASSAY_GIVEN", "value": f"{INPUT_FOLDER}/{INPUT_FILE}"},
        {"name": "ASSAY_SAID", "value": STDERR_PATH},
    ]
    first["env"] = [*(first.get("env") or []), *streams]
    mount = {"name": "assay-given", "mountPath": INPUT_FOLDER, "readOnly": True}
    first["volumeMounts"] = [*(first.get("volumeMounts") or []), mount]
    volume = {"name": "assay-given", "configMap": {"name": format_spare_pod_name(node)}}
    spec["volumes"] = [*(spec.get("volumes") or []), volume]
    spec["tolerations"] = [
        *(spec.get("tolerations") or []),
        *({"key": k, "operator": "Exists"} for k in TOLERATED_TAINTS),
    ]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}  # as for a pod of a DaemonSet
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    spec["affinity"] = {**(spec.get("affinity") or {}), "nodeAffinity": affinity}
    limits = {"activeDeadlineSeconds": max(1, math.ceil(deadline_s)), "terminationGracePeriodSeconds": GRACE_S}
    spec |= {"restartPolicy": "Never", **limits}
    annotations = {**(meta.get("annotations") or {}), NODE_ANNOTATION: node, WATCHED_ANNOTATION: moment}
    labels = {**(meta.get("labels") or {}), SPARE_LABEL: "true"}
    metadata = {"name": format_spare_pod_name(node), "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _use_load_image(spec: KubernetesObject, load: LoadDelivery) -> None:
    """Let the first container run the load's image, with its variables and folders of the node."""
    first = spec["containers"][0]
    first |= {"image": load.image, "imagePullPolicy": "Never"}
    first["env"] = [*(first.get("env") or []), *({"name": k, "value": v} for k, v in sorted(load.environment.items()))]
    for number, mount in enumerate(load.mounts):
        source, target, *options = mount.split(":")
        name = f"assay-load-{number}"
        spec["volumes"] = [*(spec.get("volumes") or []), {"name": name, "hostPath": {"path": source}}]
        place = {"name": name, "mountPath": target, "readOnly": options == ["ro"]}
        first["volumeMounts"] = [*(first.get("volumeMounts") or []), place]


def build_input_config_map(pod: KubernetesObject, given: bytes) -> KubernetesObject:
    """Return the ConfigMap with a pod's input, which ends with the pod. Raises AssayError for too large an input."""
    meta = pod["metadata"]
    if len(given) > MAX_INPUT_BYTES:
        problem = f"the input has {len(given)} bytes, more than the {MAX_INPUT_BYTES} of a pod's input"
        raise AssayError(problem, where=meta["name"])
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    metadata = {"name": meta["name"], "labels": {SPARE_LABEL: "true"}, "ownerReferences": [owner]}
    content = {"binaryData": {INPUT_FILE: base64.b64encode(given).decode()}, "immutable": True}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}


def is_preemptible(pod: KubernetesObject) -> bool:
    """Say whether a pod, as it was admitted, gives way to every customer's pod and displaces none."""
    spec = pod["spec"]
    return bool(spec.get("priority", 0) < 0 and spec.get("preemptionPolicy") == "Never")
