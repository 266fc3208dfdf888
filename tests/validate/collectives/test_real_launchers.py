"""The shipped commands of collectives by the real mpirun and kubectl; nccl-tests is the lab's, as strict as itself.

The nodes are names of this machine, which has fewer processors than ranks: so mpirun binds them to none.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from assay.declare.loader import load_fleet
from assay.lab.node.shell import install_tools
from assay.model.specs.workload import CollectiveWorkload
from assay.validate.collectives.command import CommandTemplate, list_tasks
from assay.validate.collectives.rounds import PairRound
from assay.validate.collectives.run import PairRunner, RunLimits, make_runners
from tests.support.places import ROOT

pytestmark = pytest.mark.slow
GPU = {"index": 0, "pci": "00000000:1b:00.0", "name": "NVIDIA H100 80GB HBM3", "present": True, "lost": False}
STATE = {"name": "n1", "driver": True, "gpus": [GPU], "active": {"bus_bandwidth_gb_s": 480.0, "wrong": 0}}
NODES = ("localhost", socket.gethostname())


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """The environment of a controller whose nccl-tests is the lab's."""
    tools = install_tools(tmp_path / "tools")
    (tmp_path / "state.json").write_text(json.dumps(STATE))
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("ASSAY_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    return dict(os.environ)


def load_workload(name: str) -> CollectiveWorkload:
    return load_fleet(ROOT).collective_workloads[name]


def test_a_pair_runs_by_the_real_mpirun_and_its_report_is_read(site: Mapping[str, str], tmp_path: Path) -> None:
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed: apt-get install openmpi-bin, or sh tools/system-packages as root")
    declared = load_workload("nccl-mpirun")
    pair = declared.pair.model_copy(
        update={"command": ["none" if word == "numa" else word for word in declared.pair.command]}
    )
    workload = declared.model_copy(update={"pair": pair, "scratch": str(tmp_path), "alone": None})
    found: list[Any] = []
    tasks = list_tasks(PairRound("M1", (NODES,)), ())
    make_runners(workload, RunLimits(gpus=dict.fromkeys(NODES, 8))).pair.run(tasks, found.append)
    assert (found[0].ended, found[0].wrong) == ("ok", 0), found[0]
    assert found[0].gb_s == 480


def test_a_word_that_mpirun_does_not_know_is_told(site: Mapping[str, str]) -> None:
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed: apt-get install openmpi-bin, or sh tools/system-packages as root")
    words = list(load_workload("nccl-mpirun").pair.command)
    found: list[Any] = []
    runner = PairRunner(CommandTemplate(("mpirun", "--no-such-option", *words[1:])), 60, 1)
    runner.run(list_tasks(PairRound("M1", (NODES,)), ()), found.append)
    assert found[0].ended != "ok"
    assert "no-such-option" in found[0].note


@pytest.mark.parametrize("part", ["pair", "alone"])
def test_kubectl_takes_the_words_of_the_launcher(part: str, tmp_path: Path) -> None:
    """It comes to the cluster, which nobody answers for here; what follows `--` is for mpirun in the pod."""
    if not shutil.which("kubectl"):
        pytest.skip("kubectl is not installed")
    words = list(getattr(load_workload("nccl-kubernetes"), part).command)
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "none"), "HOME": str(tmp_path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert re.search(r"connection to the server .* refused|connection refused", done.stderr), done.stderr
    refused = subprocess.run(
        [*words[:2], "--no-such", *words[2:]], env=environment, capture_output=True, text=True, check=False
    )
    assert "unknown flag: --no-such" in refused.stderr
    own = load_workload("nccl-mpirun")
    inside = words[words.index("mpirun") :]
    assert inside[: inside.index("all_reduce_perf")][:5] == list(getattr(own, part).command)[:5]
