"""The kubelets: pods that were placed run, ours as a real process; those told to end are gone, unless stuck."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.support.kubernetes.kube_store import Store, Thing, written

STUCK = "test/stuck"
"""Annotation of a pod that does not end when it is told to."""

LAST_WORDS = 4096


class Kubelets:
    """Runs what is to be run. Processes are real for pods of the namespace `real`; logs lie in `folder`."""

    def __init__(self, store: Store, folder: Path, real: str) -> None:
        self.store, self.folder, self.real = store, folder, real
        self.processes: dict[str, tuple[subprocess.Popen[bytes], float]] = {}

    def work(self) -> None:
        """Bring every pod that has a node as far as it goes."""
        for pod in [pod for pod in self.store.all("pods") if pod["spec"].get("nodeName")]:
            if pod["metadata"].get("deletionTimestamp"):
                self._end(pod)
            elif pod["status"]["phase"] == "Pending":
                self._start(pod)
            elif pod["metadata"]["uid"] in self.processes:
                self._look(pod)
        for uid in set(self.processes) - {pod["metadata"]["uid"] for pod in self.store.all("pods")}:
            self._kill(uid)

    def stop(self) -> None:
        """Kill what still runs."""
        for uid in list(self.processes):
            self._kill(uid)

    def log(self, pod: Thing) -> bytes:
        """Return what a pod has written to standard output."""
        return self._file(pod, "log").read_bytes()

    def _file(self, pod: Thing, name: str) -> Path:
        return self.folder / pod["metadata"]["uid"] / name

    def _start(self, pod: Thing) -> None:
        if pod["metadata"]["namespace"] == self.real and not self._run(pod):
            return  # its ConfigMap is not there yet: a real kubelet tries again as well
        self.store.change("pods", pod, _running)

    def _run(self, pod: Thing) -> bool:
        """Start a pod's command. Paths that are mounted lie in a folder of the pod."""
        container = pod["spec"]["containers"][0]
        volume = next(one for one in pod["spec"]["volumes"] if "configMap" in one)
        source = self.store.find("configmaps", self.real, volume["configMap"]["name"])
        if source is None:
            return False
        self._file(pod, "x").parent.mkdir()
        for name, content in source["binaryData"].items():
            self._file(pod, name).write_bytes(base64.b64decode(content))
        mount = next(one for one in container["volumeMounts"] if one["name"] == volume["name"])["mountPath"]
        root = str(self._file(pod, "x").parent)
        told = {one["name"]: one["value"].replace(mount, root) for one in container["env"]}
        told = {
            name: value.replace(container["terminationMessagePath"], f"{root}/said") for name, value in told.items()
        }
        with self._file(pod, "log").open("wb") as log:
            process = subprocess.Popen(
                container["command"], env={**os.environ, **told}, stdin=subprocess.DEVNULL, stdout=log, process_group=0
            )
        self.processes[pod["metadata"]["uid"]] = (process, time.monotonic())
        return True

    def _look(self, pod: Thing) -> None:
        process, began = self.processes[pod["metadata"]["uid"]]
        if process.poll() is not None:
            del self.processes[pod["metadata"]["uid"]]
            said = self._file(pod, "said")
            words = said.read_bytes()[-LAST_WORDS:].decode(errors="replace") if said.exists() else ""
            code = process.returncode if process.returncode >= 0 else 128 - process.returncode
            self.store.change("pods", pod, lambda one: _ended(one, code, words))
        elif time.monotonic() - began > pod["spec"].get("activeDeadlineSeconds", float("inf")):
            self._kill(pod["metadata"]["uid"])
            late = {"phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active longer than specified"}
            self.store.change("pods", pod, lambda one: one["status"].update(late))

    def _end(self, pod: Thing) -> None:
        if STUCK not in (pod["metadata"].get("annotations") or {}):
            self._kill(pod["metadata"]["uid"])
            if not pod["metadata"].get("finalizers"):
                self.store.remove("pods", pod)

    def _kill(self, uid: str) -> None:
        process, _ = self.processes.pop(uid, (None, 0.0))
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _running(pod: Thing) -> None:
    container = {
        "name": pod["spec"]["containers"][0]["name"],
        "image": pod["spec"]["containers"][0].get("image", ""),
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": written()}},
    }
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": written()}
    conditions = [*(pod["status"].get("conditions") or []), ready]
    pod["status"].update(phase="Running", containerStatuses=[container], conditions=conditions)


def _ended(pod: Thing, code: int, words: str) -> None:
    told: dict[str, Any] = {"exitCode": code, "finishedAt": written(), "reason": "Error" if code else "Completed"}
    pod["status"]["containerStatuses"][0].update(
        ready=False, state={"terminated": {**told, **({"message": words} if words else {})}}
    )
    pod["status"]["phase"] = "Failed" if code else "Succeeded"
