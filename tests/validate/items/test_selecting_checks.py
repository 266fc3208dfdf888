"""Ids, -k and the options choose what is judged, before any item is made and any evidence is read."""

from __future__ import annotations

import sys

import pytest

from assay.validate.judging.evidence_cache import EvidenceCache, ReadingUnavailable

pytest_plugins = ["pytester"]

SUITE = '''
"""A node's, a part's, a rack's and a fabric's check."""
import pytest

pytestmark = [pytest.mark.phase("seatrial", "production")]

def test_host(node):
    assert node.host.cpu_threads > 0

def test_pcie_link(gpu):
    assert gpu.pcie.width > 0

@pytest.mark.phase("zap")
def test_port(hca):
    assert hca.guid == hca.declared.guid

def test_air(rack):
    assert all(node.bmc.sensor.inlet_c < 100 for node in rack.nodes)

@pytest.mark.phase("fabric")
def test_cables(fabric):
    assert not fabric.problems
'''


@pytest.fixture
def small(fleet_copy):
    fleet_copy.suite(SUITE)
    return fleet_copy


def ids(fleet, *options: str) -> list[str]:
    result = fleet.pytest("--collect-only", "-q", *options)
    return [line.split("::")[1] for line in result.outlines if "::" in line]


def test_ids_name_the_subject_by_pool_node_and_slot(small):
    collected = ids(small, "--assay-node", "n0017")
    assert "test_host[byo-b/n0017]" in collected
    assert "test_pcie_link[byo-b/n0017/gpu3]" in collected
    assert "test_port[byo-b/n0017/mlx5_0]" in collected


def test_subjects_are_what_is_declared_and_a_fabric_that_nobody_scanned_is_not_due_without_a_phase(small):
    assert not small.evidence.exists()
    collected = ids(small)
    assert not any(one.startswith("test_cables") for one in collected)
    small.pytest("--collect-only").stdout.fnmatch_lines(["not due: 1 (no scan of the fabric)*"])
    collected = ids(small, "--assay-phase", "zap,fabric,production")
    assert sum(one.startswith("test_host[") for one in collected) == 20
    assert sum(one.startswith("test_pcie_link[") for one in collected) == 20 * 8
    assert sum(one.startswith("test_air[") for one in collected) == 5
    assert [one for one in collected if one.startswith("test_cables")] == ["test_cables[fabric/compute]"]


def test_k_finds_a_node_and_a_check_by_their_names(small):
    assert ids(small, "-k", "n0017 and pcie") == [f"test_pcie_link[byo-b/n0017/gpu{slot}]" for slot in range(8)]


def test_a_check_can_be_run_by_its_id(small):
    small.collected("n0003")
    result = small.pytester.runpytest_inprocess(
        f"{small.root}/suites/test_own.py::test_pcie_link[h100-a/n0003/gpu3]",
        "--import-mode=importlib", f"--rootdir={small.root}", "-p", "assay.validate.plugin", "-p", "no:cacheprovider",
    )  # fmt: skip
    assert result.parseoutcomes() == {"passed": 1}


def test_pool_and_rack_and_node_narrow_each_other(small):
    assert {one.split("[")[1][:12] for one in ids(small, "--assay-pool", "byo-b", "-k", "host")} == {
        f"byo-b/n00{number}]"[:12] for number in range(17, 21)
    }
    assert len(ids(small, "--assay-rack", "r02", "-k", "host")) == 4
    assert len(ids(small, "--assay-rack", "r02", "--assay-pool", "byo-b")) == 0
    assert len(ids(small, "--assay-node", "n0001,n0002", "--assay-node", "n0003", "-k", "host")) == 3
    assert len(ids(small, "--assay-node", "n[0001-0003],n0005", "-k", "host")) == 4


def test_a_phase_leaves_out_checks_that_do_not_run_in_it(small):
    assert {one.split("[")[0] for one in ids(small, "--assay-phase", "zap")} == {"test_port"}
    assert {one.split("[")[0] for one in ids(small, "--assay-phase", "zap,fabric")} == {"test_port", "test_cables"}


def test_a_rack_or_a_fabric_is_judged_only_when_all_of_it_is_selected(small):
    three_of_four = ids(small, "--assay-node", "n0001,n0002,n0003")
    assert not any(one.startswith(("test_air", "test_cables")) for one in three_of_four)
    assert "test_air[h100-a/rack-r01]" in ids(small, "--assay-rack", "r01")


def test_shares_are_disjoint_and_together_everything(small):
    whole = ids(small)
    shares = [ids(small, "--assay-shard", f"{number}/3") for number in (1, 2, 3)]
    assert sorted(whole) == sorted(one for share in shares for one in share)
    nodes = [{one.split("/")[1].rstrip("]") for one in share if "/n0" in one} for share in shares]
    assert not nodes[0] & nodes[1]
    assert not nodes[1] & nodes[2]


def test_only_the_evidence_of_what_is_selected_is_read(small):
    small.collected("n0003")
    for other in ("n0001", "n0002", "n0004"):
        (small.evidence / f"{other}.json").write_text("{ this would not even parse")
    assert {outcome.verdict for outcome in small.outcomes("--assay-node", "n0003")} == {"pass"}


def test_evidence_can_be_another_folder(small, tmp_path):
    small.collected("n0003")
    moved = small.evidence.rename(tmp_path / "friday")
    assert {outcome.verdict for outcome in small.outcomes("--assay-node", "n0003")} == {"error"}
    assert {outcome.verdict for outcome in small.outcomes("--assay-node", "n0003", "--assay-evidence", str(moved))} == {
        "pass"
    }


def test_who_has_no_evidence_of_a_fabric_is_told_what_brings_it(tmp_path):
    for name, command in (("n0003", "assay observe"), ("fabric-compute", "assay fabric scan")):
        with pytest.raises(ReadingUnavailable, match=f"no evidence of {name}; collect it with `{command}`"):
            EvidenceCache(tmp_path).read_latest(name)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "no evidence of n0003"),
        ("{", "cannot be read as evidence"),
        ("[]", "cannot be read as evidence"),
        ('{"schema": "other/9"}', "cannot be read as evidence"),
        ('{"schema": "assay.evidence/1", "node": "n0004", "at": "2026-11-21T00:00:00+00:00", "channels": {}}', "n0004"),
    ],
)
def test_evidence_that_is_missing_or_broken_is_an_error_that_says_so(small, text, says):
    small.evidence.mkdir(parents=True)
    if text is not None:
        (small.evidence / "n0003.json").write_text(text)
    outcomes = small.outcomes("--assay-node", "n0003")
    assert {outcome.verdict for outcome in outcomes} == {"error"}
    assert all(says in outcome.reason for outcome in outcomes)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--assay-node", "n003"), "no node 'n003'"),
        (("--assay-pool", "h100"), "no pool 'h100'"),
        (("--assay-rack", "r99"), "no rack 'r99'"),
        (("--assay-shard", "3/2"), "write it as 2/4"),
        (("--assay-shard", "²/3"), "write it as 2/4"),
    ],
)
def test_a_name_that_does_not_exist_is_a_usage_error_in_one_message(small, options, says):
    result = small.pytest(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert says in result.stderr.str()
    assert "Traceback" not in result.stdout.str()


def test_a_fleet_that_cannot_be_read_is_a_usage_error_with_its_line(small):
    (small.root / "specs" / "nodes" / "gb200-nvl72.yaml").write_text("kind: NodeSpec\nname: [")
    result = small.pytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "specs/nodes/gb200-nvl72.yaml" in result.stderr.str()


def test_outside_suites_the_plugin_is_inert(pytester):
    pytester.makepyfile(
        """
        import sys
        def test_nothing_of_assay_is_loaded():
            assert "assay.validate.items.suite_hooks" not in sys.modules
            assert not {"pydantic", "yaml"} & set(sys.modules)
        """
    )
    result = pytester.run(sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "-p", "no:allure_pytest")
    result.assert_outcomes(passed=1)


@pytest.mark.slow
def test_workers_of_xdist_deliver_the_same_outcomes(small, monkeypatch):
    small.collected("n0003")
    plain = {(one.check, one.subject, one.verdict) for one in small.outcomes("--assay-node", "n0003,n0004")}
    shared = {
        (one.check, one.subject, one.verdict)
        for one in small.outcomes("--assay-node", "n0003,n0004", "-p", "xdist", "-n", "2")
    }
    assert plain == shared
