"""The time to read the status of 1,000 Kubernetes nodes, and to cordon 150 of them.

The API server is that of the tests, in this process: its CPU time is part of every figure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.model.specs.node_settings import make_node_settings
from bench.measurement import Measurement
from tests.support.kubernetes import kube_make
from tests.support.kubernetes.kube_rights import Rights
from tests.support.kubernetes.kube_server import KubeFake

NODES, PODS_EACH, IMAGES, WAVE = 1_000, 6, 50, 150


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure both on a cluster below `folder`."""
    home = folder / "kubernetes"
    home.mkdir()
    fake = KubeFake(home, {"all": Rights("all", all=True)})
    _fill(fake)
    fake.start()
    try:
        cluster = {"kubernetes": {"kubeconfig": str(fake.kubeconfig("all"))}}
        adapter = KubernetesScheduler(make_node_settings(cluster))
        names = [f"m{number}" for number in range(NODES)]
        adapter.read_statuses(names[:1])
        what = f"standings of {NODES} Kubernetes nodes with {NODES * PODS_EACH} pods"
        yield Measurement(what, _seconds(lambda: adapter.read_statuses(names)), "s", "at most", 3.0)
        reasons = dict.fromkeys(names[:WAVE], "gpu.xid.79")
        cordons = _seconds(lambda: adapter.cordon_many(reasons))
        yield Measurement(f"{WAVE} cordons on Kubernetes", cordons, "s", "at most", 6.0)
    finally:
        fake.stop()


def _fill(fake: Any) -> None:
    image = {"names": ["registry.example.org/a/long/name/of/an/image@sha256:" + 64 * "0"], "sizeBytes": 123456789}
    for number in range(NODES):
        node = kube_make.node(f"m{number}")
        node["status"]["images"] = [image] * IMAGES
        fake.put("nodes", "", node)
        for nth in range(PODS_EACH):
            kind = "DaemonSet" if nth else "Job"
            fake.put("pods", "ml", kube_make.pod(f"p{number}-{nth}", f"m{number}", kind=kind))
    fake.settle = lambda: None  # no pod starts or ends


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
