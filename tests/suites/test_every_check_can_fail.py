"""Every declared check passes on the recording of a healthy node, and fails on what must make it fail.

A check that cannot fail is a defect, so one without an entry in `suites/recordings/*.yaml` fails here.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

import assay.harness.suites  # noqa: F401 — once for all sessions below
from assay.fleet.load import load_fleet
from assay.harness.recordings import MustFail, changed, must_fail, recording
from assay.harness.store.read import Stored
from assay.model.outcome import Outcome

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT / "suites" / "recordings"
FLEET = load_fleet(ROOT)
CHECKS = {check.id: check for catalogue in FLEET.checks.values() for check in catalogue.checks}
CASES = must_fail(RECORDINGS)
WHOLE_RACKS = "suites/production/test_whole_rack.py"
ELSEWHERE = ("suites/fabric/", "suites/weekly/", WHOLE_RACKS)
NODE_FILES = sorted({check.split("::")[0] for check in CHECKS if not check.startswith(ELSEWHERE)})
FABRIC_CASES = [(check, case) for check in CASES if check.startswith("suites/fabric/") for case in CASES[check]]


@dataclass(frozen=True)
class Case:
    """One node that is as the recording but for one case's changes."""

    node: str
    check: str
    case: MustFail

    @property
    def subject(self) -> str:
        if CHECKS[self.check].subject == "rack":
            return f"cases/rack-{self.node}"
        return "/".join(part for part in ("cases", self.node, self.case.subject) if part)


def test_every_declared_check_has_a_recording_that_must_fail():
    assert set(CHECKS) == set(CASES)


def test_there_are_enough_checks_in_every_phase():
    counted = {
        phase: sum(phase in check.phases for check in CHECKS.values())
        for phase in ("seatrial", "zap", "test", "production", "fabric", "weekly")
    }
    assert len(CHECKS) >= 25
    assert all(counted.values()), counted


@pytest.mark.parametrize("file", NODE_FILES)
def test_a_check_passes_on_the_recording_and_fails_for_its_stated_reason(file, pytester, tmp_path):
    cases = [
        Case(f"n{number:03}", check, case)
        for number, (check, case) in enumerate(
            (check, case) for check in CASES if check.startswith(f"{file}::") for case in CASES[check]
        )
    ]
    home = fleet_of(tmp_path, [case.node for case in cases])
    well = recording(RECORDINGS, "hgx-h100")
    for case in cases:
        write(home, case.node, changed(well, case.case))
        write(home, f"well-{case.node}", well)
    outcomes = judge(pytester, home, file)
    assert {outcome.check for outcome in outcomes} == {check for check in CHECKS if check.startswith(f"{file}::")}
    not_well = [one for one in outcomes if one.subject.startswith("cases/well") and one.verdict != "pass"]
    assert not_well == []
    by_name = {(outcome.check, outcome.subject): outcome for outcome in outcomes}
    for case in cases:
        seen = by_name[case.check, case.subject]
        assert (seen.verdict, case.case.name) == (case.case.verdict, case.case.name), seen.reason
        assert case.case.says in seen.reason, case.case.name


@pytest.mark.parametrize("check", [check for check in CHECKS if check.startswith(WHOLE_RACKS)])
def test_a_check_of_a_whole_rack_passes_on_eighteen_recorded_trays_and_fails_for_its_stated_reason(
    check, pytester, tmp_path
):
    racks = {"well": None, **{f"case{number}": case for number, case in enumerate(CASES[check])}}
    home = fleet_of_trays(tmp_path, list(racks))
    well = recording(RECORDINGS, "gb200-nvl72")
    for rack, case in racks.items():
        for number in range(18):
            write(home, f"{rack}-{number:02}", changed(well, case) if case and number == 11 else well)
    outcomes = {outcome.subject: outcome for outcome in judge(pytester, home, WHOLE_RACKS) if outcome.check == check}
    assert set(outcomes) == {f"trays/rack-{rack}" for rack in racks}
    assert outcomes["trays/rack-well"].verdict == "pass", outcomes["trays/rack-well"].reason
    for rack, case in racks.items():
        if case:
            assert outcomes[f"trays/rack-{rack}"].verdict == case.verdict, case.name
            assert case.says in outcomes[f"trays/rack-{rack}"].reason


def test_racks_of_ordinary_nodes_have_no_checks_of_a_whole_rack(pytester, tmp_path):
    home = copy_of_the_fleet(tmp_path)
    assert judge(pytester, home, WHOLE_RACKS) == []


def test_the_fabric_checks_pass_on_the_recorded_discovery(pytester, tmp_path):
    home = copy_of_the_fleet(tmp_path)
    write(home, "fabric-compute", recording(RECORDINGS, "fabric-compute"))
    outcomes = judge(pytester, home, "suites/fabric")
    assert {outcome.check for outcome in outcomes} == {check for check in CHECKS if check.startswith("suites/fabric/")}
    assert [outcome for outcome in outcomes if outcome.verdict != "pass"] == []
    links, switches, rails, fabrics = 20 * 8, 8 + 4, 8, 1
    assert len(outcomes) == 8 * links + 5 * switches + 1 * rails + 6 * fabrics


@pytest.mark.parametrize(("check", "case"), FABRIC_CASES, ids=lambda value: getattr(value, "name", None))
def test_a_fabric_check_fails_for_its_stated_reason(check, case, pytester, tmp_path):
    home = copy_of_the_fleet(tmp_path)
    write(home, "fabric-compute", changed(recording(RECORDINGS, "fabric-compute"), case))
    scope = "fabric" if CHECKS[check].subject in ("switch", "rail") else "h100-a"
    subject = f"{scope}/{case.subject}" if case.subject else "fabric/compute"
    seen = next(one for one in judge(pytester, home, check) if one.subject == subject)
    assert seen.verdict == case.verdict, seen.reason
    assert case.says in seen.reason


def test_only_the_ends_of_a_swap_fail(pytester, tmp_path):
    home = copy_of_the_fleet(tmp_path)
    check = "suites/fabric/test_cabling.py::test_link_leads_where_it_should"
    write(home, "fabric-compute", changed(recording(RECORDINGS, "fabric-compute"), CASES[check][0]))
    failed = {outcome.subject for outcome in judge(pytester, home, check) if outcome.verdict != "pass"}
    assert failed == {"h100-a/n0003/mlx5_0", "h100-a/n0004/mlx5_0"}


def test_a_design_without_partitions_has_none_judged(pytester, tmp_path):
    home = copy_of_the_fleet(tmp_path)
    design = home / "specs" / "fabrics" / "compute.yaml"
    design.write_text(yaml.safe_dump({**yaml.safe_load(design.read_text()), "partitions": []}))
    write(home, "fabric-compute", recording(RECORDINGS, "fabric-compute"))
    outcomes = judge(pytester, home, "suites/fabric/test_subnet.py::test_adapter_is_in_its_partitions")
    assert {(one.verdict, one.reason) for one in outcomes} == {
        ("skip", "FabricDesign/compute: unsupported: it declares no `partitions`")
    }


def test_the_catalogue_says_what_the_marks_say(pytester, tmp_path):
    home = copy_of_the_fleet(tmp_path)
    outcomes = judge(pytester, home, "suites", "--node", "n0003", "--node", "n0001,n0002,n0004")
    ordinary = {one.id for one in CHECKS.values() if one.subject not in ("fabric", "switch", "rail", "whole_rack")}
    assert {outcome.check for outcome in outcomes} == ordinary
    for outcome in outcomes:
        declared = CHECKS[outcome.check]
        assert (set(declared.phases), declared.fault, declared.active) == (
            set(outcome.phases),
            outcome.fault,
            outcome.active,
        )


def test_every_fault_class_of_a_check_is_in_the_catalogue_of_faults():
    known = {name for catalogue in FLEET.faults.values() for name in catalogue.classes}
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
        "assay.harness.plugin",
        f"--store={written}",
    )
    if not written.exists():
        return []
    with Stored.open(written) as stored:
        return list(stored.outcomes())


def write(home: Path, name: str, document: dict) -> None:
    path = home / ".assay" / "evidence" / "latest" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**document, "node": name}))


def copy_of_the_fleet(home: Path) -> Path:
    for folder in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / folder, home / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return home


def fleet_of(home: Path, nodes: list[str]) -> Path:
    """Make a fleet with two nodes in a rack for each case, all of them declared as the recorded one is."""
    copy_of_the_fleet(home)
    shutil.rmtree(home / "inventory")
    (home / "inventory").mkdir()
    recorded = FLEET.nodes[recording(RECORDINGS, "hgx-h100")["node"]]
    hosts = {
        name: {
            "rack": node,
            "u": 4,
            "serial_number": recorded.serial,
            "hca_guids": list(recorded.hca_guids),
            "bmc_address": "192.0.2.1",
        }
        for node in nodes
        for name in (node, f"well-{node}")
    }
    pool = {"vars": {"node_spec": "hgx-h100", "profile": "managed", "site": "lab1"}, "hosts": hosts}
    (home / "inventory" / "cases.yml").write_text(yaml.safe_dump({"cases": pool}))
    return home


def fleet_of_trays(home: Path, racks: list[str]) -> Path:
    """Make a fleet of whole racks, eighteen trays each."""
    copy_of_the_fleet(home)
    shutil.rmtree(home / "inventory")
    (home / "inventory").mkdir()
    hosts = {
        f"{rack}-{number:02}": {"rack": rack, "u": number + 1, "serial_number": f"{rack}-{number:02}"}
        for rack in racks
        for number in range(18)
    }
    pool = {"vars": {"node_spec": "gb200-nvl72", "profile": "managed", "site": "lab1"}, "hosts": hosts}
    (home / "inventory" / "trays.yml").write_text(yaml.safe_dump({"trays": pool}))
    return home


@pytest.mark.parametrize(("uptime_s", "verdict"), [(3600, "pass"), (86_400, "fail")])
def test_a_link_that_went_down_with_its_node_s_reboot_is_forgiven(uptime_s, verdict, pytester, tmp_path):
    """The recorded scans are four hours apart; the node says since when it is up."""
    home = copy_of_the_fleet(tmp_path)
    check = "suites/fabric/test_links.py::test_link_stays_up"
    case = CASES[check][0].model_copy(
        update={"edits": [["[LinkDownedCounter == 2]", "[LinkDownedCounter == 5]"]], "says": ""}
    )
    scan = changed(recording(RECORDINGS, "fabric-compute"), case)
    write(home, "fabric-compute", scan)
    write(home, "n0003", {**recording(RECORDINGS, "hgx-h100"), "at": scan["at"]} | up_for(uptime_s))
    seen = next(one for one in judge(pytester, home, check) if one.subject == "h100-a/n0003/mlx5_0")
    assert seen.verdict == verdict, seen.reason


def up_for(uptime_s: float) -> dict:
    return {"channels": {"probe": {"host": {"uptime_s": {"value": uptime_s}}}}}
