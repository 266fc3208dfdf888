"""`kubectl exec` into the pod of a DaemonSet that stands on the node and sees it.

A step of Slurm on the node: one core of a job of its own, or a corner of the job that runs there.

`wrap_srun` forwards what goes in and comes out; its environment stays here. Where `join` is on and a job runs, the step
overlaps it: it takes none of its cores, GPUs or memory away from steps to come, but counts as that job's
(needs Slurm's operator or the job's owner). Else the node must have a core to give: a full one is `failed`.
"""

from __future__ import annotations

import json
import math
import subprocess
import threading
from collections.abc import Mapping, Sequence

from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.node_settings import KubernetesExecSettings, SlurmStepSettings

KUBECTL_TIMEOUT_S = 10.0

PodSelector = tuple[str, str, str]
"""Context, namespace, and the pods' label selector."""


class KubectlExecTransport:
    """Knows the pods of each DaemonSet by node; asked for once a pass, however many nodes there are."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pods: dict[PodSelector, Mapping[str, str]] = {}

    def wrap_kubectl_exec(self, node: Node, words: Sequence[str]) -> list[str]:
        """Return the command. Raises Trouble where no pod runs on the node, or the cluster does not say."""
        settings = node.settings.kubernetes_exec or KubernetesExecSettings()
        where = (settings.context, settings.namespace, settings.pods)
        name = settings.node or node.name
        pod = self._on_nodes(where).get(name)
        if pod is None:
            raise AssayError(f"no pod {where[2]} runs on {name} in the namespace {where[1]}")
        container = [f"--container={settings.container}"] if settings.container else []
        return [*_kubectl(where), "exec", "--stdin", pod, *container, "--", *words]

    def _on_nodes(self, where: PodSelector) -> Mapping[str, str]:
        with self._lock:
            if where not in self._pods:
                self._pods[where] = _running_pods(where)
            return self._pods[where]


def _kubectl(where: PodSelector) -> list[str]:
    context, namespace, _ = where
    return ["kubectl", *([f"--context={context}"] if context else []), f"--namespace={namespace}"]


def _running_pods(where: PodSelector) -> dict[str, str]:
    """Return node → pod."""
    asked = ["get", "pods", f"--selector={where[2]}", "--field-selector=status.phase=Running", "--output=json"]
    try:
        done = subprocess.run([*_kubectl(where), *asked], capture_output=True, timeout=KUBECTL_TIMEOUT_S, check=False)
        items = json.loads(done.stdout)["items"]
        return {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in items}
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AssayError(f"kubectl does not list the pods {where[2]}: {type(error).__name__}") from None
    except (ValueError, KeyError, TypeError):
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
        raise AssayError(f"kubectl does not list the pods {where[2]}: {said or 'no list of pods'}") from None


STEP_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STEP_OPTIONS = ("--nodes=1", "--ntasks=1", "--cpus-per-task=1", "--chdir=/", f"--export=PATH={STEP_PATH}")
OWN_JOB_OPTIONS = ("--job-name=assay-probe", "--immediate=5", "--mem=64M")
OVERLAP_OPTIONS = ("--overlap", "--mem=0", "--gres=none")
SQUEUE_TIMEOUT_S = 5.0


def wrap_srun(node: Node, words: Sequence[str]) -> list[str]:
    """Return the command. Raises Trouble where Slurm must be asked for the job that runs there, and is silent."""
    settings = node.settings.slurm_step or SlurmStepSettings()
    name = settings.node or node.name
    job = _running_job(name) if settings.join else ""
    how = [f"--jobid={job}", *OVERLAP_OPTIONS] if job else [f"--time={_minutes(words)}", *OWN_JOB_OPTIONS]
    return ["srun", "--quiet", f"--nodelist={name}", *STEP_OPTIONS, *how, *settings.options, "--", *words]


def _minutes(words: Sequence[str]) -> int:
    """Return the job's limit, should nobody be left to end it: a passive probe takes seconds, an active one minutes."""
    return 30 if "--active" in words else math.ceil(SQUEUE_TIMEOUT_S / 60)


def _running_job(name: str) -> str:
    """Return the number of a job that runs on the node, "" where none does."""
    command = ["squeue", "--noheader", "--states=RUNNING", f"--nodelist={name}", "--format=%A"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SQUEUE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AssayError(f"squeue does not say which job runs on {name}: {type(error).__name__}") from None
    if done.returncode:
        raise AssayError(f"squeue does not say which job runs on {name}: {done.stderr.strip()[:200]}")
    return next(iter(done.stdout.split()), "")
