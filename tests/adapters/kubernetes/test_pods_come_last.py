"""Pods come last to a node with our taint; taints of others and our cordon stay."""

from __future__ import annotations

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.kubernetes.cordon import LAST_KEY
from assay.adapters.scheduler import RanksNodes
from tests.support.kubernetes.kube_server import KubeFake

THEIRS = {"key": "team", "value": "a", "effect": "NoSchedule"}
OURS = {"key": LAST_KEY, "effect": "PreferNoSchedule"}


def taints(kube: KubeFake) -> list[dict[str, str]]:
    node = kube.get("nodes", "", "n1")
    assert node is not None
    kept = [{key: taint.get(key) for key in ("key", "value", "effect")} for taint in node["spec"].get("taints") or []]
    return [{key: value for key, value in taint.items() if value} for taint in kept]


def test_the_taint_comes_and_goes_alone(kube: KubeFake, adapter: KubernetesScheduler) -> None:
    assert isinstance(adapter, RanksNodes)
    kube.edit("nodes", "", "n1", lambda node: node["spec"].update(taints=[THEIRS]))
    for _ in range(2):
        assert adapter.rank_nodes({"n1": True}) == {}
        assert taints(kube) == [THEIRS, OURS]
    adapter.cordon("n1", "a fault")
    adapter.uncordon("n1")
    assert taints(kube) == [THEIRS, OURS], "the cordon leaves it"
    assert "assay.dev" not in adapter.read_statuses(["n1"])["n1"].others_taints, "it closes the node to nobody"
    assert adapter.rank_nodes({"n1": False}) == {}
    assert taints(kube) == [THEIRS]


def test_a_node_that_is_gone_is_told_and_the_others_are_ranked(kube: KubeFake, adapter: KubernetesScheduler) -> None:
    (gone,) = adapter.rank_nodes({"n9": True, "n1": True}).items()
    assert gone[0] == "n9"
    assert OURS in taints(kube)
