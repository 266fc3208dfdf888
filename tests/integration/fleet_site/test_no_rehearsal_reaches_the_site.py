"""Whatever somebody rehearses: nothing reaches the site's machines, and nothing of the fleet's home is lost.

The site is the witness. Its BMCs, sshd, webhook and the recorders of all programs note what came, and from which
command; assay's own word counts nothing here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.fleet_site.machines_over_ssh import needs_sshd
from tests.integration.fleet_site.rehearsal_walk import MakeWalk
from tests.integration.fleet_site.site_fleet import TWO_POOLS, list_machines
from tests.support.slurm_cluster import cluster, needs_slurm

pytestmark = needs_sshd


def test_a_day_in_two_shells(make_walk: MakeWalk) -> None:
    """The steps that a person is most likely to take, in their order; then some that nobody would."""
    walk = make_walk(1)
    walk.site.break_part("gpu.xid", "gpu-02", gpu=2, xid=79)
    walk.type("observe", shell="", flag="fleet")
    assert walk.type("lab up", shell="").code == 0
    walk.type("reconcile --once", shell="lab", flag="")
    held = walk.type("hold gpu-01 --reason rehearsal", shell="", flag="lab")
    assert held.code == 0, held.said
    search = "collectives run {scratch} --workload nccl-mpirun --allocated gpu-01 gpu-02"
    searched = walk.type(search, shell="lab", flag="")
    assert (searched.code, "would run on real machines" in searched.said) == (2, True), searched.said
    walk.kill_lab()
    for order in ("zap gpu-02 --reason rehearsal", "reconcile --once", "observe"):
        refused = walk.type(order, shell="lab", flag="")
        assert refused.code == 2, walk.describe("it must refuse: the lab does not answer")
    walk.type("context fleet", shell="")
    walk.type("reconcile --once", shell="", flag="")
    walk.go(10, rounds=0)


@needs_slurm
@pytest.mark.slow(minutes=15)
@pytest.mark.parametrize("seed", range(10, 16))
def test_random_walks(make_walk: MakeWalk, seed: int, tmp_path: Path) -> None:
    """Sixty steps while assay watches, and sixty while it suggests and then acts."""
    (tmp_path / "slurm").mkdir()
    with cluster(tmp_path / "slurm", "gpu-03"):
        walk = make_walk(seed, TWO_POOLS, slurm="h100-b")
        for machine in list_machines(TWO_POOLS):
            walk.site.break_part("gpu.xid", machine, gpu=2, xid=79)
        walk.go(60)
        walk.let_act("suggest")
        walk.go(20)
        walk.let_act("act", pool="h100-a")
        walk.go(40)
        walk.end()
        assert walk.find_left() == []
