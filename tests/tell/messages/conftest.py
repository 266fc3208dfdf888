"""A hall whose nodes a fake API server has, whose history is on paper, and whose customers are told of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet
from tests.support.kubernetes.kube_make import node
from tests.support.kubernetes.kube_rights import MANIFEST, rights_of
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.places import ROOT
from tests.tell.messages.hall import Hall


@pytest.fixture(scope="session")
def example() -> Fleet:
    return load_fleet(ROOT)


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
