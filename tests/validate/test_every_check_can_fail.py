"""Every declared check passes on the recording of a healthy node, and fails on what must make it fail.

A check that cannot fail is a defect, so one without an entry in `suites/recordings/*.yaml` fails here. The proof of all
checks is one of the slow tests: the workflow of pull requests has it too, as `assay suites verify`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

import assay.validate.items.suite_hooks  # noqa: F401 — once for all sessions below
from assay.declare.loader import load_fleet
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.lab.fabric.ibnetdiscover import format_net_file
from assay.ledger.runs.reader import StoredRun
from assay.model.outcome import Outcome
from assay.validate.must_fail_recordings import apply_case, read_check_recording, read_must_fail_cases
from assay.validate.must_fail_verification import verify_checks
from tests.support.places import ROOT

pytest_plugins = ["pytester"]

RECORDINGS = ROOT / "suites" / "recordings"
FLEET = load_fleet(ROOT)
CHECKS = {check.id: check for catalogue in FLEET.check_catalogs.values() for check in catalogue.checks}
CASES = read_must_fail_cases(RECORDINGS)
WHOLE_RACKS = "suites/production/test_whole_rack.py"


def test_every_declared_check_has_a_recording_that_must_fail():
    assert set(CHECKS) == set(CASES)


def test_there_are_enough_checks_in_every_phase():
    counted = {
        phase: sum(phase in check.phases for check in CHECKS.values())
        for phase in ("seatrial", "zap", "test", "production", "fabric", "weekly")
    }
    assert len(CHECKS) >= 25
    assert all(counted.values()), counted


@pytest.mark.slow
@pytest.mark.parametrize("room", sorted({check.split("/")[1] for check in CHECKS}))
def test_every_check_passes_on_the_good_recording_and_fails_for_its_stated_reasons(room):
    proof = verify_checks(FLEET, [f"suites/{room}/*"])
    assert proof.unproved == ()
    assert proof.checks == tuple(check for check in CHECKS if check.startswith(f"suites/{room}/"))
    assert proof.cases == sum(len(CASES[check]) for check in proof.checks)


def test_racks_of_ordinary_nodes_have_no_checks_of_a_whole_rack(pytester, tmp_path):
    home = copy_of_the_fleet(tmp_path)
    assert judge(pytester, home, WHOLE_RACKS) == []


def test_the_fabric_checks_pass_on_the_recorded_discovery(pytester, tmp_path):
    home = copy_of_the_fleet(tmp_path)
    write(home, "fabric-compute", read_check_recording(RECORDINGS, "fabric-compute"))
    outcomes = judge(pytester, home, "suites/fabric")
    due = {check for check, one in CHECKS.items() if check.startswith("suites/fabric/") and "roce" not in one.needs}
    assert {outcome.check for outcome in outcomes} == due
    assert [outcome for outcome in outcomes if outcome.verdict != "pass"] == []
    links, switches, rails, fabrics = 20 * 8, 8 + 4, 8, 1
    assert len(outcomes) == 9 * links + 5 * switches + 1 * rails + 6 * fabrics


def test_only_the_ends_of_a_swap_fail(pytester, tmp_path):
    home = copy_of_the_fleet(tmp_path)
    check = "suites/fabric/test_cabling.py::test_link_leads_where_it_should"
    write(home, "fabric-compute", apply_case(read_check_recording(RECORDINGS, "fabric-compute"), CASES[check][0]))
    failed = {outcome.subject for outcome in judge(pytester, home, check) if outcome.verdict != "pass"}
    assert failed == {"h100-a/n0003/mlx5_0", "h100-a/n0004/mlx5_0"}


def test_a_link_is_judged_in_every_plane(pytester, tmp_path):
    home = copy_of_the_fleet(tmp_path)
    path = home / "specs" / "fabrics" / "compute.yaml"
    design = yaml.safe_load(path.read_text()) | {"planes": 2}
    for switch in (*design["leaves"]["at"], *design["spines"]["at"]):
        switch["other_planes"] = [f"0x{int(switch['guid'], 16) + 1:016x}"]
    path.write_text(yaml.safe_dump(design))
    fleet = load_fleet(home)
    topology = compile_topology(fleet.designs["compute"], fleet)
    seen = [DiscoveredCable(cable.a.port_id, cable.b.port_id, cable.rate) for cable in topology.cables
            if (cable.a.device, cable.a.port) != ("n0003 mlx5_0", 2)]  # fmt: skip
    devices = {one.guid: DiscoveredDevice(one.guid, one.kind, one.ports, one.description) for one in topology}
    channel = {"stderr": {"value": ""}, "text": {"value": format_net_file(devices, seen)}}
    recorded = read_check_recording(RECORDINGS, "fabric-compute")
    write(home, "fabric-compute", {**recorded, "channels": {"discovery": channel}})
    check = "suites/fabric/test_cabling.py::test_link_leads_where_it_should"
    (failed,) = (outcome for outcome in judge(pytester, home, check) if outcome.verdict != "pass")
    assert (failed.subject, failed.verdict) == ("h100-a/n0003/mlx5_0", "fail")
    assert failed.reason.startswith("no link between n0003 mlx5_0 port R0 (r01 U24) and leaf-su01-r0-p2")


def test_a_design_without_partitions_has_none_judged(pytester, tmp_path):
    home = copy_of_the_fleet(tmp_path)
    design = home / "specs" / "fabrics" / "compute.yaml"
    design.write_text(yaml.safe_dump({**yaml.safe_load(design.read_text()), "partitions": []}))
    write(home, "fabric-compute", read_check_recording(RECORDINGS, "fabric-compute"))
    outcomes = judge(pytester, home, "suites/fabric/test_subnet.py::test_adapter_is_in_its_partitions")
    assert {(one.verdict, one.reason) for one in outcomes} == {
        ("skip", "FabricDesign/compute: unsupported: it declares no `partitions`")
    }


def test_the_catalogue_says_what_the_marks_say(pytester, tmp_path):
    home = copy_of_the_fleet(tmp_path)
    phases = ",".join(sorted({phase for check in CHECKS.values() for phase in check.phases}))
    nodes = ("--assay-node", "n0003", "--assay-node", "n0001,n0002,n0004")
    outcomes = judge(pytester, home, "suites", *nodes, "--assay-phase", phases)
    others = ("disk", "fabric", "switch", "rail", "whole_rack")
    lacking = {"amd", "mounts", "roce", "shared_storage", "site_training"}
    ordinary = {
        one.id for one in CHECKS.values() if one.subject not in others and not lacking & {*one.needs, *one.parts}
    }
    assert {outcome.check for outcome in outcomes} == ordinary
    for outcome in outcomes:
        declared = CHECKS[outcome.check]
        assert (set(declared.phases), declared.fault, declared.active) == (
            set(outcome.phases),
            outcome.fault,
            outcome.active,
        )


def test_every_fault_class_of_a_check_is_in_the_catalogue_of_faults():
    known = {name for catalogue in FLEET.fault_catalogs.values() for name in catalogue.classes}
    assert {check.fault for check in CHECKS.values()} <= known


@pytest.fixture(autouse=True)
def _nothing_else_that_is_installed(monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def judge(pytester, home: Path, *arguments: str) -> list[Outcome]:
    """Run real pytest over suites and return what it wrote down."""
    written = home / "own.sqlite"
    written.unlink(missing_ok=True)
    pytester.chdir()
    where, *options = arguments
    pytester.inline_run(
        str(home / where),
        *options,
        f"--rootdir={home}",
        "--import-mode=importlib",
        "-qs",
        "-p",
        "no:cacheprovider",
        "-p",
        "assay.validate.plugin",
        f"--assay-store={written}",
    )
    if not written.exists():
        return []
    with StoredRun.open(written) as stored:
        return list(stored.outcomes())


def write(home: Path, name: str, document: dict) -> None:
    path = home / ".assay" / "evidence" / "latest" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**document, "node": name}))


def copy_of_the_fleet(home: Path) -> Path:
    for folder in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / folder, home / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return home


@pytest.mark.parametrize(("uptime_s", "verdict"), [(3600, "pass"), (86_400, "fail")])
def test_a_link_that_went_down_with_its_node_s_reboot_is_forgiven(uptime_s, verdict, pytester, tmp_path):
    """The recorded scans are four hours apart; the node says since when it is up."""
    home = copy_of_the_fleet(tmp_path)
    check = "suites/fabric/test_links.py::test_link_stays_up"
    case = CASES[check][0].model_copy(
        update={"edits": [["[LinkDownedCounter == 2]", "[LinkDownedCounter == 5]"]], "says": ""}
    )
    scan = apply_case(read_check_recording(RECORDINGS, "fabric-compute"), case)
    write(home, "fabric-compute", scan)
    write(home, "n0003", {**read_check_recording(RECORDINGS, "hgx-h100"), "at": scan["at"]} | up_for(uptime_s))
    seen = next(one for one in judge(pytester, home, check) if one.subject == "h100-a/n0003/mlx5_0")
    assert seen.verdict == verdict, seen.reason


def up_for(uptime_s: float) -> dict:
    return {"channels": {"probe": {"host": {"uptime_s": {"value": uptime_s}}}}}
