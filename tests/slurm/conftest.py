"""One real Slurm for all tests of this folder: three nodes for customers, one partition for what yields to them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import Cluster, cluster, said, until

sys.path.append(str(Path(__file__).parent))

from slurm_room import NODES, SETTINGS


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm"), *NODES, more=SETTINGS) as running:
        yield running


@pytest.fixture
def fresh(slurm: Cluster) -> Iterator[Cluster]:
    """Yield the cluster, and leave every node idle and every job gone."""
    yield slurm
    said("scancel", "--ctld", *said("squeue", "--noheader", "--format=%A").split())
    until(lambda: not said("squeue", "--noheader"))
    for reservation in said("scontrol", "--oneliner", "show", "reservation").splitlines():
        if "=" in reservation:
            said("scontrol", "delete", f"reservation={reservation.split()[0].partition('=')[2]}")
    said("scontrol", "update", f"nodename={','.join(NODES)}", "state=resume", "comment=")
    until(lambda: set(said("sinfo", "--noheader", "--Node", "--format=%T").split()) == {"idle"})
