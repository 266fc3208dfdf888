"""`kubectl exec` into the pod of a DaemonSet that stands on the node and sees it."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from assay.model.errors import Trouble
from assay.model.fleet import Node

NAMESPACE = "assay"
PODS = "app.kubernetes.io/name=assay-agent"
ASKING_S = 10.0

Where = tuple[str, str, str]
"""Context, namespace, and the pods' label selector."""


class Kubernetes:
    """Knows the pods of each DaemonSet by node; asked for once a pass, however many nodes there are."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pods: dict[Where, Mapping[str, str]] = {}

    def exec(self, node: Node, words: Sequence[str]) -> list[str]:
        """Return the command. Raises Trouble where no pod runs on the node, or the cluster does not say."""
        told: dict[str, Any] = node.variables.get("kubernetes_exec") or {}
        where = (
            str(told.get("context", "")),
            str(told.get("namespace", NAMESPACE)),
            str(told.get("pods", PODS)),
        )
        name = str(told.get("node") or node.name)
        pod = self._on_nodes(where).get(name)
        if pod is None:
            raise Trouble(f"no pod {where[2]} runs on {name} in the namespace {where[1]}")
        container = [f"--container={told['container']}"] if told.get("container") else []
        return [*_kubectl(where), "exec", "--stdin", pod, *container, "--", *words]

    def _on_nodes(self, where: Where) -> Mapping[str, str]:
        with self._lock:
            if where not in self._pods:
                self._pods[where] = _running_pods(where)
            return self._pods[where]


def _kubectl(where: Where) -> list[str]:
    context, namespace, _ = where
    return ["kubectl", *([f"--context={context}"] if context else []), f"--namespace={namespace}"]


def _running_pods(where: Where) -> dict[str, str]:
    """Return node → pod."""
    asked = ["get", "pods", f"--selector={where[2]}", "--field-selector=status.phase=Running", "--output=json"]
    try:
        done = subprocess.run([*_kubectl(where), *asked], capture_output=True, timeout=ASKING_S, check=False)
        items = json.loads(done.stdout)["items"]
        return {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in items}
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Trouble(f"kubectl does not list the pods {where[2]}: {type(error).__name__}") from None
    except (ValueError, KeyError, TypeError):
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
        raise Trouble(f"kubectl does not list the pods {where[2]}: {said or 'no list of pods'}") from None
