"""Nodes of the lab whose pods a Kubernetes cluster places: a cordon that asks for a verification ends with one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.act.loop.context import ControllerContext
from assay.act.schedules.due_slots import ScheduleLine, SlotTask
from assay.act.schedules.idle_verification import verify_idle
from assay.act.schedules.slot_runner import SlotResult
from assay.adapters.scheduler import VERIFY_UNDRAIN, load_scheduler_adapter
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.node import Node
from assay.model.specs.node_settings import KubernetesClusterSettings
from assay.model.specs.schedules import FleetSchedule, IdleVerificationSpec, find_previous_slot
from assay.observe.evidence_store import EvidenceStore
from tests.act.schedules.by_hand import in_production
from tests.support.kubernetes.kube_make import node as make_node
from tests.support.kubernetes.kube_rights import MANIFEST, Rights, rights_of
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.kubernetes.kube_store import Thing
from tests.support.lab_room import Room

pytestmark = pytest.mark.slow
NODE, OTHER = "n0003", "n0004"
ANNOTATION = "assay.dev/verify-undrain"


@pytest.fixture
def kube(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubeFake]:
    for name in ("HTTPS_PROXY", "https_proxy", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    fake = KubeFake(tmp_path, {"assay-token": rights_of(MANIFEST), "nobody": Rights("nobody")})
    for name in (NODE, OTHER):
        fake.put("nodes", "", make_node(name))
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture
def desk(room: Room, kube: KubeFake, tmp_path: Path) -> Iterator[ControllerContext]:
    for name in (NODE, OTHER):
        room.fresh(name)
    nodes = {name: on_kubernetes(room, room.fleet.nodes[name], kube.kubeconfig()) for name in (NODE, OTHER)}
    ledger, store = Ledger.open(tmp_path / "ledger.sqlite"), EvidenceStore(tmp_path / "evidence")
    fleet = replace(room.fleet, nodes=nodes)
    desk = ControllerContext(fleet, ledger, store, SystemClock(), tmp_path, tmp_path / "reports")
    in_production(desk)
    yield desk
    ledger.close()


def on_kubernetes(room: Room, node: Node, kubeconfig: Path) -> Node:
    """Return a node of the lab that a cluster places pods on, and whose probe is a program there."""
    shell = [sys.executable, "-m", "assay.lab.node.shell", str(room.world.home), node.name]
    cluster = KubernetesClusterSettings(kubeconfig=str(kubeconfig))
    told = {"workloads": "kubernetes", "kubernetes": cluster, "transport": "local", "reach": []}
    command = [*shell, "python3", "-m", "assay.node.probe"]
    return replace(node, settings=node.settings.model_copy(update={**told, "probe_command": command}))


def cordoned(kube: KubeFake, name: str, **annotations: str) -> None:
    """Do as a person did with kubectl a minute ago."""
    at = (datetime.now(UTC) - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    marks = {"f:annotations": {f"f:{key}": {} for key in annotations}}
    fields = {"f:spec": {"f:unschedulable": {}}, **({"f:metadata": marks} if annotations else {})}
    entry = {"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}

    def close(node: Thing) -> None:
        node["spec"]["unschedulable"] = True
        node["metadata"] |= {"annotations": annotations, "managedFields": [{**entry, "time": at, "fieldsV1": fields}]}

    kube.edit("nodes", "", name, close)


def verified(desk: ControllerContext) -> SlotResult:
    how = {"phase": "test", "parts": ["all_reduce", "gpu_burn", "nvme_read", "memory", "battery"], "seconds": 1}
    how |= {"within_minutes": 5.0, "at_once": 2, "told_after": 3}
    schedule = FleetSchedule(does="idle-verification", cron="0 * * * *", verification=IdleVerificationSpec(**how))
    slot = find_previous_slot(schedule, "UTC", desk.clock.now())
    return verify_idle(desk, SlotTask(ScheduleLine("idle", "h100-a", schedule, "UTC"), slot))


def cordon_of(desk: ControllerContext, name: str) -> str:
    return load_scheduler_adapter(desk.fleet.nodes[name]).read_cordon_reason(name)


def test_a_cordon_that_asks_for_it_ends_when_the_node_has_passed(desk: ControllerContext, kube: KubeFake):
    cordoned(kube, NODE, **{ANNOTATION: "odd losses"})
    cordoned(kube, OTHER)
    ended = verified(desk)
    assert ended.facts["passed"] == {"": [NODE]}, ended.reason
    [(why, names)] = ended.facts["skipped"].items()
    assert (names, why.startswith("cordoned: made unschedulable by kubectl")) == ([OTHER], True)
    [undrained] = desk.ledger.entries(kinds=["node.undrained"])
    assert undrained.node == NODE
    assert f"{VERIFY_UNDRAIN}: odd losses" in undrained.body["reason"]
    assert cordon_of(desk, NODE) == ""
    assert cordon_of(desk, OTHER).startswith("made unschedulable by kubectl")


def test_a_node_that_fails_stays_closed(desk: ControllerContext, kube: KubeFake, room: Room):
    cordoned(kube, NODE, **{ANNOTATION: "odd losses"})
    cordoned(kube, OTHER)
    room.change(NODE, lambda state: state["active"].update(memory_errors=7))
    assert "failed" in verified(desk).facts
    assert VERIFY_UNDRAIN in cordon_of(desk, NODE)
    assert desk.ledger.entries(kinds=["node.undrained"]) == []


def test_where_pods_cannot_be_listed_nothing_is_loaded(desk: ControllerContext, kube: KubeFake):
    kube.users["assay-token"].granted.discard(("list", "", "pods", ""))
    ended = verified(desk)
    [(why, names)] = ended.facts["unknown"].items()
    assert names == [NODE, OTHER]
    assert "cannot tell whether it is in use" in why
    assert "passed" not in ended.facts
    assert "create pods" not in kube.asked
