"""A running site and the repository of its fleet, as fixtures."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from assay.declare.loader import load_fleet
from tests.integration.fleet_site.rehearsal_walk import MakeWalk, Walk
from tests.integration.fleet_site.rehearsed_site import Site, choose_places, run_site
from tests.integration.fleet_site.site_fleet import ONE_POOL, Pools, list_machines, make_site_fleet

DISK_MB = 160
"""What a walk can fill. A lab of two machines and its history are a third of it."""


@pytest.fixture(scope="module")
def fleet_of_the_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fleet repository that `site` is the real side of."""
    return tmp_path_factory.mktemp("fleet") / "oslo-fleet"


@pytest.fixture(scope="module")
def site(fleet_of_the_site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site of two machines."""
    folder = tmp_path_factory.mktemp("site")
    places = choose_places(folder, list_machines(ONE_POOL))
    make_site_fleet(fleet_of_the_site, places, ONE_POOL)
    with run_site(folder, places, load_fleet(fleet_of_the_site)) as running:
        yield running


@pytest.fixture
def make_walk(tmp_path: Path, small_disk: Path | None) -> Iterator[MakeWalk]:
    """Makes a walk by its seed, in a new clone with a site of its own; Slurm runs jobs in the pool `slurm`."""
    with ExitStack() as running:

        def make(seed: int, pools: Pools = ONE_POOL, slurm: str = "") -> Walk:
            folder, root = tmp_path / f"site-{seed}", (small_disk or tmp_path) / f"fleet-{seed}"
            folder.mkdir()
            places = choose_places(folder, list_machines(pools))
            make_site_fleet(root, places, pools, slurm)
            site = running.enter_context(run_site(folder, places, load_fleet(root)))
            walk = Walk(root, site, seed, full_disk=small_disk is not None)
            running.callback(walk.end)
            return walk

        yield make


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """A disk of its own that a walk can fill; None where this user may not mount one: then no walk fills a disk."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        yield None
        return
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
