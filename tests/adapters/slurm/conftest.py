"""One real Slurm for all tests of this folder. Each test takes nodes that nobody had before it, and waits for none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.slurm_cluster import Cluster, cluster, said
from tests.support.slurm_room import SETTINGS

NODES = tuple(f"n{number:04d}" for number in range(1, 81))


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm"), *NODES, more=SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def unused(slurm: Cluster) -> Iterator[str]:
    return iter(NODES)


@pytest.fixture
def take(slurm: Cluster, unused: Iterator[str]) -> Iterator[Callable[[], str]]:
    """Yield what gives a fresh node; its jobs are cancelled after the test."""
    taken: list[str] = []

    def one() -> str:
        taken.append(next(unused))
        return taken[-1]

    yield one
    if jobs := said("squeue", "--noheader", f"--nodelist={','.join(taken)}", "--format=%A").split():
        said("scancel", *jobs)


@pytest.fixture
def node(take: Callable[[], str]) -> str:
    return take()
