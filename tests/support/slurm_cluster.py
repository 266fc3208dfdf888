"""A real Slurm for tests: slurmctld and any number of slurmd on this machine, on ports of their own."""

from __future__ import annotations

import getpass
import os
import shutil
import string
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.reserved_ports import reserve_ports

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
SlurmdSpoolDir=$FOLDER/spool/%n
SlurmctldPidFile=$FOLDER/ctld.pid
SlurmdPidFile=$FOLDER/%n.pid
ProctrackType=proctrack/linuxproc
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=1
SlurmdTimeout=10
KillWait=10
SlurmdParameters=config_overrides
"""
NODE = "NodeName={} NodeAddr=127.0.0.1 NodeHostname=localhost Port={} CPUs=8 RealMemory=1000 State=UNKNOWN\n"
START_S = 180.0
"""How long sixty nodes may take to register, on a machine that others load."""
PARTITION = "PartitionName=prod Nodes=ALL Default=YES DefMemPerCPU=50\n"


class Cluster:
    """One Slurm whose files lie in `folder`; `daemons` by name: `slurmctld`, and each node's slurmd by the node's.

    `more` is added to its slurm.conf, where `$FOLDER` stands for the folder.
    """

    def __init__(self, folder: Path, nodes: tuple[str, ...], more: str = "") -> None:
        self.folder, self.nodes, self.more = folder, nodes, more
        self.daemons = dict[str, subprocess.Popen[bytes]]()

    def start(self) -> None:
        """Start all daemons, and wait until every node is idle."""
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        control, *ports = reserve_ports(1 + len(self.nodes))
        words = {"CONTROL": control, "USER": getpass.getuser(), "FOLDER": self.folder}
        text = string.Template(SLURM_CONF).substitute(words)
        text += string.Template(self.more).substitute(words)
        text += "".join(map(NODE.format, self.nodes, ports)) + PARTITION
        (self.folder / "slurm.conf").write_text(text)
        self.control("-i")
        for name in self.nodes:
            self.join(name)
        until(self.is_idle, START_S, self.describe)

    def is_idle(self) -> bool:
        """Say whether every node has registered, and has no job."""
        return set(said("sinfo", "--noheader", "--Node", "--format=%T").split()) == {"idle"}

    def describe(self) -> str:
        """Return the nodes' states, and the last words of each daemon that has ended."""
        ended = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
        logs = [f"{name} ended: {(self.folder / f'{name}.log').read_text()[-500:]}" for name in ended]
        return "\n".join([said("sinfo", "--noheader", "--format=%T %D %N %E"), *logs])

    def control(self, *options: str) -> None:
        """Start slurmctld; without options it goes on with the state that it saved."""
        self._run("slurmctld", "slurmctld", "-D", *options)

    def join(self, node: str, *options: str) -> None:
        """Start a node's slurmd."""
        self._run(node, "slurmd", "-D", "-N", node, *options)

    def kill(self, name: str) -> None:
        """Kill a daemon, as a crash would."""
        self.daemons[name].kill()
        self.daemons[name].wait()

    def end(self) -> None:
        """End all jobs, then all daemons."""
        said("scancel", "--user", getpass.getuser())
        until(lambda: not said("squeue", "--noheader"))
        for daemon in self.daemons.values():
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def _run(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.daemons[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )


@contextmanager
def cluster(folder: Path, *nodes: str, more: str = "") -> Iterator[Cluster]:
    """Give a running Slurm of these nodes, which Slurm's programs talk to by the environment."""
    made, before = Cluster(folder, nodes, more), os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    try:
        made.start()
        yield made
    finally:
        made.end()
        del os.environ["SLURM_CONF"]
        if before is not None:
            os.environ["SLURM_CONF"] = before


def said(*command: str) -> str:
    """Return what a program prints."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def until(true: Callable[[], Any], limit_s: float = 60.0, describe: Callable[[], str] = str) -> None:
    """Wait until something is so; where it does not come true, say what `describe` returns."""
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, f"it did not come true in time {describe()}"
        time.sleep(0.05)
