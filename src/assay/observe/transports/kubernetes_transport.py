"""The transport `kubernetes`: `kubectl exec` into the pod of a DaemonSet that runs on the node and sees it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.node_settings import KubernetesExecSettings
from assay.observe.transports.command_transport import CommandTransport
from assay.observe.transports.transport_protocol import TransportContext

PodSelector = tuple[str, str, str]
"""Context, namespace, and the pods' label selector."""


class KubectlExecTransport(CommandTransport):
    """Runs the probe through kubectl. Lists the pods of each DaemonSet once a pass, for all nodes."""

    settings_name = "kubernetes_exec"
    settings_model = KubernetesExecSettings

    def __init__(self, context: TransportContext) -> None:
        super().__init__(context)
        self._lock = threading.Lock()
        self._pods: dict[PodSelector, Mapping[str, str]] = {}

    def wrap(self, node: Node, words: Sequence[str]) -> list[str]:
        """Return the command. Raises AssayError if no pod runs on the node, or if the cluster does not answer."""
        settings = node.settings.kubernetes_exec or KubernetesExecSettings()
        name = settings.node or node.name
        pod = self._find_pods((settings.context, settings.namespace, settings.pods)).get(name)
        if pod is None:
            raise AssayError(f"no pod {settings.pods} runs on {name} in the namespace {settings.namespace}")
        context = [f"--context={settings.context}"] if settings.context else []
        container = [f"--container={settings.container}"] if settings.container else []
        command = ["kubectl", *context, f"--namespace={settings.namespace}", "exec", "--stdin", pod, *container]
        return [*command, "--", *words]

    def _find_pods(self, selector: PodSelector) -> Mapping[str, str]:
        """Return node → pod."""
        from assay.adapters.kubernetes.kubernetes_client import list_running_pods

        with self._lock:
            if selector not in self._pods:
                context, namespace, labels = selector
                self._pods[selector] = list_running_pods(context, namespace, labels)
            return self._pods[selector]
