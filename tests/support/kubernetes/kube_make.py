"""Objects as customers, their controllers and kubelets would have made them."""

from __future__ import annotations

import uuid
from typing import Any

from tests.support.kubernetes.kube_store import Thing, written


def node(name: str, **labels: str) -> Thing:
    """Return a ready node with 8 GPUs."""
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "",
        "lastTransitionTime": written(),
    }
    info = dict.fromkeys(
        (
            "architecture",
            "bootID",
            "containerRuntimeVersion",
            "kernelVersion",
            "kubeProxyVersion",
            "kubeletVersion",
            "machineID",
            "operatingSystem",
            "osImage",
            "systemUUID",
        ),
        "",
    )
    size = {"cpu": "96", "nvidia.com/gpu": "8", "pods": "110"}
    status = {"conditions": [ready], "allocatable": size, "capacity": size, "nodeInfo": {**info, "bootID": "boot-1"}}
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": [taint]}, "status": status}


def pod(
    name: str, on: str = "", kind: str = "Job", owner: str = "train", gpus: int = 0, ready: bool = True, **more: Any
) -> Thing:
    """Return a customer's pod: running on a node, or without one if it waits. `more` goes to its spec."""
    meta: dict[str, Any] = {"name": name, "labels": {"app": owner}}
    if kind:
        ref = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": _uid(owner), "controller": True}
        meta["ownerReferences"] = [ref]
    resources = {"resources": {"requests": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
    spec = {
        "containers": [{"name": "main", "image": "registry.example.org/train:1", **resources}],
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "priority": 0,
        **({"nodeName": on} if on else {}),
        **more,
    }
    state = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": written()}
    running = {"phase": "Running", "startTime": written(), "conditions": [state]}
    return {"metadata": meta, "spec": spec, "status": running if on else {"phase": "Pending"}}


def mirror(name: str, on: str) -> Thing:
    """Return the mirror of a static pod, as a kubelet makes it."""
    made = pod(name, on, kind="Node", owner=on)
    made["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "abc"}
    return made


def budget(name: str, covers: str, **spec: Any) -> Thing:
    """Return a PodDisruptionBudget of the pods of one owner."""
    return {
        "metadata": {"name": name, "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": covers}}, **spec},
        "status": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
    }


def _uid(owner: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, owner))
