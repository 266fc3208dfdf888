"""A real Slurm, slurmctld and slurmd on this machine: a step brings the document, and no job is the worse for it."""

from __future__ import annotations

import getpass
import shutil
import socket
import string
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.model.fleet import Node
from assay.observe.reach import probe
from assay.observe.transports.slurm import srun

PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "squeue", "sinfo", "scancel")
needs_slurm = pytest.mark.skipif(
    not all(map(shutil.which, PROGRAMS)), reason="no Slurm here (Debian: slurmctld slurmd slurm-client)"
)

SLURM_CONF = """
ClusterName=fleet
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$CONTROL
SlurmUser=$USER
SlurmdUser=$USER
AuthType=auth/none
CredType=cred/none
StateSaveLocation=$FOLDER/state
SlurmdSpoolDir=$FOLDER/spool
SlurmctldPidFile=$FOLDER/ctld.pid
SlurmdPidFile=$FOLDER/slurmd.pid
ProctrackType=proctrack/linuxproc
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
KillWait=2
SlurmdParameters=config_overrides
NodeName=n0001 NodeAddr=127.0.0.1 NodeHostname=localhost Port=$NODE CPUs=8 RealMemory=1000 State=UNKNOWN
PartitionName=prod Nodes=ALL Default=YES
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    control, node = free_port(), free_port()
    words = {"CONTROL": control, "NODE": node, "USER": getpass.getuser(), "FOLDER": folder}
    (folder / "slurm.conf").write_text(string.Template(SLURM_CONF).substitute(words))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        daemons = [start(folder, "slurmd", "-D", "-N", "n0001"), start(folder, "slurmctld", "-D", "-i")]
        until(lambda: "idle" in said("sinfo", "--noheader", "--format=%T"))
        yield folder
        said("scancel", "--user", getpass.getuser())
        until(lambda: not said("squeue", "--noheader"))
        for daemon in daemons:
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(10)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def start(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    with (folder / f"{command[0]}.log").open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True
        )


def said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def until(true: Callable[[], Any], limit_s: float = 60.0) -> None:
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.05)


def node(**more: Any) -> Node:
    return Node("n0001", "p", "s", "r01", 1, "x", "spec", "managed", variables={"transport": "slurm", **more})


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
    host = probe(node(), [], 60)["probe"]["host"]
    assert host["boot_id"] == {"value": Path("/proc/sys/kernel/random/boot_id").read_text().strip()}
    until(lambda: not said("squeue", "--noheader"))


@needs_slurm
def test_our_environment_stays_here(slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMC_PASSWORD", "hunter2")
    show = ["python3", "-c", "import json, os; print(json.dumps({'probe': dict(os.environ)}))"]
    seen = probe(node(probe_command=show), [], 60)["probe"]
    assert "BMC_PASSWORD" not in seen
    assert seen["PATH"].startswith("/usr/local/sbin:")


@needs_slurm
@pytest.mark.slow
def test_a_full_node_is_left_alone_and_said_to_be_full(slurm: Path, busy: str) -> None:
    (reason,) = probe(node(), [], 60)["probe"].values()
    assert "busy" in reason or "allocate" in reason
    assert said("squeue", "--noheader", "--format=%A") == busy


@needs_slurm
def test_a_step_that_joins_a_job_takes_nothing_from_it(slurm: Path, busy: str) -> None:
    tree = probe(node(slurm_step={"join": True}), [], 60)["probe"]
    assert tree["host"]["boot_id"]["value"]
    before = (slurm / "ticks").stat().st_size
    until(lambda: (slurm / "ticks").stat().st_size > before)
    assert said("squeue", "--noheader", "--states=RUNNING", "--format=%A") == busy


@needs_slurm
@pytest.mark.slow
def test_a_step_that_is_given_up_leaves_no_job_behind(slurm: Path) -> None:
    hangs = node(probe_command=["python3", "-c", "import time; time.sleep(300)"])
    assert probe(hangs, [], 3) == {"probe": {"failed": "no answer within 3 s"}}
    until(lambda: not said("squeue", "--noheader"))


@needs_slurm
def test_a_node_that_slurm_does_not_know_is_said_in_its_words(slurm: Path) -> None:
    (reason,) = probe(node(slurm_step={"node": "n7777"}), [], 60)["probe"].values()
    assert "n7777" in reason or "node name" in reason.lower()


def test_without_slurm_a_job_to_join_cannot_be_found_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = probe(node(slurm_step={"join": True}), [], 5)
    assert answer == {"probe": {"failed": "squeue does not say which job runs on n0001: FileNotFoundError"}}


def test_what_the_inventory_adds_for_srun_stands_before_the_words() -> None:
    told = node(slurm_step={"node": "gpu-1", "options": ["--partition=checks"]})
    command = srun(told, ["python3", "-"])
    assert "--nodelist=gpu-1" in command
    assert command[-4:] == ["--partition=checks", "--", "python3", "-"]
