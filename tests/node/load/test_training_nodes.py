"""Nodes that train together know by their names which one each of them is."""

from __future__ import annotations

import pytest

from assay.node.load.engine import LoadError
from assay.node.load.run import TrainingNodes, join_hosts, name_this_host


@pytest.mark.parametrize(("own", "node"), [("n1", 0), ("n2", 1), ("n2.cluster.example", 1)])
def test_each_host_finds_its_place_and_the_first_one_listens(own: str, node: int) -> None:
    assert join_hosts(["n1.cluster.example", "n2"], "", own) == TrainingNodes("n1.cluster.example:29400", 2, node)
    assert join_hosts(["n1", "n2"], "10.0.0.1:5", own).coordinator == "10.0.0.1:5"


@pytest.mark.parametrize(("hosts", "says"), [(["n1", "n2"], "does not name this host, n3"), (["n1", "n1.x"], "twice")])
def test_a_host_without_one_place_does_not_begin(hosts: list[str], says: str) -> None:
    with pytest.raises(LoadError, match=says):
        join_hosts(hosts, "", "n3")


def test_in_a_job_of_slurm_the_name_is_that_of_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    assert name_this_host() == "n7"
    monkeypatch.delenv("SLURMD_NODENAME")
    assert name_this_host()
