"""Pairs of nodes in a real Slurm: a declared srun command runs on both, and a customer ends it without any fault."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from assay.act.actions.action import ActionContext
from assay.act.loop.context import ControllerContext
from assay.act.schedules.collectives_search import CustomerWatch
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.specs.workload import CollectiveWorkload
from assay.observe.evidence_store import EvidenceStore
from assay.validate.collectives.command import TaskResult, list_tasks
from assay.validate.collectives.results import GroupRound
from assay.validate.collectives.rounds import PairRound
from assay.validate.collectives.run import RunLimits, make_runners
from tests.support import slurm_cluster
from tests.support.places import ROOT
from tests.support.slurm_cluster import cluster, needs_slurm, said, until
from tests.support.slurm_room import SETTINGS, adapter, node, submitted

pytestmark = [needs_slurm, pytest.mark.slow]
A, B = "n0001", "n0002"
GPUS = "GresTypes=gpu\n"
"""With gres.conf, Slurm counts GPUs that nobody has to have: the shipped words for srun stay as they are."""
REPORT = """test "$SLURM_PROCID" != 0 || echo '{"ended": "ok", "gb_s": 40, "wrong": 0}'"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("slurm")
    for number in range(8):
        (folder / f"gpu{number}").touch()
    (folder / "gres.conf").write_text(f"Name=gpu File={folder}/gpu[0-7]\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slurm_cluster, "NODE", slurm_cluster.NODE.replace("CPUs=8", "CPUs=8 Gres=gpu:8"))
        with cluster(folder, A, B, more=GPUS + SETTINGS):
            yield


def shipped(*program: str) -> CollectiveWorkload:
    """Return the shipped workload with another program than nccl-tests.

    Two nodes of one machine share the folder of PMIx and end each other's tasks: only `alone` keeps it.
    """
    found = load_fleet(ROOT).collective_workloads["nccl-srun"]
    assert found.alone
    words = ["--mpi=none" if word == "--mpi=pmix" else word for word in found.pair.command]
    own = [*found.alone.command[: found.alone.command.index("all_reduce_perf")], *program]
    pair = found.pair.model_copy(update={"command": [*words[: words.index("all_reduce_perf")], *program]})
    return found.model_copy(
        update={"pair": pair, "scratch": "", "alone": found.alone.model_copy(update={"command": own}), "together": None}
    )


def ran(workload: CollectiveWorkload, watch: CustomerWatch, *, alone: bool = False) -> TaskResult:
    found: list[TaskResult] = []
    runners = make_runners(workload, RunLimits(find_taker=watch.find_taker, gpus={A: 8, B: 8}))
    runner = runners.alone if alone else runners.pair
    assert runner
    runner.run(list_tasks(GroupRound("alone", ((B,),)) if alone else PairRound("M1", ((A, B),)), ()), found.append)
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


def test_a_node_alone_runs_with_the_libraries_of_mpi(watch: CustomerWatch) -> None:
    plugin = Path(f"/usr/lib/{os.uname().machine}-linux-gnu/pmix2/lib/libpmix.so")
    if not plugin.exists():
        pytest.skip("Slurm's plug-in finds no libpmix.so: apt-get install libpmix-dev, or sh tools/system-packages")
    result = ran(shipped("sh", "-c", REPORT), watch, alone=True)
    assert (result.ended, result.gb_s, result.wrong) == ("ok", 40, 0), result.note


@pytest.mark.parametrize("alone", [False, True])
def test_a_customer_takes_a_node_of_a_running_pair_and_that_is_no_result(watch: CustomerWatch, alone: bool) -> None:
    found: list[TaskResult] = []
    going = Thread(target=lambda: found.append(ran(shipped("sleep", "300"), watch, alone=alone)))
    going.start()
    until(lambda: "assay-collectives" in said("squeue", "--noheader", "--states=R", "--format=%j"))
    assert adapter().read_statuses([A])[A].jobs == (), "our own job is no customer's"
    number = submitted("gemma", B)
    until(lambda: said("squeue", "--noheader", f"--job={number}", "--format=%T") == "RUNNING")
    going.join()
    assert found[0].ended == "preempted", found[0].note
    said("scancel", number)
    until(lambda: not said("squeue", "--noheader"))
