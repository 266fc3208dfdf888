"""`kubectl exec` into the pod of a DaemonSet that stands on the node and sees it.

A step of Slurm on the node: one core of a job of its own, or a corner of the job that runs there.

`wrap_srun` forwards what goes in and comes out; its environment stays here. Where `join` is on and a job runs, the step
overlaps it: it takes none of its cores, GPUs or memory away from steps to come, but counts as that job's
(needs Slurm's operator or the job's owner). Else the node must have a core to give: a full one is `failed`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence

from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.node_settings import KubernetesExecSettings, SlurmStepSettings
from assay.schedulers.kubernetes_client import list_running_pods
from assay.schedulers.slurm_client import ONE_TASK_OPTIONS
from assay.schedulers.slurm_jobs import find_running_job

PodSelector = tuple[str, str, str]
"""Context, namespace, and the pods' label selector."""


class KubectlExecTransport:
    """Knows the pods of each DaemonSet by node. Lists them once a pass, however many nodes there are."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pods: dict[PodSelector, Mapping[str, str]] = {}

    def wrap_kubectl_exec(self, node: Node, words: Sequence[str]) -> list[str]:
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
        with self._lock:
            if selector not in self._pods:
                context, namespace, labels = selector
                self._pods[selector] = list_running_pods(context, namespace, labels)
            return self._pods[selector]


STEP_OPTIONS = (*ONE_TASK_OPTIONS, "--cpus-per-task=1")
OWN_JOB_OPTIONS = ("--job-name=assay-probe", "--immediate=5", "--mem=64M")
OVERLAP_OPTIONS = ("--overlap", "--mem=0", "--gres=none")
SQUEUE_TIMEOUT_S = 5.0


def wrap_srun(node: Node, words: Sequence[str]) -> list[str]:
    """Return the command. Raises Trouble where Slurm must be asked for the job that runs there, and is silent."""
    settings = node.settings.slurm_step or SlurmStepSettings()
    name = settings.node or node.name
    job = find_running_job(name, SQUEUE_TIMEOUT_S) if settings.join else ""
    how = [f"--jobid={job}", *OVERLAP_OPTIONS] if job else [f"--time={_minutes(words)}", *OWN_JOB_OPTIONS]
    return ["srun", "--quiet", f"--nodelist={name}", *STEP_OPTIONS, *how, *settings.options, "--", *words]


def _minutes(words: Sequence[str]) -> int:
    """Return the job's limit, should nobody be left to end it: a passive probe takes seconds, an active one minutes."""
    return 30 if "--active" in words else math.ceil(SQUEUE_TIMEOUT_S / 60)
