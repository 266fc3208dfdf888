"""One table of judgements about GPUs, written twice: as a suite of assay's, and as plain pytest without assay.

The plain suite is what an engineer writes who has no assay: the same evidence files, each read once, the limits from
the same YAML, two fixtures, a parameter for each GPU. It imports nothing of assay, and no plugin of assay is loaded.
`python -m bench.gpu_suites DIR NODES` makes a fleet with its evidence: 500 nodes give 100,000 outcomes.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from bench.big_fleet import make
from bench.judged import evidence

GPUS = 8
LIMITED = {
    "pcie_width": ("pcie.width", "at_least", "pcie_width"),
    "pcie_generation": ("pcie.generation", "at_least", "pcie_generation"),
    "pcie_replays": ("pcie.replays", "at_most", "pcie_replays"),
    "gpu_temperature": ("temperature.gpu_c", "at_most", "gpu_temperature"),
    "memory_temperature": ("temperature.memory_c", "at_most", "memory_temperature"),
    "power_limit": ("power.limit_w", "at_least", "gpu_power_limit"),
    "corrected": ("ecc.volatile.corrected", "at_most", "ecc_corrected"),
    "corrected_ever": ("ecc.aggregate.corrected", "at_most", "ecc_aggregate_corrected"),
    "uncorrected": ("ecc.volatile.uncorrected", "at_most", "ecc_uncorrected"),
    "sram_uncorrected": ("ecc.aggregate.sram_uncorrected", "at_most", "ecc_sram_uncorrected"),
    "remapped_correctable": ("remap.correctable", "at_most", "remap_correctable"),
    "remapped_uncorrectable": ("remap.uncorrectable", "at_most", "remap_uncorrectable"),
    "nvlink_links": ("nvlink.links", "at_least", "nvlink_links"),
}
"""Name of a measurement: the reading, which side of the limit is good, the limit's name in the NodeSpec."""
EQUAL = {
    "ecc_enabled": ("ecc.enabled", True),
    "ecc_pending": ("ecc.pending", True),
    "sram_threshold": ("ecc.sram_threshold_exceeded", False),
    "persistence": ("persistence", True),
    "mig": ("mig.enabled", False),
    "compute_mode": ("compute_mode", "default"),
    "inforom": ("inforom.valid", True),
    "no_remap_failed": ("remap.failed", False),
    "no_remap_pending": ("remap.pending", False),
    "no_process": ("processes.count", 0),
    "vbios": ("vbios", "96.00.BC.00.01"),
    "recovery": ("recovery_action", "none"),
}
"""Name of a check: the reading, and what it must be."""
CHECKS = len(LIMITED) + len(EQUAL)
OURS, PLAIN = "suites/own/test_gpus.py", "plain/test_gpus.py"

OUR_HEAD = """\
import pytest

pytestmark = [pytest.mark.phase("production"), pytest.mark.fault("gpu.pcie.degraded")]
"""
PLAIN_HEAD = """\
import functools
import json
import pathlib

import pytest
import yaml

HOME = pathlib.Path(__file__).parents[1]
EVIDENCE = HOME / ".assay/evidence/latest"
SPEC = yaml.load((HOME / "specs/nodes/hgx-h100.yaml").read_text(), yaml.CSafeLoader)
LIMITS = {name: limit["value"] for name, limit in SPEC["limits"].items()}
GPUS = [(path.stem, at) for path in sorted(EVIDENCE.glob("*.json")) for at in range(len(SPEC["gpus"]["pci"]))]
each_gpu = pytest.mark.parametrize("gpu", GPUS, indirect=True, ids=[f"{node}-gpu{at}" for node, at in GPUS])


@functools.cache
def read(node):
    return json.loads((EVIDENCE / f"{node}.json").read_bytes())["channels"]["probe"]["gpu"]["devices"]


@pytest.fixture
def gpu(request):
    node, at = request.param
    return read(node)[SPEC["gpus"]["pci"][at]]


@pytest.fixture
def limits():
    return LIMITS
"""


def gpu_fleet(folder: Path, nodes: int, *, failing: bool = True) -> Path:
    """Make a fleet with both suites and the evidence of `nodes` nodes; 2 % of their outcomes fail, or none."""
    fleet = make(folder, nodes)
    for name in ("suites", "specs/checks"):
        shutil.rmtree(fleet / name)
    for path, text in {OURS: _ours(), PLAIN: _plain(), "specs/checks/own.yaml": _catalog()}.items():
        (fleet / path).parent.mkdir(parents=True, exist_ok=True)
        (fleet / path).write_text(text)
    evidence(fleet / ".assay" / "evidence" / "latest", nodes, hot=GPUS * CHECKS // 50 if failing else 0)
    return fleet


def _ours() -> str:
    limited = [
        f'\ndef test_{name}(gpu, limits, measure):\n    measure("{name}", gpu.{path}, {side}=limits.{limit})\n'
        for name, (path, side, limit) in LIMITED.items()
    ]
    equal = [f"\ndef test_{name}(gpu):\n    assert gpu.{path} == {value!r}\n" for name, (path, value) in EQUAL.items()]
    return "\n".join([OUR_HEAD, *limited, *equal])


def _plain() -> str:
    signs = {"at_least": ">=", "at_most": "<="}
    limited = [
        f'\n@each_gpu\ndef test_{name}(gpu, limits):\n    assert {_read(path)} {signs[side]} limits["{limit}"]\n'
        for name, (path, side, limit) in LIMITED.items()
    ]
    equal = [
        f"\n@each_gpu\ndef test_{name}(gpu):\n    assert {_read(path)} == {value!r}\n"
        for name, (path, value) in EQUAL.items()
    ]
    return "\n".join([PLAIN_HEAD, *limited, *equal])


def _read(path: str) -> str:
    return "gpu" + "".join(f'["{part}"]' for part in (*path.split("."), "value"))


def _catalog() -> str:
    checks = [
        {"id": f"{OURS}::test_{name}", "subject": "gpu", "phases": ["production"], "fault": "gpu.pcie.degraded"}
        for name in (*LIMITED, *EQUAL)
    ]
    catalog = {"kind": "CheckCatalog", "name": "own", "description": "Judgements about GPUs.", "owner": "bench"}
    return json.dumps({**catalog, "checks": checks}, indent=1)


if __name__ == "__main__":
    gpu_fleet(Path(sys.argv[1]), int(sys.argv[2]))
