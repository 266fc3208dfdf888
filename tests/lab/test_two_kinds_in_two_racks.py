"""A lab of two kinds of nodes in two racks comes up from an inventory, serves, and checks clean.

A tray of its rack that has no golden digests names its guilty GPU by its neighbour.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from assay.lab.world import LabWorld
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT

TRAY = {"kind": "NodeSpec", "name": "small-rack", "extends": "gb200-nvl72", "rack": {"nodes": 2, "gpus": 8}}
KINDS = {"hgx-h100": ("r01", ["n0001", "n0002"], 8), "small-rack": ("r02", ["n0003", "n0004"], 4)}
"""Spec → its rack, its nodes, and the GPUs of each. Two trays of a GB200 are a whole rack here."""


def assay(home: Path, *words: str) -> str:
    done = run_assay(*words, "--fleet", home, cwd=home)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return done.stdout


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    for folder in ("specs", "suites", "playbooks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "fabrics"))
    (tmp_path / "specs/nodes/small-rack.yaml").write_text(yaml.safe_dump(TRAY))
    (tmp_path / "inventory").mkdir()
    for spec, (rack, names, _) in KINDS.items():
        rails = 8 if spec == "hgx-h100" else 4
        hosts = {
            name: {
                "u": place,
                "serial_number": f"S{name}",
                "bmc_address": f"198.18.0.{name[-1]}",
                "hca_guids": [f"0xa088c20401{rail:02x}000{name[-1]}" for rail in range(rails)],
            }
            for place, name in enumerate(names, 1)
        }
        start = {"nodes": names, "reason": "they serve", "expires": "2999-01-01"}
        variables = {"node_spec": spec, "profile": "managed", "site": "lab1", "rack": rack, "service_import": start}
        pool = {spec: {"vars": variables, "hosts": hosts}}
        (tmp_path / "inventory" / f"{rack}.yml").write_text(yaml.safe_dump(pool))
    assay(tmp_path, "lab", "up")
    yield tmp_path
    assay(tmp_path, "lab", "down")


def test_both_kinds_are_observed_serve_and_check_clean_in_their_racks(home: Path) -> None:
    assay(home, "reconcile", "--once")
    phases = ("--phase", "discovered", "--phase", "production")
    judged = json.loads(assay(home, "validate", *phases, "--format", "json"))
    verdicts = Counter[tuple[str, str]]()
    for outcome in judged["outcomes"]:
        verdicts[outcome["subject"].split("/")[0], outcome["verdict"]] += 1
    assert {verdict for _, verdict in verdicts} == {"pass"}
    assert all(verdicts[spec, "pass"] > 100 for spec in KINDS), verdicts
    whole = {outcome["subject"] for outcome in judged["outcomes"] if "test_whole_rack.py" in outcome["check"]}
    assert whole == {"small-rack/rack-r02"}, "a rack of trays is one machine, the other is not"
    status = {node["node"]: node for node in json.loads(assay(home, "status", "--format", "json"))["nodes"]}
    for spec, (rack, names, gpus) in KINDS.items():
        assert {(status[name]["state"], status[name]["pool"]) for name in names} == {("production", spec)}
        virtual = [LabWorld(home / ".assay-lab/world").load(name) for name in names]
        assert [(len(node["gpus"]), node["rack"]) for node in virtual] == [(gpus, rack), (gpus, rack)]


@pytest.mark.slow
def test_a_tray_of_four_gpus_names_the_guilty_one_by_its_neighbour_and_nobody_before(home: Path) -> None:
    assay(home, "reconcile", "--once")
    assay(home, "lab", "inject", "gpu.computes-wrong", "--node", "n0003", "--with", "gpu=2")
    assay(home, "observe", "n0003", "n0004", "--active", "battery")
    alone = json.loads(assay_fails(home, "validate", "--phase", "test", "--node", "n0003", "--format", "json"))
    assert named(alone, "fail") == {("test_nothing_is_wrong_that_several_parts_explain", "small-rack/n0003")}
    assay(home, "validate", "--phase", "test", "--node", "n0004")
    assay(home, "schedules", "run", "idle-verification")
    for _ in range(3):
        assay(home, "reconcile", "--once")
    status = {node["node"]: node for node in json.loads(assay(home, "status", "--format", "json"))["nodes"]}
    assert (status["n0003"]["state"], status["n0004"]["state"]) == ("rma", "production")
    history = assay(home, "explain", "n0003")
    assert "confirmation → rma" in history
    assert "n0003/gpu2" in history
    assert "and by 4 GPUs of n0004" in " ".join(history.split())


def named(judged: dict[str, list[dict[str, str]]], verdict: str) -> set[tuple[str, str]]:
    battery = [outcome for outcome in judged["outcomes"] if "test_battery.py" in outcome["check"]]
    return {(one["check"].rpartition("::")[2], one["subject"]) for one in battery if one["verdict"] == verdict}


def assay_fails(home: Path, *words: str) -> str:
    done = run_assay(*words, "--fleet", home, cwd=home)
    assert done.returncode == 1, done.stdout[-3000:] + done.stderr
    return done.stdout
