"""A healthy virtual node of every node spec passes all its checks, active ones included.

So does a node whose spec declares parts and limits and no settings.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from assay.declare.loader import load_fleet
from assay.ledger.runs.reader import StoredRun
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT

SPECS = load_fleet(ROOT).node_specs
WITHOUT_SETTINGS = {
    "kind": "NodeSpec",
    "name": "without-settings",
    "extends": "hgx-h100",
    **dict.fromkeys(("bios", "bmc", "boot", "fabric_manager", "gpu_settings", "host", "kernel_cmdline")),
}


def assay(home: Path, *words: str) -> str:
    """Run a verb on the fleet at `home` and return what it said."""
    done = run_assay(*words, "--fleet", home, cwd=home)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A fleet with one node of every spec, its lab up."""
    for folder in ("specs", "suites"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "fabrics"))
    (tmp_path / "inventory").mkdir()
    (tmp_path / "specs" / "nodes" / "without-settings.yaml").write_text(yaml.safe_dump(WITHOUT_SETTINGS))
    for number, (name, spec) in enumerate({**SPECS, "without-settings": SPECS["hgx-h100"]}.items(), 1):
        guids = [f"0xa088c204{number:02x}00{rail:02x}06" for rail in range(len(spec.hcas))]
        host = {"rack": f"r{number}", "u": 1, "serial_number": f"S{number:04}", "bmc_address": f"192.0.2.{number}"}
        variables = {"node_spec": name, "profile": "managed", "site": "lab1", "hca_guids": guids}
        pool = {name: {"vars": variables, "hosts": {f"one-{name}": host}}}
        (tmp_path / "inventory" / f"{name}.yml").write_text(yaml.safe_dump(pool))
    assay(tmp_path, "lab", "up")
    yield tmp_path
    assay(tmp_path, "lab", "down")


@pytest.mark.slow
def test_a_healthy_node_of_every_spec_passes_every_check_of_its_own(home: Path) -> None:
    usual, others = (
        "all_reduce,gpu_burn,nvme_read,memory,battery",
        "dcgm_diag_2,ubergemm,nvbandwidth,ib_write_bw,fio_verify",
    )
    assay(home, "observe", "--active", f"{usual},{others}")
    judge = [sys.executable, "-m", "pytest", "suites", "-q", "--import-mode=importlib", "-p", "no:cacheprovider"]
    own = [
        "--ignore=suites/fabric",
        "--ignore=suites/weekly",
        "-k",
        "not whole_rack",
        f"--rootdir={home}",
        "--assay-store=own.sqlite",
    ]
    subprocess.run([*judge, *own], capture_output=True, check=False, cwd=home)
    with StoredRun.open(home / "own.sqlite") as stored:
        outcomes = list(stored.outcomes())
    not_due = (
        "not asked for",
        "nothing is known of other nodes",
        "golden digests",
        "the schedule of an idle verification",
    )
    left = [one for one in outcomes if one.verdict != "pass"]
    assert [one for one in left if one.verdict != "skip" or not any(why in one.reason for why in not_due)] == []
    assert {one.subject.split("/")[0] for one in outcomes} == {*SPECS, "without-settings"}
