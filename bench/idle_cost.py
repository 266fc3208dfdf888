"""What a verification of an idle node costs customers: the delay of a job's start, with and without one running.

Slurm is real, with one node; the load ignores SIGTERM, as a hung one does. On Kubernetes the API server and the kubelet
are those of the tests, and the load is a real process; the customer's pod asks for all GPUs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.model.specs.node_settings import make_node_settings
from bench.measurement import Measurement
from tests.support import slurm_cluster, slurm_room
from tests.support.kubernetes import kube_make
from tests.support.kubernetes.kube_rights import MANIFEST, documents_of, rights_of
from tests.support.kubernetes.kube_server import KubeFake

SAMPLES = int(os.environ.get("ASSAY_BENCH_SAMPLES", "50"))
MORE_S = 1.0
"""A customer's job may start this much later because of a verification, at the 95th percentile."""
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
LOAD = [sys.executable, "-c", DEAF]
NODE = "n0001"


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure on Slurm, if it is installed, and on Kubernetes."""
    if shutil.which("slurmctld"):
        (folder / "idle-slurm").mkdir()
        yield from _measure_slurm(folder / "idle-slurm")
    else:
        print("· Slurm is not installed: the cost of idle verification is not measured", file=sys.stderr)  # noqa: T201
    (folder / "idle-kubernetes").mkdir()
    yield from _measure_kubernetes(folder / "idle-kubernetes")


def _measure_slurm(folder: Path) -> Iterator[Measurement]:
    with slurm_cluster.cluster(folder, NODE, more=slurm_room.SETTINGS) as slurm, ThreadPoolExecutor(1) as pool:

        def wait_idle() -> None:
            slurm_cluster.until(lambda: not slurm_cluster.said("squeue", "--noheader") and slurm.is_idle())

        def start_job() -> float:
            words = ["--quiet", f"--nodelist={NODE}", "--exclusive", "--mem=0", "date", "+%s.%N"]
            began = time.time()
            return float(subprocess.run(["srun", *words], capture_output=True, check=True).stdout) - began

        def run_load() -> Callable[[], Any]:
            going = pool.submit(slurm_room.adapter().run_spare, NODE, LOAD, b"", 600)
            running = ["squeue", "--noheader", "--states=RUNNING", f"--nodelist={NODE}", "--format=%j"]
            slurm_cluster.until(lambda: "assay-spare" in slurm_cluster.said(*running))
            return lambda: going.result(60)

        yield _compare("Slurm", start_job, run_load, wait_idle)


def _measure_kubernetes(folder: Path) -> Iterator[Measurement]:
    fake = KubeFake(folder, {"assay-token": rights_of(MANIFEST)})
    for document in documents_of(MANIFEST):
        kinds = {"PriorityClass": "priorityclasses", "PodTemplate": "podtemplates"}
        if document["kind"] in kinds:
            content = {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
            if document["kind"] == "PodTemplate":  # so that the scheduler counts our pod, and must preempt it
                content["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "8"}}
            fake.put(kinds[document["kind"]], document["metadata"].get("namespace", ""), content)
    fake.put("nodes", "", kube_make.node("n1"))
    fake.start()
    adapter = KubernetesScheduler(make_node_settings({"kubernetes": {"kubeconfig": str(fake.kubeconfig())}}))
    ours = "assay-spare-n1"

    def wait_for(seen: Callable[[], object]) -> None:
        while not seen():
            time.sleep(0.005)

    def phase(namespace: str, name: str) -> str:
        return str((fake.get("pods", namespace, name) or {}).get("status", {}).get("phase", ""))

    def start_job() -> float:
        began = time.monotonic()
        fake.put("pods", "ml", kube_make.pod("llama", gpus=8))
        wait_for(lambda: (fake.get("pods", "ml", "llama") or {}).get("spec", {}).get("nodeName"))
        took = time.monotonic() - began
        fake.store.remove("pods", fake.get("pods", "ml", "llama"))
        return took

    with ThreadPoolExecutor(1) as pool:

        def run_load() -> Callable[[], Any]:
            going = pool.submit(adapter.run_spare, "n1", LOAD, b"", 600.0)
            wait_for(lambda: phase("assay", ours) == "Running")
            return lambda: going.result(60)

        yield _compare("Kubernetes", start_job, run_load, lambda: wait_for(lambda: not fake.get("pods", "assay", ours)))
    fake.stop()
    fake.kubelets.stop()


def _compare(
    where: str, start_job: Callable[[], float], run_load: Callable[[], Callable[[], Any]], wait_idle: Callable[[], Any]
) -> Measurement:
    """Start jobs in turn without and with a load; return how much later they start with one (95th percentiles)."""
    without, with_load, gone = list[float](), list[float](), list[float]()
    for _ in range(SAMPLES):
        wait_idle()
        without.append(start_job())
        wait_idle()
        end = run_load()
        with_load.append(start_job())
        result = end()
        if not result.preempted_by:
            raise RuntimeError(f"the load was not preempted: {result}")
        gone += [result.gone_ms / 1000] if result.gone_ms is not None else []
    parts = {"samples": float(SAMPLES)}
    for name, taken in (("without", without), ("with", with_load), ("told_gone", gone)):
        parts |= {f"{name}_p{percent}_s": _percentile(taken, percent) for percent in (50, 95, 100) if taken}
    more = _percentile(with_load, 95) - _percentile(without, 95)
    what = f"idle verification on {where}: a customer's job starts later"
    return Measurement(what, max(0.0, more), "s", "at most", MORE_S, parts)


def _percentile(taken: Sequence[float], percent: float) -> float:
    """Return the value that this share does not exceed (nearest rank)."""
    ordered = sorted(taken)
    return ordered[max(0, -(-len(ordered) * int(percent) // 100) - 1)]


if __name__ == "__main__":
    for measurement in measurements(Path(sys.argv[1])):
        print(json.dumps(measurement.as_json()), flush=True)  # noqa: T201 — the answer
