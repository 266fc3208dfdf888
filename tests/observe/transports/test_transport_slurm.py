"""A real Slurm, slurmctld and slurmd on this machine: a step brings the document, and no job is the worse for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assay.model.evidence import EvidenceDocument
from assay.model.node import Node
from assay.model.specs.node_settings import make_node_settings
from assay.observe.transports.command import SlurmStepTransport
from assay.observe.transports.transport import run_remote_probe
from assay.observe.transports.transport_protocol import TransportContext
from tests.support.slurm_cluster import cluster, needs_slurm, said, until


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("slurm")
    with cluster(folder, "n0001"):
        yield folder


def node(**more: Any) -> Node:
    settings = make_node_settings({"transport": "slurm", **more})
    return Node("n0001", "p", "s", "r01", 1, "x", "spec", "managed", settings=settings)


@pytest.fixture
def busy(slurm: Path) -> Iterator[str]:
    """A job that has all of the node, and counts while it runs; yield its number."""
    wrapped = f"--wrap=while sleep 0.1; do echo x >> {slurm}/ticks; done"
    job = said("sbatch", "--parsable", "--ntasks=1", "--cpus-per-task=8", "--mem=900", "--output=/dev/null", wrapped)
    until(lambda: said("squeue", "--noheader", "--states=RUNNING", "--format=%A") == job)
    yield job
    said("scancel", job)
    until(lambda: not said("squeue", "--noheader"))


@needs_slurm
def test_a_step_brings_the_document_and_its_job_is_gone_after(slurm: Path) -> None:
    host = run_remote_probe(node(), [], 60)["probe"]["host"]
    assert host["boot_id"] == {"value": Path("/proc/sys/kernel/random/boot_id").read_text().strip()}
    until(lambda: not said("squeue", "--noheader"))


@needs_slurm
def test_the_document_tells_which_machine_it_is_of(slurm: Path, tmp_path: Path) -> None:
    (tmp_path / "sys/class/dmi/id").mkdir(parents=True)
    (tmp_path / "sys/class/dmi/id/product_serial").write_text("A520112X4400002\n")
    probe = ["env", f"PYTHONPATH={os.pathsep.join(sys.path)}", sys.executable]
    tree = run_remote_probe(node(probe_command=[*probe, *("-m", "assay.node.probe", "--root", str(tmp_path))]), [], 60)
    evidence = EvidenceDocument("n0001", datetime.now(UTC), tree)
    assert evidence.find_stranger("A520112X4400002") == ""
    assert "A520112X4400002" in evidence.find_stranger("A520112X4400001")


@needs_slurm
def test_our_environment_stays_here(slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMC_PASSWORD", "hunter2")
    show = ["python3", "-c", "import json, os; print(json.dumps({'probe': dict(os.environ)}))"]
    seen = run_remote_probe(node(probe_command=show), [], 60)["probe"]
    assert "BMC_PASSWORD" not in seen
    assert seen["PATH"].startswith("/usr/local/sbin:")


@needs_slurm
@pytest.mark.slow
def test_a_full_node_is_left_alone_and_said_to_be_full(slurm: Path, busy: str) -> None:
    (reason,) = run_remote_probe(node(), [], 60)["probe"].values()
    assert "busy" in reason or "allocate" in reason
    assert said("squeue", "--noheader", "--format=%A") == busy


@needs_slurm
def test_a_step_that_joins_a_job_takes_nothing_from_it(slurm: Path, busy: str) -> None:
    tree = run_remote_probe(node(slurm_step={"join": True}), [], 60)["probe"]
    assert tree["host"]["boot_id"]["value"]
    before = (slurm / "ticks").stat().st_size
    until(lambda: (slurm / "ticks").stat().st_size > before)
    assert said("squeue", "--noheader", "--states=RUNNING", "--format=%A") == busy


@needs_slurm
@pytest.mark.slow
def test_a_step_that_is_given_up_leaves_no_job_behind(slurm: Path) -> None:
    hangs = node(probe_command=["python3", "-c", "import time; time.sleep(300)"])
    assert run_remote_probe(hangs, [], 3) == {"probe": {"failed": "no answer within 3 s"}}
    until(lambda: not said("squeue", "--noheader"))


@needs_slurm
def test_a_node_that_slurm_does_not_know_is_said_in_its_words(slurm: Path) -> None:
    (reason,) = run_remote_probe(node(slurm_step={"node": "n7777"}), [], 60)["probe"].values()
    assert "n7777" in reason or "node name" in reason.lower()


def test_without_slurm_a_job_to_join_cannot_be_found_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = run_remote_probe(node(slurm_step={"join": True}), [], 60)
    assert answer == {"probe": {"failed": "there is no squeue here"}}


def test_what_the_inventory_adds_for_srun_stands_before_the_words() -> None:
    told = node(slurm_step={"node": "gpu-1", "options": ["--partition=checks"]})
    command = SlurmStepTransport(TransportContext()).wrap(told, ["python3", "-"])
    assert "--nodelist=gpu-1" in command
    assert command[-4:] == ["--partition=checks", "--", "python3", "-"]
