"""The lab's BMCs conform to DMTF's schemas, checked with DMTF's service validator.

The validator needs the schemas (CSDL) as files, else it downloads them. No package on PyPI has them, and they are not
ours to commit. So the test needs $ASSAY_SAMPLES/redfish/dmtf-csdl.tar.xz: the folder redfish-core/schema/dmtf/csdl of
openbmc/bmcweb, or DMTF's DSP8010, packed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from assay.lab.bmc import chassis
from assay.lab.faults.injection import inject_fault
from assay.lab.node.healthy_host import make_healthy_chassis

SCHEMAS = Path(os.environ.get("ASSAY_SAMPLES", "")) / "redfish" / "dmtf-csdl.tar.xz"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SCHEMAS.is_file(), reason="ASSAY_SAMPLES names no folder with redfish/dmtf-csdl.tar.xz"),
]


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("csdl")
    with tarfile.open(SCHEMAS) as packed:
        packed.extractall(folder, filter="data")
    return next(folder.rglob("Chassis_v1.xml")).parent


def judged(lab: Any, schemas: Path, logs: Path) -> tuple[int, str]:
    """Return how much passed, and what the validator found wrong."""
    program = str(Path(sys.executable).with_name("rf_service_validator"))
    where = ["-u", "operator", "-p", "a-long-secret", "-r", lab.base(), "--skipschema"]
    folders = ["--schema_directory", str(schemas), "--logdir", str(logs)]
    known = {**os.environ, "REQUESTS_CA_BUNDLE": str(lab.world.home / "ca.pem")}
    done = subprocess.run([program, *where, *folders], capture_output=True, text=True, env=known, check=False)
    passed = re.findall(r"Pass: (\d+), Warn: \d+, Fail: \d+", done.stdout)
    debug = next(logs.rglob("*Debug*.log")).read_text()
    wrong = [line for line in debug.splitlines() if " ERROR - FAIL" in line or "- FAIL -" in line]
    counted = sum(int(count) for count in re.findall(r"Fail: (\d+)", done.stdout))
    return sum(map(int, passed)), "\n".join(wrong) or ("" if not counted else f"{counted} failures")


@pytest.mark.parametrize("spec", ["hgx-h100", "gb200-nvl72"])
def test_dmtfs_service_validator_finds_nothing_wrong(
    lab: Any, fleet: Any, schemas: Path, tmp_path: Path, spec: str
) -> None:
    with lab.world.change("n0003") as state:
        state["box"] = make_healthy_chassis(fleet.node_specs[spec])
    for fault, how in (("psu.failed", {"psu": 1}), ("fan.failed", {"fan": 2}), ("power.cap", {"watts": 9000})):
        inject_fault(lab.world, fault, "n0003", how)
    passed, wrong = judged(lab, schemas, tmp_path / "logs")
    assert wrong == ""
    assert passed > 2000


def test_the_judge_does_find_what_is_wrong(
    lab: Any, schemas: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_resource = chassis.make_resource

    def make_wrong_resource(kind: str, *given: Any, **fields: Any) -> Any:
        wrong = {"LineInputStatus": "Lukewarm"} if kind == "PowerSupply" else {}
        return make_resource(kind, *given, **{**fields, **wrong})

    monkeypatch.setattr(chassis, "make_resource", make_wrong_resource)
    _, wrong = judged(lab, schemas, tmp_path / "logs")
    assert "LineInputStatus" in wrong
