"""An empty result is no result: for each load tool, six ways in which what it printed must not pass.

The tool is a script that prints the text and ends as the table says; all else is as on a node with two GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.model.reading import ReadingTree, parse_reading
from assay.model.specs.load_parts import LOAD_PARTS
from assay.node.load_tools.registry import run_load
from assay.node.load_tools.tool_call import LoadOrder, SiteSettings
from assay.node.probe.node_access import NodeRoot
from assay.validate.active.burn_in_windows import find_verdict
from tests.support.places import ROOT

RECORDINGS = ROOT / "tests/data/load-tools"
TABLE: dict[str, dict[str, Any]] = yaml.safe_load((RECORDINGS / "refused.yaml").read_text())
CASES = ("no work", "part of devices", "error after result", "non-zero exit", "cut off", "warning")
PROGRAMS = {
    "memory": "stress-ng",
    "all_reduce": "all_reduce_perf",
    "nvme_read": "fio",
    "fio_verify": "fio",
    "front_end": "iperf3",
    "dcgm_diag_3": "dcgmi",
    "dcgm_mndiag": "dcgmi",
    "dcgmproftester": "dcgmproftester13",
    "gpu_fryer": "gpu-fryer",
    "hpl": "run-site",
    "battery": "assay-load",
    "training": "assay-load",
    "site_training": "run-site",
}
ALIKE = {
    **{f"dcgm_diag_{level}": "dcgm_diag_3" for level in (1, 2, 4)},
    "ib_write_bw_gpu": "ib_write_bw",
    "shared_storage": "fio_verify",
    "training_data_parallel": "training",
    "training_tensor_parallel": "training",
}
"""Parts that print as another one does: they have its row, and run it by their own adapters."""
ROWS = {part: TABLE[ALIKE.get(part, part)] for part in LOAD_PARTS}
SITE = SiteSettings(
    {},
    "/tmp",
    ("run-site",),
    "127.0.0.1",
    ("n0001",),
    {
        "command": ["run-site"],
        "deadline_s": 60,
        "least_steps": 2,
        "step": {"pattern": r"step (\d+)"},
        "loss": {"pattern": r"loss (\S+)"},
    },
    "/shared",
)


@pytest.fixture
def root(tmp_path: Path) -> NodeRoot:
    """A node with two GPUs, an adapter and a drive."""
    folders = ("driver/nvidia/gpus/0000:1b:00.0", "driver/nvidia/gpus/0000:43:00.0", "sys/kernel")
    for name in (
        *(f"proc/{folder}" for folder in folders),
        "sys/class/infiniband/mlx5_0",
        "tmp",
        "bin",
        "shared",
        "proc/1",
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "sys/class/nvme/nvme0/nvme0n1").mkdir(parents=True)
    (tmp_path / "sys/class/nvme/nvme0/nvme0n1/size").write_text("8192\n")
    (tmp_path / "proc/mounts").write_text("overlay / overlay rw 0 0\nnas:/shared /shared nfs4 rw 0 0\n")
    (tmp_path / "proc/meminfo").write_text("MemAvailable:   1024000 kB\n")
    (tmp_path / "proc/sys/kernel/hostname").write_text("n0001\n")
    return NodeRoot(str(tmp_path))


def run_part(root: NodeRoot, part: str, text: str, code: int, monkeypatch: pytest.MonkeyPatch) -> ReadingTree:
    """Let a script in PATH print the text, and the adapter run it."""
    folder = Path(root.local_path("/bin"))
    (folder / "said").write_text(text)
    report = 'for word; do case $word in --out_json_file=*) said > "${word#*=}";; localhost) c=1;; esac; done\n'
    server = f'said() {{ cat "{folder}/said"; }}\n{report}[ "$c" ] || exec sleep 30\n' if "ib_write" in part else ""
    program = folder / PROGRAMS.get(part, PROGRAMS.get(ALIKE.get(part, ""), ALIKE.get(part, part)))
    program.write_text(f'#!/bin/sh\n[ "$1" = -h ] && exit\n{server}cat "{folder}/said"\nexit {code}\n')
    program.chmod(0o755)
    names = folder / "nvidia-smi"
    names.write_text("#!/bin/sh\n" + "".join(f"echo {at}, GPU-{at}\n" for at in range(2)))
    names.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    tree: ReadingTree = run_load(root, [part], LoadOrder(5, site=SITE))[part]
    return tree


def list_leaves(tree: Any) -> Iterator[Mapping[str, Any]]:
    if parse_reading(tree) is not None:
        yield tree
        return
    for below in tree.values():
        yield from list_leaves(below)


def passes(part: str, tree: ReadingTree) -> bool:
    """Whether a burn-in and the suites would take it for good."""
    leaves = [leaf for leaf in list_leaves(tree) if "declares no" not in str(leaf.get("unsupported", ""))]
    said = [str(leaf.get("value", "Fail")) for leaf in leaves]
    is_bad = any(text in ("False", "LowFlops") or text.startswith(("Fail", "Warn", "Pass,")) for text in said)
    return not is_bad and not find_verdict([{"unit": part, "result": tree}], {})


def test_each_part_has_its_row_and_each_row_its_cases() -> None:
    assert set(TABLE) == {ALIKE.get(part, str(part)) for part in LOAD_PARTS}
    assert all(set(CASES) <= set(row) for row in TABLE.values())


@pytest.mark.parametrize("part", ROWS)
def test_what_it_prints_when_all_is_well_passes(part: str, root: NodeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = run_part(root, part, read_text(ROWS[part]), ROWS[part].get("exit", 0), monkeypatch)
    assert passes(part, tree), tree


@pytest.mark.parametrize(
    ("part", "case"),
    [
        pytest.param(part, case, id=f"{part}: {case}")
        for part in ROWS
        for case in CASES
        if "never" not in ROWS[part][case]
    ],
)
def test_what_is_no_result_passes_nowhere(
    part: str, case: str, root: NodeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ROWS[part]
    text = change(read_text(row), row[case])
    tree = run_part(root, part, text, row[case].get("exit", row.get("exit", 0)), monkeypatch)
    assert not passes(part, tree), tree


def read_text(row: Mapping[str, Any]) -> str:
    return (RECORDINGS / row["file"]).read_text() if "file" in row else str(row["text"])


def change(text: str, case: Mapping[str, Any]) -> str:
    """Return the text of a case, which is not that of the row unless its exit code is another."""
    changed = text
    for old, new in case.get("swap", {}).items():
        assert old in changed, old
        changed = changed.replace(old, str(new))
    for pattern, new in case.get("pattern", {}).items():
        changed = re.sub(pattern, new, changed)
    if "upto" in case:
        changed = changed[: changed.index(case["upto"])]
    changed += case.get("add", "")
    assert changed != text or "exit" in case
    return changed


def test_a_gpu_that_cuda_does_not_see_shifts_no_name_and_hides_no_faulty_one(
    root: NodeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two GPUs, the first is lost: what gpu_burn calls GPU 0 is the second."""
    for verdict, more in (("OK", {}), ("FAULTY", {"wrong": {"value": 1}})):
        text = f"100.0%  proc'd: 500 (48000 Gflop/s)   errors: 0   temps: 60 C\n\nTested 1 GPUs:\n\tGPU 0: {verdict}\n"
        tree = run_part(root, "gpu_burn", text, 0, monkeypatch)
        assert tree.pop("devices") == {"failed": "gpu_burn tells of 1 of 2 GPUs, and not which CUDA does not see"}
        tree.pop("started_at")
        assert tree == more
