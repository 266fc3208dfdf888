"""With a real slurmctld: jobs come last to a node whose weight assay raised, and its own weight comes back."""

from __future__ import annotations

from assay.adapters.scheduler import RanksNodes
from tests.support.slurm_cluster import needs_slurm, said
from tests.support.slurm_room import adapter, by_hand

pytestmark = needs_slurm


def weight(name: str) -> int:
    return int(said("sinfo", "--noheader", "--Node", f"--nodes={name}", "--format=%w").split()[0])


def test_a_nodes_own_weight_comes_back(node: str) -> None:
    scheduler = adapter()
    assert isinstance(scheduler, RanksNodes)
    by_hand(node, weight="7")
    for _ in range(2):
        assert scheduler.rank_nodes({node: True}) == {}, "the second time changes nothing"
        assert weight(node) == 1_000_007
    assert scheduler.rank_nodes({node: False}) == {}
    assert weight(node) == 7
    by_hand(node, weight="1")


def test_a_node_that_slurm_does_not_know_is_told(node: str) -> None:
    assert adapter().rank_nodes({"n9999": True, node: False}) == {"n9999": "Slurm does not know this node"}
