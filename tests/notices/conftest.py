"""A hall whose nodes a fake API server has, whose history is on paper, and whose customers are told of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "tickets"))
sys.path.append(str(Path(__file__).parents[1] / "schedulers" / "kubernetes"))
from hall import Hall
from kube_make import node
from kube_rights import MANIFEST, rights_of
from kube_server import KubeFake

from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet


@pytest.fixture(scope="session")
def example() -> Fleet:
    return load_fleet(Path(__file__).parents[2])


@pytest.fixture
def kube(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubeFake]:
    for name in ("HTTPS_PROXY", "https_proxy", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    fake = KubeFake(tmp_path, {"assay-token": rights_of(MANIFEST)})
    for name in ("n0003", "n0004", "n0005"):
        fake.put("nodes", "", node(name))
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture
def hall(example: Fleet, tmp_path: Path) -> Hall:
    return Hall(example, tmp_path / "home")
