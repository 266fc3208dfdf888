"""How 1,000 nodes of a Kubernetes cluster stand, and 150 cordons there.

The API server is the one of the tests, in this process: its work, and its models', is part of every figure.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from assay.schedulers.kubernetes_adapter import KubernetesScheduler
from bench.measurement import Measurement

NODES, PODS_EACH, IMAGES, WAVE = 1_000, 6, 50, 150
ROOM = Path(__file__).resolve().parents[1] / "tests" / "schedulers" / "kubernetes"


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure both on a cluster that is made below `folder`."""
    sys.path.append(str(ROOM))
    make: Any = importlib.import_module("kube_make")
    rights: Any = importlib.import_module("kube_rights")
    server: Any = importlib.import_module("kube_server")
    home = folder / "kubernetes"
    home.mkdir()
    fake = server.KubeFake(home, {"all": rights.Rights("all", all=True)})
    _fill(fake, make)
    fake.start()
    try:
        adapter = KubernetesScheduler({"kubernetes": {"kubeconfig": str(fake.kubeconfig("all"))}})
        names = [f"m{number}" for number in range(NODES)]
        adapter.read_statuses(names[:1])
        what = f"standings of {NODES} Kubernetes nodes with {NODES * PODS_EACH} pods"
        yield Measurement(what, _seconds(lambda: adapter.read_statuses(names)), "s", "at most", 3.0)
        reasons = dict.fromkeys(names[:WAVE], "gpu.xid.79")
        cordons = _seconds(lambda: adapter.cordon_many(reasons))
        yield Measurement(f"{WAVE} cordons on Kubernetes", cordons, "s", "at most", 6.0)
    finally:
        fake.stop()


def _fill(fake: Any, make: Any) -> None:
    image = {"names": ["registry.example.org/a/long/name/of/an/image@sha256:" + 64 * "0"], "sizeBytes": 123456789}
    for number in range(NODES):
        node = make.node(f"m{number}")
        node["status"]["images"] = [image] * IMAGES
        fake.put("nodes", "", node)
        for nth in range(PODS_EACH):
            kind = "DaemonSet" if nth else "Job"
            fake.put("pods", "ml", make.pod(f"p{number}-{nth}", f"m{number}", kind=kind))
    fake.settle = lambda: None  # nothing is to be placed or ended


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
