"""Customers' jobs in a real Slurm start on nodes whose state is in service, and on no other, whatever the way there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.adapters.scheduler import load_scheduler_adapter
from assay.tell.views.node_status import make_node_status
from tests.adapters.nodes_by_state import CLOSED, SERVING, STATES, enrol, run_pass
from tests.support.slurm_cluster import Cluster, cluster, needs_slurm, said, until
from tests.support.slurm_room import DRAINED, SETTINGS, adapter, by_hand, reason, state, submitted

pytestmark = [needs_slurm, pytest.mark.slow(minutes=3)]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("own"), *STATES, more=SETTINGS) as running:
        yield running


def status_of(job: str) -> str:
    return said("squeue", "--noheader", f"--job={job}", "--format=%T")


def test_a_job_starts_only_in_a_state_that_is_in_service(own: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    memory = enrol(tmp_path, "slurm", load_scheduler_adapter)
    run_pass(memory, monkeypatch)
    jobs = {name: submitted(f"train-{name}", name) for name in STATES}
    until(lambda: all(status_of(jobs[name]) == "RUNNING" for name in SERVING))
    assert {STATES[name]: status_of(jobs[name]) for name in CLOSED} == {STATES[name]: "PENDING" for name in CLOSED}
    assert all(reason(name).startswith("assay: ") for name in CLOSED)

    # somebody opens two of them; a job starts; the next pass closes them, and lets it run
    opened = [name for name in CLOSED if STATES[name] in ("onboard", "retired")]
    for name in opened:
        by_hand(name, state="resume")
    until(lambda: all(status_of(jobs[name]) == "RUNNING" for name in opened))
    run_pass(memory, monkeypatch)
    assert [state(name) for name in opened] == ["draining"] * len(opened)
    assert {status_of(jobs[name]) for name in opened} == {"RUNNING"}
    said("scancel", *jobs.values())


def test_a_drain_of_ours_that_the_ledger_does_not_know_is_told(
    own: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (name,) = SERVING
    adapter().cordon(name, "gpu.xid.79 on h100-a/n0001/gpu4, of a ledger that was lost")
    memory = enrol(tmp_path, "slurm", load_scheduler_adapter)
    for _ in range(2):
        run_pass(memory, monkeypatch)
    told = make_node_status(memory.node_states()[name]).scheduler
    assert told.startswith(
        "production takes jobs, and a cordon that nothing asks for keeps it closed: assay: gpu.xid.79"
    )
    assert state(name) in DRAINED, "nobody knows whether that fault was mended"
