"""The pod that runs in a node's spare time: the site's PodTemplate, and what makes it run our command on that node.

The input travels as a ConfigMap and not through `attach`: a broken connection cannot cut it short, a restarted kubelet
finds it again, and it ends with the pod that owns it. Output is the pod's log; what goes to standard error is its
termination message, of which the kubelet keeps the last 4 KiB.

Customers' pods that wait for what our pod holds: not every scheduler preempts (Volcano, Kueue).
"""

from __future__ import annotations

import base64
import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from assay.model.errors import AssayError
from assay.schedulers.kubernetes_client import KubernetesObject
from assay.schedulers.kubernetes_labels import CORDON_KEY, NODE_ANNOTATION, SPARE_LABEL, WATCHED_ANNOTATION
from assay.schedulers.kubernetes_pods import is_customer_pod

MAX_INPUT_BYTES = 1_000_000
"""Bytes. The API server takes a ConfigMap of 1 MiB (`MaxSecretSize`)."""

GRACE_S = 1
STDERR_PATH = "/dev/termination-log"
INPUT_FOLDER, INPUT_FILE = "/assay", "given"
RUN_SCRIPT = 'exec "$@" <"$ASSAY_GIVEN" 2>"$ASSAY_SAID"'
TOLERATED_TAINTS = (CORDON_KEY, "node.kubernetes.io/unschedulable")


def format_spare_pod_name(node: str) -> str:
    """Return the name of a node's pod: two controllers cannot both have one on the same node."""
    return f"assay-spare-{node}"


def build_spare_pod(
    template: KubernetesObject, node: str, command: Sequence[str], deadline_s: float, moment: str
) -> KubernetesObject:
    """Return the pod. It ends by itself after `deadline_s` even if nobody is left who watches."""
    spec: KubernetesObject = copy.deepcopy(template["template"]["spec"])
    meta = template["template"].get("metadata") or {}
    first = spec["containers"][0]
    first["command"] = ["sh", "-c", RUN_SCRIPT, "sh", *command]
    first.pop("args", None)
    first["terminationMessagePath"] = STDERR_PATH
    given = [
        {"name": "ASSAY_GIVEN", "value": f"{INPUT_FOLDER}/{INPUT_FILE}"},
        {"name": "ASSAY_SAID", "value": STDERR_PATH},
    ]
    first["env"] = [*(first.get("env") or []), *given]
    mount = {"name": "assay-given", "mountPath": INPUT_FOLDER, "readOnly": True}
    first["volumeMounts"] = [*(first.get("volumeMounts") or []), mount]
    volume = {"name": "assay-given", "configMap": {"name": format_spare_pod_name(node)}}
    spec["volumes"] = [*(spec.get("volumes") or []), volume]
    spec["tolerations"] = [
        *(spec.get("tolerations") or []),
        *({"key": k, "operator": "Exists"} for k in TOLERATED_TAINTS),
    ]
    spec["affinity"] = {**(spec.get("affinity") or {}), "nodeAffinity": _build_node_affinity(node)}
    limits = {"activeDeadlineSeconds": max(1, math.ceil(deadline_s)), "terminationGracePeriodSeconds": GRACE_S}
    spec |= {"restartPolicy": "Never", **limits}
    told = {**(meta.get("annotations") or {}), NODE_ANNOTATION: node, WATCHED_ANNOTATION: moment}
    labels = {**(meta.get("labels") or {}), SPARE_LABEL: "true"}
    named = {"name": format_spare_pod_name(node), "labels": labels, "annotations": told}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec}


def build_input_config_map(pod: KubernetesObject, given: bytes) -> KubernetesObject:
    """Return the ConfigMap that holds a pod's input, and ends with the pod. Raises Trouble for too large an input."""
    meta = pod["metadata"]
    if len(given) > MAX_INPUT_BYTES:
        raise AssayError(
            f"the input has {len(given)} bytes, and a pod's may have {MAX_INPUT_BYTES}", where=meta["name"]
        )
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    named = {"name": meta["name"], "labels": {SPARE_LABEL: "true"}, "ownerReferences": [owner]}
    content = {"binaryData": {INPUT_FILE: base64.b64encode(given).decode()}, "immutable": True}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, **content}


def is_preemptible(pod: KubernetesObject) -> bool:
    """Say whether a pod, as it was admitted, makes room for any customer's and takes room from none."""
    spec = pod["spec"]
    return bool(spec.get("priority", 0) < 0 and spec.get("preemptionPolicy") == "Never")


def read_resource_requests(pod: KubernetesObject) -> dict[str, Any]:
    """Return what the pod's containers ask for, each resource with the first quantity; empty for a pod that takes none.

    A limit without a request asks as well: admission makes it one.
    """
    asked: dict[str, Any] = {}
    for resources in _list_resources(pod):
        for name, quantity in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            asked.setdefault(name, quantity)
    return asked


def _list_resources(pod: KubernetesObject) -> Iterator[KubernetesObject]:
    for container in pod["spec"]["containers"]:
        yield container.get("resources") or {}


def _build_node_affinity(node: str) -> KubernetesObject:
    """Return the affinity that lets the scheduler place a pod on one node only, as DaemonSets do it."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}


def find_waiting_pods(
    node: KubernetesObject, ours: KubernetesObject, pods: Iterable[KubernetesObject], namespace: str
) -> Iterator[KubernetesObject]:
    """Yield the pods without a node that ask for a resource that our pod holds, and that could run on this node."""
    held = set(read_resource_requests(ours))
    for pod in pods:
        waits = not pod["spec"].get("nodeName") and is_customer_pod(pod, namespace)
        if waits and held & set(read_resource_requests(pod)) and _fits(pod, node):
            yield pod


def _fits(pod: KubernetesObject, node: KubernetesObject) -> bool:
    """Say whether the empty node could hold the pod, as far as its node selector and its size tell."""
    from kubernetes.utils.quantity import parse_quantity

    labels = node["metadata"].get("labels") or {}
    has = node["status"].get("allocatable") or {}
    wanted = (pod["spec"].get("nodeSelector") or {}).items()
    size = read_resource_requests(pod).items()
    right = all(labels.get(key) == value for key, value in wanted)
    parsed: Callable[[str], Decimal] = parse_quantity
    return right and all(parsed(much) <= parsed(has.get(name, "0")) for name, much in size)
