"""The public incident (a pending reboot that five tenants blocked), with our actions on a cluster.

In order: a soft lockup while the node reads Ready; cordoned, and waiting for pods that a PodDisruptionBudget keeps;
operators move them; the power cycle; Ready again long before anybody has verified anything; only then given back.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.act.actions import cordon, drain, drain_now, uncordon
from assay.act.actions.action import ActionContext, EffectIntent
from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.node_settings import make_node_settings
from assay.observe.evidence_store import EvidenceStore
from tests.support.kubernetes.kube_make import budget, node, pod
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.kubernetes.kube_store import Thing

DEADLOCK = "host.kernel.deadlock: BUG: soft lockup - CPU#63 stuck for 25s! [kswapd0:428]"
TENANTS = ("cert-manager", "cert-manager-cainjector", "cert-manager-webhook", "kueue-controller", "traefik")
MANY = 1_000


@pytest.fixture
def context(tmp_path: Path, adapter: KubernetesScheduler) -> ActionContext:
    there = Node("n1", "h100", "s1", "r1", 1, "", "", "", settings=make_node_settings({"reach": ["false"]}))
    ledger, store = Ledger.open(tmp_path / "ledger.sqlite"), EvidenceStore(tmp_path / "evidence")
    fleet = Fleet(tmp_path, {"n1": there})
    return ActionContext(fleet, ledger, store, SystemClock(), tmp_path, tmp_path, lambda _: adapter)


def wish(action: str) -> EffectIntent:
    return EffectIntent(f"e-{action}", action, "n1", "d1", DEADLOCK)


def test_the_incident_step_by_step(kube: KubeFake, adapter: KubernetesScheduler, context: ActionContext):
    for name in TENANTS:
        kube.put("pods", "platform", pod(f"{name}-0", "n1", kind="ReplicaSet", owner=name))
    for name in TENANTS[:4]:
        kube.put("poddisruptionbudgets", "platform", budget(name, name, minAvailable=1))
    assert _ready(kube), "1: Ready is not health"

    cordon.run(context, wish("cordon"))
    drain.run(context, wish("drain"))
    waits = drain.verify(context, wish("drain"))
    assert (waits.done, waits.is_waiting) == (False, True), "2, 3: pending, and never active by itself"
    assert all(f"job platform/{name}-0 (ReplicaSet/{name}, namespace platform" in waits.reason for name in TENANTS)
    assert waits.reason.count("allows no disruption since 20") == 4, "each blocker with its age"
    assert len(adapter.list_jobs("n1")) == 5, "nobody was touched"

    with pytest.raises(AssayError, match="4 of 5 pods may not be evicted now"):
        drain_now.run(context, wish("drain-now"))
    assert {job.id for job in adapter.list_jobs("n1")} == {f"platform/{name}-0" for name in TENANTS[:4]}
    assert all(job.blocked_by for job in adapter.list_jobs("n1"))
    assert "delete pods" not in kube.asked, "nor by force"

    for name in TENANTS[:4]:  # 4: the replacement comes up before the old one goes
        kube.put("pods", "platform", pod(f"{name}-1", "n2", kind="ReplicaSet", owner=name))
    drain_now.run(context, wish("drain-now"))
    assert adapter.list_jobs("n1") == ()
    assert drain.verify(context, wish("drain")).done

    kube.edit("nodes", "", "n1", _restarted)  # 5: forced power cycle
    assert _ready(kube)
    assert adapter.read_cordon_reason("n1") == f"assay: {DEADLOCK}", "Ready gives nothing back"
    late = kube.put("pods", "platform", pod("late", nodeSelector={"zone": "a"}))
    assert kube.get("pods", "platform", "late")["spec"].get("nodeName") is None, late
    assert not uncordon.verify(context, wish("uncordon")).done

    uncordon.run(context, wish("uncordon"))  # 6: the lifecycle asks for this once verification has passed
    assert uncordon.verify(context, wish("uncordon")).done
    assert kube.get("pods", "platform", "late")["spec"]["nodeName"] == "n1"


def test_a_thousand_nodes_are_told_by_one_question_for_each_kind(kube: KubeFake, adapter: KubernetesScheduler):
    names = [f"m{number}" for number in range(MANY)]
    for number, name in enumerate(names):
        made = node(name)
        made["metadata"]["name"] = name
        kube.store.things["nodes"]["", name] = made | {"metadata": made["metadata"] | {"resourceVersion": "1"}}
        if number % 2:
            running = pod(f"train-{number}", name)
            running["metadata"] |= {"namespace": "ml", "uid": name, "creationTimestamp": "2026-11-22T00:00:00Z"}
            kube.store.things["pods"]["ml", f"train-{number}"] = running
    kube.settle = lambda: None  # type: ignore[method-assign]  # a thousand kubelets have nothing to do with it
    kube.asked.clear()

    standing = adapter.read_statuses(names)

    assert len(standing) == MANY
    assert sum(1 for one in standing.values() if one.jobs) == MANY // 2
    assert kube.asked == ["list nodes"] * 3 + ["list pods", "list poddisruptionbudgets"], "in chunks of 500"


def _ready(kube: KubeFake) -> bool:
    there = kube.get("nodes", "", "n1")
    assert there is not None
    return any(one["type"] == "Ready" and one["status"] == "True" for one in there["status"]["conditions"])


def _restarted(one: Thing) -> None:
    one["status"]["nodeInfo"]["bootID"] = "boot-2"
    one["metadata"]["labels"]["zone"] = "a"
