"""Pairs of nodes in a real Slurm: a declared srun command runs on both, and a customer ends it without any fault."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from slurm_cluster import cluster, needs_slurm, said, until
from slurm_room import SETTINGS, adapter, node, submitted

from assay.act.actions.action import ActionContext
from assay.act.loop.context import ControllerContext
from assay.act.schedules.collectives_search import CustomerWatch
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.specs.workload import CollectiveWorkload
from assay.observe.evidence_store import EvidenceStore
from assay.validate.collectives.command import PairTask, list_tasks
from assay.validate.collectives.results import PairResult
from assay.validate.collectives.rounds import PairRound
from assay.validate.collectives.run import RunLimits, make_runners

pytestmark = [needs_slurm, pytest.mark.slow]
A, B = "n0001", "n0002"
ROOT = Path(__file__).parents[3]
GPU_OPTIONS = ("--gpus-per-node=8", "--mpi=pmix", "--ntasks-per-node=8")
"""What a cluster of this machine lacks."""
REPORT = """test "$SLURM_PROCID" != 0 || echo '{"ended": "ok", "gb_s": 40, "wrong": 0}'"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with cluster(tmp_path_factory.mktemp("slurm"), A, B, more=SETTINGS):
        yield


def shipped(*program: str) -> CollectiveWorkload:
    """Return the shipped workload with another program than nccl-tests, and without GPUs."""
    found = load_fleet(ROOT).collective_workloads["nccl-srun"]
    words = [word for word in found.pair.command if word not in GPU_OPTIONS]
    pair = found.pair.model_copy(update={"command": [*words[: words.index("all_reduce_perf")], *program]})
    return found.model_copy(update={"pair": pair, "scratch": "", "alone": None, "together": None})


def ran(workload: CollectiveWorkload, watch: CustomerWatch) -> PairResult:
    found: list[PairResult] = []
    tasks = list_tasks(PairRound("M1", ((A, B),)), ())
    assert isinstance(tasks[0], PairTask)
    make_runners(workload, RunLimits(find_taker=watch.find_taker)).pair.run(tasks, found.append)
    return found[0]


@pytest.fixture
def watch(slurm: None, tmp_path: Path) -> CustomerWatch:
    nodes = {name: node(name) for name in (A, B)}
    ledger, store = Ledger.open(tmp_path / "ledger.sqlite"), EvidenceStore(tmp_path / "evidence")
    fleet = replace(load_fleet(ROOT), nodes=nodes)
    context = ControllerContext(fleet, ledger, store, SystemClock(), tmp_path, tmp_path / "reports")
    assert isinstance(context, ActionContext)
    return CustomerWatch(context, list(nodes.values()))


def test_a_declared_command_runs_on_both_nodes_and_its_report_is_read(watch: CustomerWatch) -> None:
    result = ran(shipped("sh", "-c", REPORT), watch)
    assert (result.ended, result.gb_s, result.wrong) == ("ok", 40, 0), result.note


def test_a_customer_takes_a_node_of_a_running_pair_and_that_is_no_result(watch: CustomerWatch) -> None:
    found: list[PairResult] = []
    going = Thread(target=lambda: found.append(ran(shipped("sleep", "300"), watch)))
    going.start()
    until(lambda: "assay-collectives" in said("squeue", "--noheader", "--states=R", "--format=%j"))
    assert adapter().read_statuses([A])[A].jobs == (), "our own job is no customer's"
    number = submitted("gemma", B)
    until(lambda: said("squeue", "--noheader", f"--job={number}", "--format=%T") == "RUNNING")
    going.join()
    assert found[0].ended == "preempted"
    said("scancel", number)
    until(lambda: not said("squeue", "--noheader"))
