"""The lab's nvidia-smi lists the GPUs, and refuses what it does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.lab.virtual_node_state import VirtualNodeState

Healthy = Callable[[str], VirtualNodeState]

SMI_REFUSAL = "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n"


def test_the_labs_nvidia_smi_refuses_what_it_does_not_know(node: Any) -> None:
    done = node.run("nvidia-smi", "-L")
    assert (done.returncode, done.stdout) == (2, SMI_REFUSAL)
    unknown = node.run("nvidia-smi", "--query-gpu=no.such", "--format=csv,noheader,nounits")
    assert (unknown.returncode, unknown.stdout) == (2, 'Field "no.such" is not a valid field to query.\n')


def test_assay_load_finds_the_gpus_by_nvidia_smi(node: Any) -> None:
    done = node.run("python3", "-c", "from assay.node.load.engine import find_gpus; print(len(find_gpus('')))")
    assert (done.stdout, done.stderr) == ("8\n", "")
