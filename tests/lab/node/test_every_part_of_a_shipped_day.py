"""The supervisor of a burn-in starts each part of the shipped plans by its real words, and each gives a result.

assay-load and stress-ng are the real ones. For tools of GPUs and drives, the lab's stand in: each refuses what the real
one would refuse (assay/lab/tools/command_lines.py).
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.lab.node.shell import install_tools
from assay.node.burnin.journal import BurnInFolder
from assay.node.burnin.node_tasks import NodeMachine
from assay.node.probe.node_access import NodeRoot
from assay.validate.active.burn_in_windows import measure_unit
from tests.support.places import ROOT

SHIPPED = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "specs/burnin").glob("*.yaml"))]
OF_A_SITE = {"shared_storage", "site_training"}
"""Parts that run where a site declares its storage or its training."""
PARTS = sorted(
    {part for plan in SHIPPED for phase in plan["phases"] for part in [*phase["parts"], *phase.get("beside", [])]}
    - OF_A_SITE
)
GPUS = [f"gpu{index}" for index in range(8)]


@pytest.fixture
def machine(node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeMachine:
    """The virtual node as its supervisor sees it, with the real programs first in the PATH."""
    real = tmp_path / "real"
    real.mkdir()
    (real / "assay-load").write_text(f'#!/bin/sh\nexec {sys.executable} -m assay.node.load "$@"\n')
    (real / "assay-load").chmod(0o755)
    if program := shutil.which("stress-ng"):
        (real / "stress-ng").symlink_to(program)
    tools = install_tools(node.world.home / "tools")
    root = NodeRoot(str(node.folder / "root"))
    monkeypatch.setenv("PATH", f"{real}:{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("ASSAY_ROOT", root.local_path("/").rstrip("/"))
    monkeypatch.setenv("ASSAY_LAB_STATE", str(node.folder / "state.json"))
    for name in ("ASSAY_CLOCK", "ASSAY_RATE"):
        monkeypatch.setenv(name, "/nonexistent")  # nothing reads them
    return NodeMachine(BurnInFolder(root), {"id": "day-1", "phases": []})


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_each_part_of_the_shipped_plans_gives_a_result(machine: NodeMachine, part: str) -> None:
    assert machine.rate == 1.0
    for seconds in (2, 10, 20, 40, 60):  # on a busy machine, stress-ng verifies nothing in a short time
        task = machine.start_unit(part, seconds, 5167.4)
        while (result := task.poll()) is None:
            time.sleep(0.1)
        work = measure_unit({"unit": part, "s": 2.0, "result": result})
        if work.results or part != "memory":
            break
    assert work.results == 1, work.reason
    names = set(work.subjects)
    assert names in ({"node"}, set(GPUS), {f"nvme{index}" for index in range(8)}), names
