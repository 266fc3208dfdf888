"""The pod that runs in a node's spare time: the site's PodTemplate, and what makes it run our command on that node.

The input travels as a ConfigMap and not through `attach`: a broken connection cannot cut it short, a restarted kubelet
finds it again, and it ends with the pod that owns it. Output is the pod's log; what goes to standard error is its
termination message, of which the kubelet keeps the last 4 KiB.
"""

from __future__ import annotations

import base64
import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

from assay.actions.kubernetes_workloads.cluster import Object
from assay.actions.kubernetes_workloads.keys import CORDON, FOR_NODE, SPARE, WATCHED
from assay.model.errors import Trouble

LARGEST_INPUT = 1_000_000
"""Bytes. The API server takes a ConfigMap of 1 MiB (`MaxSecretSize`)."""

GRACE_S = 1
SAID = "/dev/termination-log"
FOLDER, FILE = "/assay", "given"
RUN = 'exec "$@" <"$ASSAY_GIVEN" 2>"$ASSAY_SAID"'
TOLERATED = (CORDON, "node.kubernetes.io/unschedulable")


def name_of(node: str) -> str:
    """Return the name of a node's pod: two controllers cannot both have one on the same node."""
    return f"assay-spare-{node}"


def pod_of(template: Object, node: str, command: Sequence[str], deadline_s: float, moment: str) -> Object:
    """Return the pod. It ends by itself after `deadline_s` even if nobody is left who watches."""
    spec: Object = copy.deepcopy(template["template"]["spec"])
    meta = template["template"].get("metadata") or {}
    first = spec["containers"][0]
    first["command"] = ["sh", "-c", RUN, "sh", *command]
    first.pop("args", None)
    first["terminationMessagePath"] = SAID
    given = [{"name": "ASSAY_GIVEN", "value": f"{FOLDER}/{FILE}"}, {"name": "ASSAY_SAID", "value": SAID}]
    first["env"] = [*(first.get("env") or []), *given]
    mount = {"name": "assay-given", "mountPath": FOLDER, "readOnly": True}
    first["volumeMounts"] = [*(first.get("volumeMounts") or []), mount]
    volume = {"name": "assay-given", "configMap": {"name": name_of(node)}}
    spec["volumes"] = [*(spec.get("volumes") or []), volume]
    spec["tolerations"] = [*(spec.get("tolerations") or []), *({"key": k, "operator": "Exists"} for k in TOLERATED)]
    spec["affinity"] = {**(spec.get("affinity") or {}), "nodeAffinity": _on(node)}
    limits = {"activeDeadlineSeconds": max(1, math.ceil(deadline_s)), "terminationGracePeriodSeconds": GRACE_S}
    spec |= {"restartPolicy": "Never", **limits}
    told = {**(meta.get("annotations") or {}), FOR_NODE: node, WATCHED: moment}
    labels = {**(meta.get("labels") or {}), SPARE: "true"}
    named = {"name": name_of(node), "labels": labels, "annotations": told}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec}


def input_of(pod: Object, given: bytes) -> Object:
    """Return the ConfigMap that holds a pod's input, and ends with the pod. Raises Trouble for too large an input."""
    meta = pod["metadata"]
    if len(given) > LARGEST_INPUT:
        raise Trouble(f"the input has {len(given)} bytes, and a pod's may have {LARGEST_INPUT}", where=meta["name"])
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    named = {"name": meta["name"], "labels": {SPARE: "true"}, "ownerReferences": [owner]}
    content = {"binaryData": {FILE: base64.b64encode(given).decode()}, "immutable": True}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, **content}


def humble(pod: Object) -> bool:
    """Say whether a pod, as it was admitted, makes room for any customer's and takes room from none."""
    spec = pod["spec"]
    return bool(spec.get("priority", 0) < 0 and spec.get("preemptionPolicy") == "Never")


def asked_for(pod: Object) -> dict[str, Any]:
    """Return what the pod's containers ask for, each resource with the first quantity; empty for a pod that takes none.

    A limit without a request asks as well: admission makes it one.
    """
    asked: dict[str, Any] = {}
    for resources in _resources(pod):
        for name, quantity in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            asked.setdefault(name, quantity)
    return asked


def _resources(pod: Object) -> Iterator[Object]:
    for container in pod["spec"]["containers"]:
        yield container.get("resources") or {}


def _on(node: str) -> Object:
    """Return the affinity that lets the scheduler place a pod on one node only, as DaemonSets do it."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
