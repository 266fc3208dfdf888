"""`assay suites verify` finds what cannot be relied on: planted, one defect each, in a small fleet of two checks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from assay.cli.app import app
from assay.declare.loader import load_fleet
from assay.model.errors import AssayError
from assay.validate.must_fail_verification import NO_CASE, UnprovedCheck, verify_checks
from assay.validate.recorded_fleet import lay_recorded_fleet, record_declarations
from tests.support.places import ROOT
from tests.support.slurm_cluster import until

SUITE = '''"""Few things."""

import pytest

pytestmark = pytest.mark.phase("production")


def test_count(node):
    """Count."""
    assert node.gpu.count == 8, f"{node.gpu.count} of 8 GPUs"


def test_rack(rack):
    """Count in every node of a rack."""
    counts = {node.gpu.count for node in rack.nodes}
    assert len(counts) == 1, f"counts differ: {sorted(counts)}"
'''
COUNT, RACK = "suites/production/test_few.py::test_count", "suites/production/test_few.py::test_rack"
SEVEN = {"probe/gpu/count": {"value": 7}}
CASES = {
    COUNT: [{"name": "one is gone", "leaves": SEVEN, "says": "7 of 8"}],
    RACK: [{"name": "one is gone", "leaves": SEVEN, "says": "counts differ: [7, 8]"}],
}


class Small:
    """A fleet with two checks, whose suite and recordings may be replaced."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("inventory", "specs"):
            shutil.copytree(ROOT / folder, root / folder)
        shutil.rmtree(root / "specs" / "checks")
        (root / "specs" / "checks").mkdir()
        (root / "suites" / "recordings").mkdir(parents=True)
        (root / "suites" / "production").mkdir()
        shutil.copy(ROOT / "suites/recordings/hgx-h100.json", root / "suites/recordings")
        self.declare(COUNT, RACK)
        self.suite(SUITE)
        self.cases(CASES)

    def declare(self, *ids: str) -> None:
        checks = [
            {"id": one, "subject": "rack" if one.endswith("rack") else "node", "phases": ["production"]} for one in ids
        ]
        catalogue = {"kind": "CheckCatalog", "name": "few", "checks": checks}
        (self.root / "specs/checks/few.yaml").write_text(yaml.safe_dump(catalogue))

    def suite(self, text: str) -> None:
        (self.root / "suites/production/test_few.py").write_text(text)

    def cases(self, cases: object) -> None:
        (self.root / "suites/recordings/few.yaml").write_text(yaml.safe_dump(cases))

    def unproved(self, *patterns: str) -> list[UnprovedCheck]:
        return list(verify_checks(load_fleet(self.root), patterns).unproved)


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


def test_checks_that_can_fail_are_proved(small):
    proof = verify_checks(load_fleet(small.root))
    assert (proof.checks, proof.cases, proof.unproved) == ((COUNT, RACK), 2, ())


def test_a_check_without_a_recording_that_must_fail_is_not_proved(small):
    small.cases({COUNT: CASES[COUNT]})
    assert small.unproved() == [UnprovedCheck(RACK, "", NO_CASE)]


def test_a_check_that_cannot_fail_is_found(small):
    small.suite(SUITE.replace("== 8,", "> 0,"))
    (found,) = small.unproved()
    assert (found.check, found.case) == (COUNT, "one is gone")
    assert found.why == "must fail and say '7 of 8', but came to pass: "


def test_a_check_that_fails_for_another_reason_is_found(small):
    small.suite(SUITE.replace('f"{node.gpu.count} of 8 GPUs"', '"too few"'))
    (found,) = small.unproved()
    assert found.why == "must fail and say '7 of 8', but came to fail: too few"


def test_a_check_that_does_not_pass_on_the_good_recording_is_found(small):
    small.suite(SUITE.replace("== 8,", "== 9,"))
    found = small.unproved()
    assert [(one.check, one.case) for one in found] == [(COUNT, "")]
    assert found[0].why.endswith("but came to fail: 8 of 8 GPUs")


def test_a_check_that_only_ever_skips_is_found(small):
    small.suite(
        SUITE.replace("    assert node.gpu.count == 8", '    pytest.skip("not today")\n    assert node.gpu.count')
    )
    assert [one.why for one in small.unproved() if not one.case] == [
        "passes on no good recording: it skips, or there is nothing of its kind"
    ]


def test_a_case_that_changes_nothing_is_found(small):
    same = {"name": "all are there", "leaves": {"probe/gpu/count": {"value": 8}}, "says": "x"}
    small.cases({**CASES, COUNT: [same]})
    (found,) = small.unproved()
    assert found.check == COUNT
    assert "is {'value': 8} in the recording already" in found.why


def test_a_case_that_changes_nothing_is_found_beside_one_that_does(small):
    same = {"name": "all are there", "leaves": {"probe/gpu/count": {"value": 8}}, "says": "x"}
    small.cases({**CASES, COUNT: [same, *CASES[COUNT]]})
    assert [(one.check, one.why.partition(":")[0]) for one in small.unproved()] == [(COUNT, "all are there")]


def test_recordings_of_a_check_that_nobody_declares_are_found(small):
    small.declare(COUNT)
    assert small.unproved() == [UnprovedCheck(RACK, "", "recorded, but not declared")]


def test_a_suite_that_is_no_python_is_said_and_proves_nothing(small):
    small.suite("def test_count(:\n")
    found = small.unproved("*::test_count")
    assert {one.check for one in found} == {COUNT}
    assert all("no outcome: pytest ended with" in one.why for one in found)


def test_without_a_good_recording_nothing_is_proved(small):
    (small.root / "suites/recordings/hgx-h100.json").unlink()
    assert {one.why for one in small.unproved()} == {
        "there is no good recording of a node spec: python -m assay.validate.must_fail_recordings"
    }


def test_a_pattern_that_fits_no_check_is_trouble(small):
    with pytest.raises(AssayError, match="no declared check fits"):
        verify_checks(load_fleet(small.root), ["*::test_nothing"])


def test_the_verb_shares_the_work_among_processes_and_says_what_came_of_it(small):
    small.cases({COUNT: CASES[COUNT]})
    words = ["suites", "verify", "-j", "2", "--fleet", str(small.root)]
    told = CliRunner().invoke(app, [*words, "--format", "json"])
    assert told.exit_code == 1
    document = json.loads(told.stdout)
    assert (document["checks"], document["cases"]) == ([COUNT, RACK], 1)
    assert document["unproved"] == [{"check": RACK, "case": "", "why": NO_CASE}]
    told = CliRunner().invoke(app, [*words, "--check", "test_count"])
    assert (told.exit_code, told.stdout.splitlines()[-1]) == (
        0,
        "1 check, 1 case: each passes on the good recording and fails for its stated reasons",
    )


def test_the_catalogue_in_the_documentation_is_the_one_that_is_listed():
    told = CliRunner().invoke(app, ["suites", "list", "--format", "markdown", "--fleet", str(ROOT)])
    same = told.stdout == (ROOT / "docs" / "checks.md").read_text()
    assert same, "run: .venv/bin/assay suites list --format markdown > docs/checks.md"


def test_the_catalogue_says_of_each_check_what_follows_and_what_it_fails_on():
    told = CliRunner().invoke(app, ["suites", "list", "--format", "json", "--fleet", str(ROOT)])
    checks = {one["check"]: one for one in json.loads(told.stdout)["checks"]}
    assert len(checks) == sum(len(one.checks) for one in load_fleet(ROOT).check_catalogs.values())
    one = checks["suites/seatrial/test_gpu_setup.py::test_pcie_trained_at_its_maximum"]
    assert (one["subject"], one["stage"]) == ("gpu", "decide")
    assert one["says"].endswith(".")
    assert "half the lanes" in one["fails_on"]
    assert any("gpu_temperature" in one["limits"] for one in checks.values())
    assert one["follows"]["seatrial"] == "stays, ticket"


def test_recordings_are_judged_by_what_was_declared_when_they_were_made(small):
    suite = SUITE.replace("test_count(node)", "test_count(node, spec)")
    small.suite(suite.replace("node.gpu.count == 8", "node.gpu.driver == spec.driver"))
    small.declare(COUNT)
    small.cases({COUNT: [{"name": "another", "leaves": {"probe/gpu/driver": {"value": "1"}}, "says": "8 of 8 GPUs"}]})
    shutil.copytree(ROOT / "suites/recordings/fleet", small.root / "suites/recordings/fleet")
    spec = small.root / "specs/nodes/hgx-h100.yaml"
    spec.write_text(spec.read_text().replace("driver: 570.172.08", "driver: 580.1.1"))
    assert small.unproved() == []
    shutil.rmtree(small.root / "suites/recordings/fleet")
    assert "must pass on the good recording" in small.unproved()[0].why


def test_a_limit_that_a_check_brings_along_counts_on_older_recordings(small):
    small.suite(
        SUITE.replace("(node):", "(node, limits):").replace(
            "node.gpu.count == 8,", "node.gpu.count >= limits.our_gpus,"
        )
    )
    small.declare(COUNT)
    small.cases({COUNT: CASES[COUNT]})
    shutil.copytree(ROOT / "suites/recordings/fleet", small.root / "suites/recordings/fleet")
    spec = small.root / "specs/nodes/hgx-h100.yaml"
    text = spec.read_text().replace("gpu_temperature: {value: 85", "gpu_temperature: {value: 20")
    spec.write_text(
        text.replace("limits:\n", "limits:\n  our_gpus: {value: 8, unit: count, source: our own choice}\n", 1)
    )
    assert small.unproved() == []
    with tempfile.TemporaryDirectory() as folder:
        laid = lay_recorded_fleet(load_fleet(small.root), Path(folder) / "fleet").node_specs["hgx-h100"]
    assert (laid.limits["our_gpus"].value, laid.limits["gpu_temperature"].value) == (8, 85), "known ones stay"


def test_a_recording_keeps_what_is_declared_for_it(small):
    fleet = load_fleet(small.root)
    record_declarations(fleet, "n0003")
    kept = small.root / "suites/recordings/fleet"
    assert sorted(path.name for path in (kept / "specs/nodes").iterdir()) == ["hgx-h100.yaml"]
    assert not (kept / "inventory").exists()
    record_declarations(fleet, "fabric-compute")
    assert load_fleet(kept).nodes.keys() == fleet.nodes.keys()
    assert (kept / "specs/fabrics/compute.yaml").read_bytes() == (ROOT / "specs/fabrics/compute.yaml").read_bytes()


def test_who_works_for_it_ends_when_it_is_killed(small):
    file = small.root / "working"
    wait = f"    import os, time; open({str(file)!r}, 'a').write(f'{{os.getpid()}}\\n'); time.sleep(3600)\n"
    small.suite(SUITE.replace('    """Count."""\n', f'    """Count."""\n{wait}'))
    run = subprocess.Popen([sys.executable, "-m", "assay", "suites", "verify", "--jobs", "2"], cwd=small.root)
    try:
        until(lambda: file.exists() and file.read_text().endswith("\n"))
        workers = {int(line) for line in file.read_text().split()}
        assert run.pid not in workers, "another process judges"
    finally:
        run.kill()
        run.wait()
    until(lambda: not any(map(is_alive, workers)))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_check_of_parts_that_other_recordings_lack_runs_nothing_on_those():
    """Without ids, pytest would run every test of the folder in which it stands."""
    assert verify_checks(load_fleet(ROOT), ["test_disk_size"]).unproved == ()
