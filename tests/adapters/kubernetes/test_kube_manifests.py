"""The shipped manifests on a real API server: each order of them gives the same, and the server knows every field."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.adapters.kubernetes.real_cluster import PROGRAMS, RealCluster
from tests.support.places import ROOT

DEPLOY = ROOT / "deploy"
MANIFESTS = ("kubernetes.yaml", "assay-agent.yaml", "assay-controller.yaml")
TOO_NEW = "PodDisruptionBudget"
"""Of `policy/v1`, which the server of version 1.20 lacks: docs/kubernetes.md says to leave it out there."""
LABEL = "jsonpath={.metadata.labels.pod-security\\.kubernetes\\.io/enforce}"

pytestmark = [
    pytest.mark.slow(minutes=1),
    pytest.mark.skipif(
        not all(path.exists() for path in PROGRAMS.values()) or not shutil.which("kubectl"),
        reason="no kube-apiserver or kubectl here: `tools/kubernetes-server` builds the first one on Debian 12",
    ),
]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    cluster = RealCluster(tmp_path_factory.mktemp("kubernetes"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def kubectl(real: RealCluster, *words: object) -> str:
    known = [f"--kubeconfig={real.kubeconfig('admin', token='admin')}", f"--cache-dir={real.folder}"]
    done = subprocess.run(["kubectl", *known, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_order_of_the_manifests_is_applied_and_takes_no_label_away(real: RealCluster, tmp_path: Path) -> None:
    for name in MANIFESTS:
        known = [one for one in yaml.safe_load_all((DEPLOY / name).read_text()) if one["kind"] != TOO_NEW]
        (tmp_path / name).write_text(yaml.safe_dump_all(known))
    orders = list(itertools.permutations(MANIFESTS))
    for order in orders:
        for name in order:
            kubectl(real, "apply", "--validate=strict", f"--filename={tmp_path / name}")
            assert kubectl(real, "get", "namespace", "assay", f"--output={LABEL}") == "privileged", (order, name)
    whole = [one for one in yaml.safe_load_all((DEPLOY / "kustomize/assay.yaml").read_text()) if one["kind"] != TOO_NEW]
    (tmp_path / "whole.yaml").write_text(yaml.safe_dump_all(whole))
    before = read_generations(real, tmp_path / "whole.yaml")
    kubectl(real, "apply", "--validate=strict", f"--filename={tmp_path / 'whole.yaml'}")
    assert len(before) == len(whole)
    assert read_generations(real, tmp_path / "whole.yaml") == before, "it is what the three made together"


def read_generations(real: RealCluster, manifest: Path) -> dict[tuple[str, str], int | None]:
    """Return how often what each object of a manifest asks for was changed; a change of some kinds is not counted."""
    found = json.loads(kubectl(real, "get", f"--filename={manifest}", "--output=json"))["items"]
    return {(one["kind"], one["metadata"]["name"]): one["metadata"].get("generation") for one in found}
