"""What the tests of Slurm share: the settings, the adapter, customers' jobs, and how Slurm sees a node."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.act.actions.action import ActionContext, EffectIntent
from assay.adapters.scheduler import load_scheduler_adapter
from assay.adapters.slurm.adapter import SlurmScheduler
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.node import Node
from assay.model.specs.node_settings import make_node_settings
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT
from tests.support.slurm_cluster import said, until

SETTINGS = """
MessageTimeout=2
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=assay Nodes=ALL PriorityTier=0 PreemptMode=cancel GraceTime=0
"""
DRAINED = ("drained", "draining", "drained*", "draining*")


def node(name: str = "n0001", **more: Any) -> Node:
    """Return a node whose scheduler is Slurm."""
    told = {"workloads": "slurm", "slurm_spare_partition": "assay", **more}
    return Node(name, "p", "s", "r01", 1, "x", "spec", "managed", settings=make_node_settings(told))


def adapter(**more: Any) -> SlurmScheduler:
    """Return the adapter of such nodes."""
    found = load_scheduler_adapter(node(**more))
    assert isinstance(found, SlurmScheduler)
    return found


def job(name: str, where: str, seconds: float = 600, *options: str) -> str:
    """Start a customer's job, wait until it runs, and return its number."""
    number = submitted(name, where, seconds, *options)
    until(lambda: said("squeue", "--noheader", f"--job={number}", "--format=%T") == "RUNNING")
    return number


def submitted(name: str, where: str, seconds: float = 600, *options: str) -> str:
    """Submit a job and return its number."""
    words = [f"--job-name={name}", f"--nodelist={where}", "--output=/dev/null", *options]
    return said("sbatch", "--parsable", *words, f"--wrap=exec sleep {seconds}")


def reason(name: str) -> str:
    """Return a node's reason, as Slurm has it, "" for none."""
    found = said("scontrol", "--oneliner", "show", "node", name).partition(" Reason=")[2]
    return found.partition(" Comment=")[0].rpartition(" [")[0]


def state(name: str) -> str:
    """Return a node's state in Slurm's words."""
    return said("sinfo", "--noheader", "--Node", f"--nodes={name}", "--format=%T").split()[0]


def by_hand(name: str, **words: str) -> None:
    """Change a node as a person would."""
    given = [f"{key}={value}" for key, value in words.items()]
    subprocess.run(["scontrol", "update", f"nodename={name}", *given], check=True, env=os.environ)


def python(code: str) -> list[str]:
    """Return the command that runs this code."""
    return [str(Path(sys.executable)), "-c", code]


def context(folder: Path, *names: str) -> ActionContext:
    """Return what actions work with, for these nodes."""
    fleet = replace(load_fleet(ROOT), nodes={name: node(name) for name in names})
    ledger, store = Ledger.open(folder / "ledger.sqlite"), EvidenceStore(folder / "evidence")
    return ActionContext(fleet, ledger, store, SystemClock(), folder, folder)


def wish(action: str, name: str, **more: Any) -> EffectIntent:
    """Return an intent of a decision that never was."""
    return EffectIntent(f"{action}-{name}", action, name, "d1", "gpu.missing on gpu3", **more)
