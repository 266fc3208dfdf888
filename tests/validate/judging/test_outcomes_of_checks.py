"""Whatever a check does, it ends in exactly one outcome, and never in a pass that it did not earn."""

from __future__ import annotations

from tests.support.places import ROOT

pytest_plugins = ["pytester"]

SUITE = '''
"""Every way to end."""
import pytest

pytestmark = [pytest.mark.phase("production"), pytest.mark.passive]

@pytest.mark.fault("gpu.missing")
def test_that_passes(node):
    assert node.host.cpu_threads > 0

def test_that_fails_with_words(node):
    assert node.host.cpu_threads == 1, "too many threads"

def test_that_fails_without_words(node):
    assert node.host.cpu_threads == 1

def test_that_fails_by_measure(node, limits, measure):
    measure("threads", node.host.cpu_threads, at_most=limits.nvlink_links)

def test_that_calls_fail(node):
    pytest.fail("I say so")

def test_that_crashes(node):
    {}["no such key"]

def test_that_exits(node):
    raise SystemExit(0)

def test_that_skips_with_a_reason(node):
    pytest.skip("no workload here")

def test_that_skips_without_a_reason(node):
    pytest.skip("")

@pytest.mark.skip
def test_that_is_marked_skip_without_a_reason(node):
    pass

@pytest.mark.skip(reason="board revision B has no such sensor")
def test_that_is_marked_skip_with_a_reason(node):
    pass

@pytest.mark.xfail(reason="known")
def test_that_is_expected_to_fail_and_fails(node):
    assert node.host.cpu_threads == 1

@pytest.mark.xfail(reason="known")
def test_that_is_expected_to_fail_and_passes(node):
    assert node.host.cpu_threads > 0

def test_that_calls_xfail(node):
    pytest.xfail("known")

def test_that_reads_a_failed_leaf(node):
    assert node.host.kernel

def test_that_reads_an_absent_leaf(node):
    assert node.host.product

def test_that_reads_an_unsupported_leaf(node):
    assert node.host.serial

def test_that_reads_below_a_failed_branch(node):
    assert node.hca.mlx5_0.guid

def test_that_asks_for_an_unknown_reading(node):
    assert node.host.cpu_thread

def test_that_asks_for_an_unknown_limit(node, limits):
    assert limits.pcie_widht

def test_that_asks_for_an_unknown_spec(node, spec):
    assert spec.gpu

def test_that_swallows_what_it_could_not_read(node):
    try:
        node.host.kernel
    except Exception:
        pass

def test_that_asks_with_a_default(node):
    assert getattr(node.host, "kernel", "6.8") == "6.8"

def test_that_asks_whether_there_is_one(node):
    assert not hasattr(node.host, "kernel")

def test_that_looks_at_nothing(node):
    assert True

def test_that_measures_what_is_no_number(node, measure):
    measure("hostname", node.host.hostname, at_least=3)

def test_that_measures_no_finite_number(node, measure):
    measure("infinite", node.host.cpu_threads * float("nan"), at_least=3)

@pytest.fixture
def broken():
    assert False, "the fixture is broken"

def test_with_a_broken_fixture(node, broken):
    pass

@pytest.fixture
def untidy():
    yield
    raise OSError("left a mess")

def test_with_a_broken_teardown(node, untidy):
    assert node.host.cpu_threads > 0

def test_that_asks_for_no_subject():
    pass
'''

EXPECTED = {
    "that_passes": "pass: ",
    "that_fails_with_words": "fail: too many threads",
    "that_fails_without_words": "fail: assert 224 == 1",
    "that_fails_by_measure": "fail: threads 224 links, expected at most 18 (specs/nodes/hgx-h100.yaml:",
    "that_calls_fail": "fail: I say so",
    "that_crashes": "error: KeyError: 'no such key'",
    "that_exits": "error: SystemExit: 0",
    "that_skips_with_a_reason": "skip: no workload here",
    "that_skips_without_a_reason": "error: skipped without a reason",
    "that_is_marked_skip_without_a_reason": "error: skipped without a reason",
    "that_is_marked_skip_with_a_reason": "skip: board revision B has no such sensor",
    "that_is_expected_to_fail_and_fails": "error: xfail does not exist here",
    "that_is_expected_to_fail_and_passes": "error: xfail does not exist here",
    "that_calls_xfail": "error: xfail does not exist here",
    "that_reads_a_failed_leaf": "error: n0003.probe.host.kernel: failed: timed out",
    "that_reads_an_absent_leaf": "error: n0003.probe.host.product: absent: no DMI",
    "that_reads_an_unsupported_leaf": "skip: n0003.probe.host.serial: unsupported: needs root",
    "that_reads_below_a_failed_branch": "error: n0003.probe.hca: failed: hung",
    "that_asks_for_an_unknown_reading": "error: n0003.probe.host has no 'cpu_thread'; there is cpu_threads",
    "that_asks_for_an_unknown_limit": "error: NodeSpec/hgx-h100 limits has no 'pcie_widht'; there is pcie_width",
    "that_asks_for_an_unknown_spec": "error: NodeSpec/hgx-h100 has no 'gpu'; there is gpus",
    "that_swallows_what_it_could_not_read": "error: n0003.probe.host.kernel: failed: timed out (the check went on",
    "that_asks_with_a_default": "error: n0003.probe.host.kernel: failed: timed out",
    "that_asks_whether_there_is_one": "error: n0003.probe.host.kernel: failed: timed out",
    "that_looks_at_nothing": "error: passed without reading any evidence",
    "that_measures_what_is_no_number": "error: hostname is 'n0003', which is no number",
    "that_measures_no_finite_number": "error: infinite cannot be compared",
    "with_a_broken_fixture": "error: the fixture is broken",
    "with_a_broken_teardown": "error: OSError: left a mess",
    "that_asks_for_no_subject": "error: has no argument that is a subject",
}


def prepared(fleet_copy):
    fleet_copy.suite(SUITE)
    from assay.validate.must_fail_recordings import read_check_recording

    channels = read_check_recording(fleet_copy_recordings(), "hgx-h100")["channels"]
    host = channels["probe"]["host"]
    host["kernel"] = {"failed": "timed out"}
    host["product"] = {"absent": "no DMI"}
    host["serial"] = {"unsupported": "needs root"}
    channels["probe"]["hca"] = {"failed": "hung"}
    fleet_copy.collected("n0003", channels=channels)


def fleet_copy_recordings():

    return ROOT / "suites" / "recordings"


def test_every_way_to_end_has_its_one_verdict_and_reason(fleet_copy, verdicts):
    prepared(fleet_copy)
    outcomes = fleet_copy.outcomes("--assay-node", "n0003")
    said = verdicts(outcomes)
    assert len(outcomes) == len(said) == len(EXPECTED)
    for name, begins in EXPECTED.items():
        assert said[name].startswith(begins), name


def test_pytest_itself_agrees_with_the_verdicts(fleet_copy):
    prepared(fleet_copy)
    result = fleet_copy.pytest("--assay-node", "n0003")
    words = [word.split(":")[0] for word in EXPECTED.values()]
    counted = result.parseoutcomes()
    assert result.ret == 1
    assert counted["failed"] == words.count("fail")
    assert counted["skipped"] == words.count("skip")
    # a broken teardown is an error beside the call that passed
    assert counted["passed"] == words.count("pass") + 1
    assert counted["errors"] == words.count("error")


def test_a_failure_is_told_in_one_line_without_a_traceback(fleet_copy):
    prepared(fleet_copy)
    result = fleet_copy.pytest("--assay-node", "n0003", "-k", "fails_by_measure")
    told = [line for line in result.outlines if "threads 224" in line]
    assert len(told) == 1
    assert told[0].startswith("fail  h100-a/n0003")
    assert "specs/nodes/hgx-h100.yaml:" in told[0]
    assert "Traceback" not in result.stdout.str()
    assert "def test_" not in result.stdout.str()


def test_an_author_still_gets_the_traceback_with_v_or_tb(fleet_copy):
    prepared(fleet_copy)
    for option in ("-v", "--tb=short"):
        result = fleet_copy.pytest("--assay-node", "n0003", "-k", "fails_without_words", option)
        assert "assert node.host.cpu_threads == 1" in result.stdout.str()


def test_what_one_silent_branch_did_to_a_node_is_one_line(fleet_copy):
    prepared(fleet_copy)
    fleet_copy.collected("n0004", channels={"probe": {"failed": "no answer within 5 s"}})
    result = fleet_copy.pytest("--assay-node", "n0004", "-k", "reads")
    told = [line for line in result.outlines if "no answer within 5 s" in line]
    assert len(told) == 1
    assert "4 outcomes" in told[0]


def test_an_outcome_carries_what_later_rooms_need(fleet_copy):
    prepared(fleet_copy)
    (outcome,) = fleet_copy.outcomes("--assay-node", "n0003", "-k", "that_passes")
    assert outcome.check == "suites/test_own.py::test_that_passes"
    assert (outcome.subject, outcome.node) == ("h100-a/n0003", "n0003")
    assert (outcome.fault, outcome.phases, outcome.active) == ("gpu.missing", ("production",), False)
    assert len(outcome.evidence) == 64
    assert outcome.evidence_at.startswith("20")


def test_a_measurement_remembers_its_limit_and_where_it_is_written(fleet_copy):
    prepared(fleet_copy)
    (outcome,) = fleet_copy.outcomes("--assay-node", "n0003", "-k", "fails_by_measure")
    (measurement,) = outcome.measurements
    assert (measurement.name, measurement.value, measurement.at_most, measurement.unit) == ("threads", 224, 18, "links")
    written = (fleet_copy.root / measurement.source.split(":")[0]).read_text().splitlines()
    assert "nvlink_links" in written[int(measurement.source.split(":")[1]) - 1]
