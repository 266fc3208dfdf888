"""Builds the pod for a node's spare time.

The pod is the site's PodTemplate with our command. Its input is a ConfigMap, not `attach`: no broken connection cuts it
short, a restarted kubelet finds it again, and it ends with the pod. Its output is the pod's log. Its standard error is
the termination message, of which the kubelet keeps the last 4 KiB.
"""

from __future__ import annotations

import base64
import copy
import math
from collections.abc import Sequence

from assay.adapters.kubernetes.kubernetes_client import KubernetesObject
from assay.adapters.kubernetes.kubernetes_labels import CORDON_KEY, NODE_ANNOTATION, SPARE_LABEL, WATCHED_ANNOTATION
from assay.model.errors import AssayError
from assay.model.specs.node.load_delivery import LoadDelivery

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
    spec["affinity"] = {**(spec.get("affinity") or {}), "nodeAffinity": _build_node_affinity(node)}
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
        what = f"the input has {len(given)} bytes, more than the {MAX_INPUT_BYTES} of a pod's input"
        raise AssayError(what, where=meta["name"])
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    metadata = {"name": meta["name"], "labels": {SPARE_LABEL: "true"}, "ownerReferences": [owner]}
    content = {"binaryData": {INPUT_FILE: base64.b64encode(given).decode()}, "immutable": True}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}


def is_preemptible(pod: KubernetesObject) -> bool:
    """Say whether a pod, as it was admitted, gives way to every customer's pod and displaces none."""
    spec = pod["spec"]
    return bool(spec.get("priority", 0) < 0 and spec.get("preemptionPolicy") == "Never")


def _build_node_affinity(node: str) -> KubernetesObject:
    """Return the affinity by which the scheduler places a pod on one node only, as for DaemonSets."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
