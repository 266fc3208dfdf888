"""`assay check --schedulers` asks what a pass would ask, and says which scheduler cannot be used, with exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.cli.verbs.check import ask_schedulers, check_app
from assay.declare.loader import load_fleet
from assay.declare.starter.new_repository import create_repository
from assay.model.node import Node
from tests.support.kubernetes import kube_discovery
from tests.support.kubernetes.kube_make import node
from tests.support.kubernetes.kube_rights import MANIFEST, Rights, rights_of
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.places import ROOT

FLEET = load_fleet(ROOT)
NAMES = sorted(FLEET.nodes)


@pytest.fixture
def kube(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTPS_PROXY", "https_proxy", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    fake = KubeFake(tmp_path, {"assay-token": rights_of(MANIFEST), "nobody": Rights("nobody")})
    for name in NAMES:
        fake.put("nodes", "", node(name))
    fake.start()
    monkeypatch.setenv("KUBECONFIG", str(fake.kubeconfig()))
    yield fake
    fake.stop()


def adapter(node: Node) -> KubernetesScheduler:
    return KubernetesScheduler(node.settings)


def test_a_cluster_that_answers(kube: KubeFake):
    (answer,) = ask_schedulers(FLEET, adapter)
    assert (set(answer.nodes), answer.trouble) == (set(NAMES), "")
    assert str(answer).endswith(f"the scheduler says who uses {len(NAMES)} nodes")
    assert {one.split()[0] for one in kube.asked} == {"list"}, "it only reads"


def test_a_cluster_that_is_too_old(kube: KubeFake, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kube_discovery, "VERSION", "v1.19.7")
    (answer,) = ask_schedulers(FLEET, adapter)
    assert "the API server is Kubernetes v1.19.7, and assay needs 1.20 or newer\n  → upgrade" in str(answer)


def test_a_right_that_is_lacking_and_a_node_that_is_not_there(kube: KubeFake, monkeypatch: pytest.MonkeyPatch):
    kube.store.remove("nodes", kube.store.all("nodes").__next__())
    ours, stranger = ask_schedulers(FLEET, adapter)
    assert (ours.trouble, stranger.nodes) == ("", (NAMES[0],))
    assert "does not know them" in stranger.trouble
    monkeypatch.setenv("KUBECONFIG", str(kube.kubeconfig("nobody")))
    (answer,) = ask_schedulers(FLEET, adapter)
    assert "RBAC does not let us `list` `nodes`" in answer.trouble


@pytest.mark.parametrize(("version", "code"), [("v1.31.0", 0), ("v1.19.7", 2)])
def test_the_command_ends_with_2(
    kube: KubeFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, code: int
):
    monkeypatch.setattr(kube_discovery, "VERSION", version)
    fleet = tmp_path / "fleet"
    create_repository(fleet)
    for path in (fleet / "inventory").rglob("*.y*ml"):
        path.write_text(path.read_text().replace("workloads: none", "workloads: kubernetes"))
    for name in load_fleet(fleet).nodes:
        kube.put("nodes", "", node(name))
    used = {one.settings.workloads for one in load_fleet(fleet).nodes.values()}
    assert used == {"kubernetes"}
    plain = CliRunner().invoke(check_app, ["--fleet", str(fleet)])
    assert plain.exit_code == 0, plain.output
    assert kube.asked == []
    asked = CliRunner().invoke(check_app, ["--fleet", str(fleet), "--schedulers"])
    assert asked.exit_code == code, asked.output
    assert ("is Kubernetes v1.19.7" in asked.output) is (code == 2)
